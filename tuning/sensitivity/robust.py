"""Robust regions: how far each parameter can move from the best configuration and still be as good."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity.axes import Axis, Floats
from contrasweep.tuning.sensitivity.configurations import changes, values_of
from contrasweep.tuning.sensitivity.forest import Forest, spread


@dataclass(frozen=True)
class Region:
    """Values of one parameter, the others at their best, whose predicted score is within one standard error
    of the best.

    Attributes:
        axis: the parameter.
        best: its value in the best configuration.
        low: of a number, the lower end of the range around `best`, in the parameter's own scale.
        high: the upper end.
        choices: of a category, the values that are as good.
        share: of the search range, in units, or of the choices.
        score: predicted score over `axis.grid`.
    """

    axis: Axis
    best: Scalar
    low: Scalar | None
    high: Scalar | None
    choices: tuple[Scalar, ...]
    share: float
    score: Floats


@dataclass(frozen=True)
class Robustness:
    """The regions around the best configuration.

    Attributes:
        best: the trial's configuration with the highest predicted score.
        score: that prediction.
        error: its standard error.
        regions: one a parameter that is active there.
    """

    best: Mapping[str, Scalar]
    score: float
    error: float
    regions: tuple[Region, ...]


def robustness(forest: Forest) -> Robustness:
    """Return the robust region of each parameter, by the surrogate of a study."""
    axes, trials = forest.axes, forest.trials
    best = trials.codes[int(np.argmax(forest.predict(trials.codes)))]
    score = float(forest.predict(best[None])[0])
    error = float(spread(forest.predict_halves(best[None]))[0])
    regions = [
        _region(forest, best, index, score - error) for index in range(len(axes)) if np.isfinite(best[index])
    ]
    return Robustness(values_of(axes, best), score, error, tuple(regions))


def _region(forest: Forest, best: Floats, index: int, least: float) -> Region:
    axis = forest.axes[index]
    scores = forest.predict(changes(forest.axes, best, index))
    good = scores >= least
    start = int(np.argmin(np.abs(axis.grid - best[index])))
    good[start] = True
    if axis.is_category:
        choices = tuple(axis.value(float(code)) for code in axis.grid[good])
        return Region(axis, axis.value(best[index]), None, None, choices, float(good.mean()), scores)
    first, last = _run_around(good, start)
    edges = np.concatenate([[0.0], np.cumsum(axis.weights)])
    low, high = (edges[first], edges[last + 1]) if not axis.integer else (axis.grid[first], axis.grid[last])
    share = float(edges[last + 1] - edges[first])
    return Region(
        axis, axis.value(best[index]), axis.value(float(low)), axis.value(float(high)), (), share, scores
    )


def _run_around(good: np.ndarray[tuple[int], np.dtype[np.bool_]], start: int) -> tuple[int, int]:
    """First and last index of the unbroken run of good entries that holds `start`."""
    first = last = start
    while first > 0 and good[first - 1]:
        first -= 1
    while last < len(good) - 1 and good[last + 1]:
        last += 1
    return first, last
