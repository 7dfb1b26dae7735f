"""The sampler behind `SearchStudy`: whole configurations of a space, drawn by one of Optuna's samplers."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
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

from contrasweep.search_spaces import Choice, Range, Scalar, Space
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.search.cmaes import EvolutionStrategy
from contrasweep.tuning.search.gaussian_process import GaussianProcess

Configuration = frozenset[tuple[str, Scalar]]
Distributions = Mapping[str, BaseDistribution]
REDRAWS = 10
LARGEST_GRID = 100_000


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

    The study's first `earlier` trials are those of other searches: its own are numbered after them.

    The sampler `grid` draws nothing: trial by trial it goes through `Space.grid`, the defaults first.

    Raises:
        InputError: see `check_sampler`.
    """

    def __init__(self, space: Space, name: str, seed: int, trials: int, earlier: int = 0) -> None:
        self._space = space
        self._seed = seed
        self._trials = trials
        self._earlier = earlier
        check_sampler(name, space)
        self._make = SAMPLERS[name]
        self._distributions = {parameter.name: distribution(parameter) for parameter in space.searched}
        self._is_finite = space.size() is not None
        self._grid = list(self._untried({self._defaults()})) if name == GRID else None

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return every searched parameter: `sample_relative` settles them all."""
        return self._distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the searched, active values that `trial` should run."""
        number = trial.number - self._earlier
        if number == 0:
            return dict(self._defaults())
        if self._grid is not None:
            return self._grid_point(number)
        inner = self._make(_seed_of(self._seed, number), self._trials, self._space)
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

    def _grid_point(self, number: int) -> dict[str, Any]:
        points = self._grid or []
        if number > len(points):
            raise InputError(f"the grid has {len(points) + 1} points, and all of them were proposed")
        return points[number - 1]

    def _untried(self, tried: set[Configuration]) -> Iterator[dict[str, Any]]:
        for values in self._space.grid():
            searched = self._searched(values)
            if frozenset(searched.items()) not in tried:
                yield searched

    def _defaults(self) -> Configuration:
        return frozenset(self._searched(self._space.defaults()).items())

    def _searched(self, values: Mapping[str, Scalar]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in self._distributions}


def check_sampler(name: str, space: Space, objectives: int = 1) -> None:
    """Refuse a sampler that is unknown, or that cannot search `space` for so many objectives.

    Raises:
        InputError: it is unknown (with the nearest name); `grid`, and the space has a continuous range or too
            many points; `cmaes`, and no number is searched in every trial, or there are several objectives.
    """
    if name not in SAMPLERS:
        raise unknown_name("sampler", name, SAMPLERS)
    if name == GRID:
        _check_grid(space)
    if name == "cmaes" and objectives > 1:
        raise InputError(f"the sampler cmaes takes one metric, given {objectives}; tpe and gp take several")
    numbers = [p for p in space.always_searched if isinstance(space[p], Range)]
    if name == "cmaes" and not numbers:
        raise InputError(
            f"the sampler cmaes searches ranges that every trial has, and {space.origin} has none; "
            "tpe searches any space"
        )


def _check_grid(space: Space) -> None:
    ranges = ", ".join(parameter.name for parameter in space.searched if parameter.size() is None)
    finite = "--grid-points N cuts each range into N levels; a space file (--space) may give choices instead"
    if ranges:
        raise InputError(f"a grid needs a finite space, and these are ranges: {ranges}. {finite}.")
    size = space.size() or 0
    if size > LARGEST_GRID:
        raise InputError(
            f"a grid over {space.origin} has {size:,} points, more than {LARGEST_GRID:,}. {finite}."
        )


def _seed_of(seed: int, number: int) -> int:
    digest = hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=4).digest()
    return int.from_bytes(digest)


def _tpe(seed: int, trials: int) -> BaseSampler:
    # One density a parameter (multivariate=False), each modelled from the trials in which it was active: on
    # conditional test objectives of 24 and 60 trials the best value found was as good as with joint densities
    # (`group`), and its spread over seeds smaller. Running trials count as bad ones (constant_liar), so that
    # parallel proposals spread out.
    return TPESampler(
        seed=seed, multivariate=False, constant_liar=True, n_startup_trials=_random_start(trials)
    )


def _random(seed: int, trials: int) -> BaseSampler:
    return RandomSampler(seed=seed)


def _random_start(trials: int) -> int:
    # A short search ends it earlier than Optuna's 10 trials.
    return max(5, min(10, trials // 3))


def _gp(seed: int, trials: int, space: Space) -> BaseSampler:
    return GaussianProcess(_varied(space.searched), _tpe(seed, trials), seed, _random_start(trials))


def _cmaes(seed: int, trials: int, space: Space) -> BaseSampler:
    always = _varied(parameter for parameter in space.searched if parameter.name in space.always_searched)
    numbers = {
        name: dist for name, dist in always.items() if isinstance(dist, FloatDistribution | IntDistribution)
    }
    return EvolutionStrategy(numbers, _tpe(seed, trials), seed)


def _varied(parameters: Iterable[Choice | Range]) -> Distributions:
    distributions = {parameter.name: distribution(parameter) for parameter in parameters}
    return {name: dist for name, dist in distributions.items() if not dist.single()}


GRID = "grid"
SAMPLERS: Mapping[str, Callable[[int, int, Space], BaseSampler]] = {
    "tpe": lambda seed, trials, space: _tpe(seed, trials),
    "gp": _gp,
    "cmaes": _cmaes,
    "random": lambda seed, trials, space: _random(seed, trials),
    GRID: lambda seed, trials, space: _random(seed, trials),
}
