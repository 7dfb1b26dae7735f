"""What the store says: pure functions from rows to selections, summaries and figures."""
