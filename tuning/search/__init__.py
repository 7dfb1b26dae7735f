"""The search: what to try next, and what became of it. It needs neither Ray nor torch."""

from tuning.search.sampler import SAMPLERS
from tuning.search.study import PastTrial, Proposal, SearchStudy

__all__ = ["SAMPLERS", "PastTrial", "Proposal", "SearchStudy"]
