"""What is decided before and around a run, without Ray: plans, spaces, resources, trials."""
