"""Exported encoders in use: transfer to other datasets, features in files, a map of the features."""
