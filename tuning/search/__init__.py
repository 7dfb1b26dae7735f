"""The search: it proposes configurations and learns from their results. It needs neither Ray nor torch."""

from contrasweep.tuning.search.mirror import Mirror, MirrorOf, checked_storage
from contrasweep.tuning.search.sampler import SAMPLERS, Sampler, keeps, sampler_of
from contrasweep.tuning.search.study import PastTrial, Proposal, SearchStudy

__all__ = [
    "SAMPLERS",
    "Mirror",
    "MirrorOf",
    "PastTrial",
    "Proposal",
    "Sampler",
    "SearchStudy",
    "checked_storage",
    "keeps",
    "sampler_of",
]
