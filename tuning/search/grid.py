"""The `grid` sampler: it goes through `Space.grid` point by point, the defaults first."""

from collections.abc import Mapping
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.search.sampler import Draw, Sampler, distribution

LARGEST_GRID = 100_000


class OnePoint(RandomSampler):
    """Proposes one point of the grid."""

    def __init__(self, point: Mapping[str, Scalar], space: Space) -> None:
        super().__init__()
        self._point = point
        self._space = space

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the parameters of the point."""
        return {parameter.name: distribution(parameter) for parameter in self._space.searched}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return the values of the point."""
        return {name: value for name, value in self._point.items() if name in search_space}


def _start(space: Space, trials: int) -> Draw:
    defaults = space.defaults()
    points = [defaults, *(point for point in space.grid() if point != defaults)]

    def draw(seed: int, number: int) -> OnePoint:
        if number >= len(points):
            raise InputError(f"the grid has {len(points)} points, and all of them were proposed")
        return OnePoint(points[number], space)

    return draw


def _check(space: Space, objectives: int) -> None:
    ranges = ", ".join(parameter.name for parameter in space.searched if parameter.size() is None)
    finite = "--grid-points N cuts each range into N levels; a space file (--space) may give choices instead"
    if ranges:
        raise InputError(f"a grid needs a finite space, and these are ranges: {ranges}. {finite}.")
    size = space.size() or 0
    if size > LARGEST_GRID:
        raise InputError(
            f"a grid over {space.origin} has {size:,} points, more than {LARGEST_GRID:,}. {finite}."
        )


SAMPLER = Sampler("grid", _start, _check, exhaustive=True, learns=False)
