"""Gains from tuning over the defaults (Probst et al. 2019), and the region that is as good as the best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity.axes import Axis, Floats, changes, default_row, values_of
from contrasweep.tuning.sensitivity.forest import Forest, draw_codes, spread
from contrasweep.tuning.statistics import normal_interval

DRAWS: Final = 2000


@dataclass(frozen=True)
class Gain:
    """The gain in score over the defaults.

    Attributes:
        parameter: the one that is tuned while the others keep their defaults; empty if all are tuned.
        gain: expected, in the score's units.
        low: lower end of the 95 % interval.
        high: upper end.
        default: the parameter's default; None if all are tuned.
        best: its best value, the others at their defaults; None if all are tuned.
    """

    parameter: str
    gain: float
    low: float
    high: float
    default: Scalar | None
    best: Scalar | None


@dataclass(frozen=True)
class Tunability:
    """Gains that the surrogate predicts.

    Each half of the trials chooses values, and the other half judges the choice. Judged by the trials that
    led to it, a choice looks better than it is. So pure noise gains nothing.

    Attributes:
        parameters: the gain of each parameter that is active under the defaults, largest first.
        jointly: the gain of tuning all parameters.
        default_score: the predicted score of the defaults.
        measured_default: the score of trial 0, which ran the defaults; None if it has no score.
        best: the trials' configuration with the highest predicted score.
    """

    parameters: tuple[Gain, ...]
    jointly: Gain
    default_score: float
    measured_default: float | None
    best: Mapping[str, Scalar]


def tunability(forest: Forest) -> Tunability:
    """Return the gains of tuning that a study's surrogate predicts."""
    axes, trials = forest.axes, forest.trials
    default = default_row(axes)
    gains, everything = [], [trials.codes, draw_codes(axes, forest.strata, DRAWS, np.random.default_rng(0))]
    for index, axis in enumerate(axes):
        if np.isnan(default[index]):
            continue
        options = changes(axes, default, index)
        everything.append(options)
        gain, low, high = _cross_fitted(forest, default, options)
        best = axis.value(float(axis.grid[int(np.argmax(forest.predict(options)))]))
        gains.append(Gain(axis.name, gain, low, high, axis.default, best))
    gain, low, high = _cross_fitted(forest, default, np.concatenate(everything))
    measured = trials.score[trials.is_default & ~trials.estimated]
    best_row = trials.codes[int(np.argmax(forest.predict(trials.codes)))]
    return Tunability(
        parameters=tuple(sorted(gains, key=lambda one: -one.gain)),
        jointly=Gain("", gain, low, high, None, None),
        default_score=float(forest.predict(default[None])[0]),
        measured_default=float(measured[0]) if len(measured) else None,
        best=values_of(axes, best_row),
    )


def _cross_fitted(forest: Forest, default: Floats, options: Floats) -> tuple[float, float, float]:
    """Return the mean gain of the options that one half chooses and the other judges, and its interval."""
    chosen = np.argmax(forest.predict_halves(options), axis=1)
    rows = np.concatenate([default[None], options[chosen]])
    scores = forest.predict_halves(rows)
    halves = np.arange(len(chosen))
    # Halves 2i and 2i + 1 share no trial: each judges the other's choice.
    judged = halves ^ 1
    gains = scores[halves, 1 + judged] - scores[halves, 0]
    mean, error = float(gains.mean()), float(spread(gains))
    return mean, *normal_interval(mean, error)


@dataclass(frozen=True)
class Region:
    """The values of one parameter that are as good as the best, the other parameters at their best.

    As good means a predicted score within one standard error of the best.

    Attributes:
        axis: the parameter.
        best: its value in the best configuration.
        low: the lower end of the range around `best`; None for a category.
        high: the upper end.
        choices: the categories that are as good; empty for a number.
        share: the share of the search range (in units) or of the categories that is as good.
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
        best: the trials' configuration with the highest predicted score.
        score: that prediction.
        error: its standard error.
        regions: one for each parameter that is active there.
    """

    best: Mapping[str, Scalar]
    score: float
    error: float
    regions: tuple[Region, ...]


def robustness(forest: Forest) -> Robustness:
    """Return the robust region of each parameter that a study's surrogate predicts."""
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
    low, high = (
        (edges[first], edges[last + 1]) if not axis.is_integer else (axis.grid[first], axis.grid[last])
    )
    share = float(edges[last + 1] - edges[first])
    return Region(
        axis, axis.value(best[index]), axis.value(float(low)), axis.value(float(high)), (), share, scores
    )


def _run_around(good: np.ndarray[tuple[int], np.dtype[np.bool_]], start: int) -> tuple[int, int]:
    """Return the first and last index of the unbroken run of good entries around `start`."""
    first = last = start
    while first > 0 and good[first - 1]:
        first -= 1
    while last < len(good) - 1 and good[last + 1]:
        last += 1
    return first, last
