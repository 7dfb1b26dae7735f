"""Export of trained encoders: files in the formats of other libraries, and a model card."""
