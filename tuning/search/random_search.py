"""The `random` sampler: every trial is drawn independently."""

from optuna.samplers import RandomSampler

from contrasweep.search_spaces import Space
from contrasweep.tuning.search.sampler import Draw, Sampler


def _start(space: Space, trials: int) -> Draw:
    return lambda seed, number: RandomSampler(seed=seed)


SAMPLER = Sampler("random", _start, learns=False)
