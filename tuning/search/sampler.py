"""Samplers: how one draws, all of them by name, and what turns their draws into whole configurations."""

import hashlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from contrasweep.plugins import Registry, defined_beside
from contrasweep.search_spaces import Choice, Range, Scalar, Scale, Space
from contrasweep.tuning.errors import WrongReturn, unknown_name
from contrasweep.tuning.experiment.conditions import broken_by

Numeric = FloatDistribution | IntDistribution


def scale_of(dist: Numeric) -> Scale:
    """Return the scale of a range, which gives a value its position 0..1 and a position its value."""
    return Scale(dist.low, dist.high, dist.log, isinstance(dist, IntDistribution))


def standing(trial: FrozenTrial, objective: int | None = None) -> tuple[int, int, float]:
    """Return a key that sorts trials, best first; larger values are better.

    Values of different fidelity are never compared. Finished trials come first, then stopped ones (a later
    stop is better), then failed ones. Conditions do not count, see `constrained_standing`.

    Args:
        trial: a trial that has ended.
        objective: the number of the objective to rank by, if there are several; stopped trials then have no
            values.
    """
    if trial.state is TrialState.COMPLETE:
        return 0, 0, -trial.values[objective or 0]
    last = trial.last_step
    if trial.state is TrialState.PRUNED and last is not None:
        return 1, -last, -trial.intermediate_values[last] if objective is None else 0.0
    return 2, 0, 0.0


def constrained_standing(trial: FrozenTrial) -> tuple[float, tuple[int, int, float]]:
    """Return the key of `standing` with the conditions before it: trials that break none come first.

    The others follow by the sum of what they break them by, and failed trials come last.
    """
    failed = trial.state is TrialState.FAIL
    return math.inf if failed else broken_by(trial.constraints.values()), standing(trial)


def keeps(violations: Mapping[str, float]) -> bool:
    """Whether a trial with these violations, by condition, breaks none."""
    return all(violation <= 0 for violation in violations.values())


Draw = Callable[[int, int], BaseSampler]
"""Returns Optuna's sampler for one trial, from a seed of its own and its number within the search."""


@runtime_checkable
class Ranking(Protocol):
    """What a sampler of one trial also has if it weighs many configurations at once.

    Where the first cannot be run, the next best takes its place, at no further cost. The sampler's usual
    draws follow after the last.
    """

    def ranked(self, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Scalar]]:
        """Yield the searched, active values of configurations, best first."""
        ...


def _takes_any_space(space: Space, objectives: int) -> None:
    return


@dataclass(frozen=True)
class Sampler:
    """A way to propose configurations.

    Attributes:
        name: the name that users type.
        start: returns what draws each trial of a search over a space with so many planned trials.
        check: raises InputError if the sampler cannot search a space for so many objectives.
        exhaustive: it proposes each point of a finite space once, so the space gives the number of trials.
        learns: its proposals depend on the results of earlier trials.
    """

    name: str
    start: Callable[[Space, int], Draw]
    check: Callable[[Space, int], None] = _takes_any_space
    exhaustive: bool = False
    learns: bool = True


SAMPLERS: Registry[Sampler] = Registry("sampler", lambda: defined_beside(__name__, Sampler), (Sampler,))
"""Our own samplers and those of plug-ins, by name."""


def sampler_of(name: str) -> Sampler:
    """Return a sampler by name.

    Raises:
        InputError: there is none of that name; the message gives the nearest.
    """
    if name not in SAMPLERS:
        raise unknown_name("sampler", name, SAMPLERS)
    return SAMPLERS[name]


def distribution(parameter: Choice | Range) -> BaseDistribution:
    """Return Optuna's description of a searched parameter."""
    if isinstance(parameter, Choice):
        return CategoricalDistribution(parameter.choices)
    if parameter.is_integer:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.is_log)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.is_log)


def varied(parameters: Iterable[Choice | Range]) -> Mapping[str, BaseDistribution]:
    """Return Optuna's descriptions of the parameters that have more than one value, by name."""
    distributions = {parameter.name: distribution(parameter) for parameter in parameters}
    return {name: dist for name, dist in distributions.items() if not dist.single()}


Configuration = frozenset[tuple[str, Scalar]]
Possible = Callable[[Mapping[str, Scalar]], bool]
"""Whether a configuration, all of its active values, can be run: each value is allowed by itself, but some
may not go together."""

REDRAWS = 10
ALTERED = 1000


def every_one(values: Mapping[str, Scalar]) -> bool:
    """Return that a configuration can be run: no two values of the space exclude each other."""
    return True


class SpaceSampler(BaseSampler):
    """Proposes a whole configuration at once, parents first, and only the parameters that are active.

    Trial 0 runs the defaults, the next ones the configurations `first`. Each later trial draws from a
    generator seeded by (seed, trial number), so its proposal depends only on the seed, its number and the
    trials of the study: a search rebuilt from its trials goes on as if it had never stopped, and never draws
    an earlier trial's numbers again.

    A configuration that the study already holds is drawn again. In an infinite space, too: a search that
    begins with the best of an earlier one, and has its seed, would draw them once more. One that is not
    `possible` is drawn again as well. After `REDRAWS` draws, a finite space gives its first untried
    configuration in the order of `Space.grid`. In an infinite one `ALTERED` draws follow in which chance
    replaces more and more values, at last all. So a configuration is repeated only when none is left, and an
    impossible one is proposed only if no other was found. A sampler that is a `Ranking` gives all that it
    ranked before it draws. An exhaustive sampler repeats nothing by itself, and its draws are taken as they
    are.

    Configurations are compared exactly here, unlike in analyses (`axes.configuration_key`): the store gives
    values back bit for bit, and a sampler that closes in on an optimum may propose neighbours of a trial that
    differ in late digits.

    The study's first `earlier` trials are those of other searches: its own are numbered after them.
    """

    def __init__(
        self,
        space: Space,
        sampler: Sampler,
        seed: int,
        trials: int,
        earlier: int = 0,
        first: Sequence[Mapping[str, Scalar]] = (),
        possible: Possible = every_one,
    ) -> None:
        self._space = space
        self._possible = possible
        self._seed = seed
        self._earlier = earlier
        self._first = (space.defaults(), *first)
        self._name = sampler.name
        self._draw_of = sampler.start(space, trials)
        if not callable(self._draw_of):
            raise self._wrong("start", "a function of a seed and a number", self._draw_of)
        self._searched_by_name = {parameter.name: parameter for parameter in space.searched}
        self._distributions = {parameter.name: distribution(parameter) for parameter in space.searched}
        self._redraws = not sampler.exhaustive

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return every searched parameter: `sample_relative` settles them all."""
        return self._distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the searched, active values that `trial` should run."""
        number = trial.number - self._earlier
        if number < len(self._first):
            return self._searched(self._first[number])
        seed = _seed_of(self._seed, number)
        inner = self._draw_of(seed, number)
        if not isinstance(inner, BaseSampler):
            raise self._wrong("the function that start returns", "a sampler of Optuna", inner)
        if not self._redraws:
            return self._draw(inner, study, trial)
        others = (t for t in study.get_trials(deepcopy=False) if t.number != trial.number)
        tried = {frozenset(t.params.items()) for t in others}
        left = self._untried(tried) if self._space.is_finite else self._altered(inner, seed, study, trial)
        second_best: dict[str, Any] | None = None
        for drawn in chain(self._draws(inner, study, trial), left):
            possible = self._possible(self._space.complete(drawn))
            if possible and frozenset(drawn.items()) not in tried:
                return drawn
            if possible or second_best is None:
                second_best = drawn
        assert second_best is not None, "a sampler draws at least once"
        return second_best

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Never called: `sample_relative` settles every active parameter."""
        raise AssertionError(f"trial {trial.number} asked for {param_name!r}, which its configuration lacks")

    def _draws(self, inner: BaseSampler, study: Study, trial: FrozenTrial) -> Iterator[dict[str, Any]]:
        if isinstance(inner, Ranking):
            yield from inner.ranked(study, trial)
        for _ in range(REDRAWS):
            yield self._draw(inner, study, trial)

    def _draw(self, inner: BaseSampler, study: Study, trial: FrozenTrial) -> dict[str, Any]:
        joint = inner.infer_relative_search_space(study, trial)
        return self._completed(inner.sample_relative(study, trial, joint), inner, study, trial)

    def _completed(
        self, known: Mapping[str, Any], sampler: BaseSampler, study: Study, trial: FrozenTrial
    ) -> dict[str, Any]:
        """Return a value of each active parameter: the known one, or else one that the sampler draws."""
        values: dict[str, Any] = {}
        for name, dist in self._distributions.items():
            if name not in self._space.active(values):
                continue
            given = name in known
            drawn = known[name] if given else sampler.sample_independent(study, trial, name, dist)
            values[name] = self._allowed(name, drawn)
        return values

    def _allowed(self, name: str, drawn: Any) -> Scalar:
        """Return a drawn value, as Python's own number; refuse one that the space does not have."""
        value: Scalar = drawn.item() if isinstance(drawn, np.generic) else drawn
        parameter = self._searched_by_name[name]
        if not parameter.contains(value):
            raise WrongReturn(
                f"the sampler {self._name} drew {value!r} for {name}; allowed: {parameter.describe()}"
            )
        return value

    def _wrong(self, function: str, wanted: str, returned: object) -> WrongReturn:
        kind = type(returned).__name__
        return WrongReturn(f"{function} of the sampler {self._name} must return {wanted}, returned {kind}")

    def _altered(
        self, inner: BaseSampler, seed: int, study: Study, trial: FrozenTrial
    ) -> Iterator[dict[str, Any]]:
        """Yield draws of the sampler in which chance replaces values: first few of them, at last all."""
        rng, chance = np.random.default_rng(seed), RandomSampler(seed)
        bases = [self._draw(inner, study, trial) for _ in range(REDRAWS)]
        for place in range(ALTERED):
            replaced = (place + 1) / ALTERED
            kept = {name: one for name, one in bases[place % REDRAWS].items() if rng.random() >= replaced}
            yield self._completed(kept, chance, study, trial)

    def _untried(self, tried: set[Configuration]) -> Iterator[dict[str, Any]]:
        for values in self._space.grid():
            searched = self._searched(values)
            if frozenset(searched.items()) not in tried:
                yield searched

    def _searched(self, values: Mapping[str, Scalar]) -> dict[str, Any]:
        return {name: value for name, value in values.items() if name in self._distributions}


def _seed_of(seed: int, number: int) -> int:
    digest = hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=4).digest()
    return int.from_bytes(digest)
