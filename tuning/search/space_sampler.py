"""The sampler behind `SearchStudy`: whole configurations of a space, drawn by one of `SAMPLERS`."""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.search.sampler import Sampler, distribution

Configuration = frozenset[tuple[str, Scalar]]
REDRAWS = 10


class SpaceSampler(BaseSampler):
    """Proposes a whole configuration at once, parents first, and only the parameters that are active.

    Trial 0 runs the defaults. Each later trial draws from a generator seeded by (seed, trial number), so its
    proposal depends only on the seed, its number and the trials of the study: a search rebuilt from its
    trials goes on as if it had never stopped, and never draws an earlier trial's numbers again.

    In a finite space, a configuration that the study already holds is drawn again, up to `REDRAWS` times, and
    then replaced by the first untried one of `Space.grid`. A configuration is repeated only when none is
    left. An exhaustive sampler repeats nothing by itself, and its draws are taken as they are.

    The study's first `earlier` trials are those of other searches: its own are numbered after them.
    """

    def __init__(self, space: Space, sampler: Sampler, seed: int, trials: int, earlier: int = 0) -> None:
        self._space = space
        self._seed = seed
        self._earlier = earlier
        self._draw_of = sampler.start(space, trials)
        self._distributions = {parameter.name: distribution(parameter) for parameter in space.searched}
        self._redraws = space.size() is not None and not sampler.exhaustive

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return every searched parameter: `sample_relative` settles them all."""
        return self._distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the searched, active values that `trial` should run."""
        number = trial.number - self._earlier
        if number == 0:
            return self._searched(self._space.defaults())
        inner = self._draw_of(_seed_of(self._seed, number), number)
        drawn = self._draw(inner, study, trial)
        if not self._redraws:
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


def _seed_of(seed: int, number: int) -> int:
    digest = hashlib.blake2b(f"{seed}/{number}".encode(), digest_size=4).digest()
    return int.from_bytes(digest)
