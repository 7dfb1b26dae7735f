"""The search: what to try next, and what became of it. It needs neither Ray nor torch."""

from tuning.search.mirror import Mirror, MirrorOf, checked_storage
from tuning.search.sampler import SAMPLERS
from tuning.search.study import PastTrial, Proposal, SearchStudy

__all__ = ["SAMPLERS", "Mirror", "MirrorOf", "PastTrial", "Proposal", "SearchStudy", "checked_storage"]
