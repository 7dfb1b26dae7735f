"""A trial in progress: one epoch at a time into the store; its seeds, checkpoints and failures; no Ray."""
