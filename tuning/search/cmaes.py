"""The `cmaes` sampler: an evolution strategy, rebuilt from the study's trials at every proposal."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from cmaes import CMA
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from contrasweep.search_spaces import Range, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.search.sampler import Draw, Numeric, Sampler, constrained_standing, scale_of, varied
from contrasweep.tuning.search.tpe import tpe

FIRST_STEP = 0.25
"""The first standard deviation, for a range of length 1: the whole range lies within two of them."""


class EvolutionStrategy(BaseSampler):
    """CMA-ES over the numbers that every trial has; `rest` draws the other parameters.

    CMA-ES uses only the ranks of the trials in a generation. So stopped and failed trials count too: finished
    trials rank first, then stopped ones (a later stop is better), then failed ones. Optuna's CmaEsSampler
    ignores these trials, and keeps a state beside the trials that a resumed search would lack. Here the state
    is computed from the trials.
    """

    def __init__(self, joint: Mapping[str, Numeric], rest: BaseSampler, seed: int) -> None:
        self._joint = dict(joint)
        self._rest = rest
        self._seed = seed

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the numbers that every trial has."""
        return dict(self._joint)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return values for the next member of the current generation."""
        ended = [t for t in study.get_trials(deepcopy=False) if t.state.is_finished() and t.params]
        dimensions = len(self._joint)
        optimizer = CMA(
            mean=np.full(dimensions, 0.5),
            sigma=FIRST_STEP,
            bounds=np.tile([0.0, 1.0], (dimensions, 1)),
            seed=self._seed,
        )
        while len(ended) >= optimizer.population_size:
            generation, ended = ended[: optimizer.population_size], ended[optimizer.population_size :]
            ranked = sorted(generation, key=constrained_standing)
            optimizer.tell([(self._to_unit(t), float(place)) for place, t in enumerate(ranked)])
        return self._from_unit(optimizer.ask())

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return the draw of `rest` for a choice, or for a parameter that not every trial has."""
        return self._rest.sample_independent(study, trial, param_name, param_distribution)

    def _to_unit(self, trial: FrozenTrial) -> np.ndarray:
        return np.array(
            [scale_of(dist).unit(float(trial.params[name])) for name, dist in self._joint.items()]
        )

    def _from_unit(self, shares: Sequence[float]) -> dict[str, Any]:
        pairs = zip(self._joint.items(), shares, strict=True)
        return {name: scale_of(dist).value(float(share)) for (name, dist), share in pairs}


def _start(space: Space, trials: int) -> Draw:
    always = varied(parameter for parameter in space.searched if parameter.name in space.always_searched)
    numbers = {
        name: dist for name, dist in always.items() if isinstance(dist, FloatDistribution | IntDistribution)
    }
    return lambda seed, number: EvolutionStrategy(numbers, tpe(seed, trials), seed)


def _check(space: Space, objectives: int) -> None:
    if objectives > 1:
        raise InputError(f"the sampler cmaes takes one metric, given {objectives}; tpe and gp take several")
    if not any(isinstance(space[name], Range) for name in space.always_searched):
        raise InputError(
            f"the sampler cmaes needs a range that every trial has, and {space.origin} has none; "
            "tpe searches any space"
        )


SAMPLER = Sampler("cmaes", _start, _check)
