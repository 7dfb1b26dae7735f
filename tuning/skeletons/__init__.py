"""Skeletons of plug-ins: a package with a method, an encoder or a dataset that works, and its test."""
