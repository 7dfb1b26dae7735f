"""Marginal curves and maps: the score as a function of one parameter, or two, averaged over the others."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.axes import Axis, Floats, Stratum
from contrasweep.tuning.sensitivity.boxes import View, averages, leaves_of
from contrasweep.tuning.sensitivity.forest import Forest, spread
from contrasweep.tuning.statistics import normal_interval

MOST_PAIRED: Final = 6
"""Pairs are formed among this number of parameters: those with the largest shares of the variance."""


@dataclass(frozen=True)
class Points:
    """The trials behind a curve: values in units, scores, and whether a score is an estimate."""

    code: Floats
    score: Floats
    estimated: NDArray[np.bool_]


@dataclass(frozen=True)
class Marginal:
    """Mean score over one parameter; the others are averaged as a random search draws them.

    Attributes:
        axis: the parameter.
        condition: the parents' values under which it holds, by name; empty for all trials.
        code: the grid, in units.
        mean: predicted mean score at each entry of the grid.
        error: its standard error.
        points: the trials.
        thin: the entries of the grid with too few trials behind them: a category with fewer than
            `enough.CATEGORY`, or all entries of a number where the condition has fewer.
    """

    axis: Axis
    condition: Mapping[str, Scalar]
    code: Floats
    mean: Floats
    error: Floats
    points: Points
    thin: NDArray[np.bool_]

    @property
    def low(self) -> Floats:
        """Lower end of the pointwise 95 % interval."""
        return normal_interval(self.mean, self.error)[0]

    @property
    def high(self) -> Floats:
        """Upper end of the pointwise 95 % interval."""
        return normal_interval(self.mean, self.error)[1]

    @property
    def name(self) -> str:
        """The parameter, with its condition where it has one."""
        return named(self.axis.name, self.condition)


@dataclass(frozen=True)
class PairMap:
    """Mean score over two parameters; NaN where they are never active together.

    Attributes:
        first: the parameter along rows.
        second: the parameter along columns.
        mean: (first's grid, second's grid).
        error: its standard error.
    """

    first: Axis
    second: Axis
    mean: Floats
    error: Floats


def named(parameter: str, condition: Mapping[str, Scalar]) -> str:
    """Return the parameter's name with its condition: `sigma2 (kernel rbf)`."""
    held = condition_text(condition)
    return f"{parameter} ({held})" if held else parameter


def condition_text(condition: Mapping[str, Scalar]) -> str:
    """Return a condition in words: `kernel rbf`; an empty text for none."""
    return ", ".join(f"{parent} {value}" for parent, value in condition.items())


def by_parameter(curves: Iterable[Marginal]) -> dict[str, list[Marginal]]:
    """Return the curves of each parameter; one that depends on others has a curve for each condition."""
    groups: dict[str, list[Marginal]] = {}
    for curve in curves:
        groups.setdefault(curve.axis.name, []).append(curve)
    return groups


def single_views(axes: tuple[Axis, ...], strata: Sequence[Stratum]) -> list[View]:
    """Return a view for each parameter; a conditional parameter has one for each of its conditions."""
    views = []
    for i, axis in enumerate(axes):
        found = {
            tuple((parent, s.fixed[parent]) for parent in axis.when) for s in strata if axis.name in s.active
        }
        views += [View((i,), dict(condition)) for condition in sorted(found)]
    return views


def pair_views(axes: tuple[Axis, ...], strata: Sequence[Stratum], chosen: Sequence[int]) -> list[View]:
    """Return a view for each two of the chosen axes that can be active together."""
    pairs = itertools.combinations(sorted(chosen), 2)
    return [
        View(pair)
        for pair in pairs
        if any(axes[pair[0]].name in s.active and axes[pair[1]].name in s.active for s in strata)
    ]


def marginals(forest: Forest) -> list[Marginal]:
    """Return the marginal curve of each parameter; a conditional one has a curve for each condition."""
    views = single_views(forest.axes, forest.strata)
    means, errors = _averaged(forest, views)
    return [
        _marginal(forest, view, mean, error) for view, mean, error in zip(views, means, errors, strict=True)
    ]


def pair_maps(forest: Forest, views: Sequence[View]) -> list[PairMap]:
    """Return the map of each pair."""
    means, errors = _averaged(forest, views)
    return [
        PairMap(forest.axes[view.over[0]], forest.axes[view.over[1]], mean, error)
        for view, mean, error in zip(views, means, errors, strict=True)
    ]


def _averaged(forest: Forest, views: Sequence[View]) -> tuple[list[Floats], list[Floats]]:
    """Return the mean over each view, and its standard error from the halves."""
    halves = [forest_averages(half, forest, views) for half in forest.halves]
    errors = [spread(np.stack([half[v] for half in halves])) for v in range(len(views))]
    return forest_averages(forest.whole, forest, views), errors


def forest_averages(boosted: Any, forest: Forest, views: Sequence[View]) -> list[Floats]:
    """Return the curve or map of each view from boosted trees over the forest's axes."""
    return averages(leaves_of(boosted, forest.axes), forest.axes, forest.strata, views)


def _marginal(forest: Forest, view: View, mean: Floats, error: Floats) -> Marginal:
    axis = forest.axes[view.over[0]]
    trials = forest.trials
    rows = view.covers(forest.axes, trials.codes)
    points = Points(trials.codes[rows, view.over[0]], trials.score[rows], trials.estimated[rows])
    if axis.is_category:
        counts = np.array([np.count_nonzero(points.code == code) for code in axis.grid])
    else:
        counts = np.full(len(axis.grid), len(points.code))
    return Marginal(
        axis, view.condition_values(forest.axes), axis.grid, mean, error, points, counts < enough.CATEGORY
    )
