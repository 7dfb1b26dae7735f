"""The declarations of all methods, datasets, encoders and samplers, read without importing torch."""
