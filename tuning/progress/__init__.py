"""The progress and the remaining time of a sweep, of final runs or of a training."""
