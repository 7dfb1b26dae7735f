"""Decisions before and around a run, without Ray: plans, search spaces, resources, trials."""
