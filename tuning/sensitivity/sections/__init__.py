"""The sections of the sensitivity page: each analysis in words, as figures and as tables."""
