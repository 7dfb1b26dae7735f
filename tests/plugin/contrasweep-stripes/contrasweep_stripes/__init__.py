"""A dataset and an encoder of another distribution."""
