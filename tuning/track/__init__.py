"""Studies copied to experiment trackers: MLflow and Weights & Biases."""
