"""Decisions before a run, without Ray: plans, search spaces, resources, what a resumed study may change."""
