"""What a finished study says: its trials over their seeds, the best of them, its final runs."""
