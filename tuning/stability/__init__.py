"""Stability: how many trials a search needs until a comparison of methods no longer depends on luck."""
