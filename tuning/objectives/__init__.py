"""What a method is made of: the objective, its batches, the prepared dataset."""
