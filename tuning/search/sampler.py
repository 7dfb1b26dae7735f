"""The sampler behind `SearchStudy`: whole configurations of a space, drawn by one of Optuna's samplers."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from search_spaces import Choice, Range, Scalar, Space
from tuning.errors import unknown_name

Configuration = frozenset[tuple[str, Scalar]]
REDRAWS = 10


def distribution(parameter: Choice | Range) -> BaseDistribution:
    """Return Optuna's description of a searched parameter."""
    if isinstance(parameter, Choice):
        return CategoricalDistribution(parameter.choices)
    if parameter.is_integer:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.is_log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.is_log)


class SpaceSampler(BaseSampler):
    """Proposes a whole configuration at once, parents first, and only the parameters that are active.

    Trial 0 runs the defaults. Each later trial draws from a generator seeded by (seed, trial number), so its
    proposal depends on nothing but the seed, its number and what the study holds: a search rebuilt from its
    trials goes on as if it had never stopped, and never draws an earlier trial's numbers again.

    In a finite space a configuration that the study already holds is drawn again, up to `REDRAWS` times, and
    then replaced by the first untried one of `Space.grid`. One is repeated only when none is left.
    """

    def __init__(self, space: Space, name: str, seed: int, trials: int) -> None:
        self._space = space
        self._seed = seed
        self._trials = trials
        self._make = SAMPLERS[checked_sampler(name)]
        self._distributions = {parameter.name: distribution(parameter) for parameter in space.searched}
        self._is_finite = space.size() is not None

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return every searched parameter: `sample_relative` settles them all."""
        return self._distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the searched, active values that `trial` should run."""
        if trial.number == 0:
            return self._searched(self._space.defaults())
        inner = self._make(_seed_of(self._seed, trial.number), self._trials)
        drawn = self._draw(inner, study, trial)
        if not self._is_finite:
            return drawn
        others = (t for t in study.get_trials(deepcopy=False) if t.number != trial.number)
        tried = {frozenset(t.params.items()) for t in others}
        for _ in range(REDRAWS):
            if frozenset(drawn.items()) not in tried:
                return drawn
            drawn = self._draw(inner, study, trial)
        return next(self._untried(tried), drawn)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Never called: `sample_relative` settles every active parameter."""
        raise AssertionError(f"trial {trial.number} asked for {param_name!r}, which its configuration lacks")

    def _draw(self, inner: BaseSampler, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        joint = inner.infer_relative_search_space(study, trial)
        relative = inner.sample_relative(study, trial, joint)
        values: dict[str, Any] = {}
        for parameter in self._space.searched:
            name, dist = parameter.name, self._distributions[parameter.name]
            if name not in self._space.active(values):
                continue
            if name in relative:
                values[name] = relative[name]
            else:
                values[name] = inner.sample_independent(study, trial, name, dist)
        return values

    def _untried(self, tried: set[Configuration]) -> Iterator[dict[str, Any]]:
        for values in self._space.grid():
            searched = self._searched(values)
            if frozenset(searched.items()) not in tried:
                yield searched

    def _searched(self, values: Mapping[str, Scalar]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in self._distributions}


def checked_sampler(name: str) -> str:
    """Return `name` if it is a known sampler.

    Raises:
        InputError: it is not (with the nearest name).
    """
    if name not in SAMPLERS:
        raise unknown_name("sampler", name, SAMPLERS)
    return name


def _seed_of(seed: int, number: int) -> int:
    digest = hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=4).digest()
    return int.from_bytes(digest)


def _tpe(seed: int, trials: int) -> BaseSampler:
    # One density a parameter (multivariate=False), each modelled from the trials in which it was active: on
    # conditional test objectives of 24 and 60 trials the best value found was as good as with joint densities
    # (`group`), and its spread over seeds smaller. Running trials count as bad ones (constant_liar), so that
    # parallel proposals spread out. A short search ends the random start earlier than Optuna's 10 trials.
    startup = max(5, min(10, trials // 3))
    return TPESampler(seed=seed, multivariate=False, constant_liar=True, n_startup_trials=startup)


def _random(seed: int, trials: int) -> BaseSampler:
    return RandomSampler(seed=seed)


SAMPLERS: Mapping[str, Callable[[int, int], BaseSampler]] = {"tpe": _tpe, "random": _random}
