"""Reading a stored study: its trials over their seeds, the best of them, its final runs."""
