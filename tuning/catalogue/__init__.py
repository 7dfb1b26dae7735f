"""What there is by name, known without torch: declarations of methods, datasets, encoders and samplers."""
