"""Trained encoders as other libraries and people take them: files in their formats, and a model card."""
