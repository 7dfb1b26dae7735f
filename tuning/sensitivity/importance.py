"""Importance by PED-ANOVA: which parameters set the best trials apart (Watanabe et al. 2023).

PED-ANOVA compares two densities of a parameter: among the best trials, and among all ended trials. So it
needs no model of the score, and it does not matter where the search looked most. A stopped or failed trial
counts as not one of the best. A conditional parameter is judged among the trials that meet its condition.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import ndtr

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.axes import Axis, Floats
from contrasweep.tuning.sensitivity.boxes import View
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.marginals import named, single_views
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.statistics import LEVEL, percentile_interval

BEST_SHARE: Final = 0.1
FEWEST_BEST: Final = 5
RESAMPLES: Final = 200
STEPS: Final = 50
"""The number of cells of a continuous axis."""

_SMALLEST_WIDTH: Final = 0.5 / 1.64
_PRIOR: Final = 1.0


@dataclass(frozen=True)
class Importance:
    """How much one parameter by itself decides whether a trial is among the best.

    Attributes:
        parameter: its name.
        condition: the parents' values under which it is judged; empty for all trials.
        share: the share of the variance of "is among the best" that it explains by itself, 0..1.
        low, high: its 95 % bootstrap interval.
        by_chance: 95 % point of the share when the best are drawn at random.
        first: the share of bootstrap samples in which it is the most important; None under a condition.
        trials, best: the number of ended trials that were compared, and of those that count as the best.
    """

    parameter: str
    condition: Mapping[str, Scalar]
    share: float
    low: float
    high: float
    by_chance: float
    first: float | None
    trials: int
    best: int

    @property
    def name(self) -> str:
        """The parameter, with its condition where it has one."""
        return named(self.parameter, self.condition)

    @property
    def above_chance(self) -> bool:
        """Whether it sets the best trials apart more than a random choice of trials would."""
        return self.share > self.by_chance


def importances(observations: Observations) -> list[Importance | TooFew]:
    """Return the importance of each parameter, in the order of the axes; TooFew where trials are too few.

    A conditional parameter has an entry for each condition. A trial that was stopped, failed or has no score
    is not among the best.
    """
    ended = observations.over
    codes = observations.codes[ended]
    score = np.where(np.isfinite(observations.score), observations.score, -np.inf)[ended]
    order = np.lexsort((*np.nan_to_num(codes, nan=-1.0).T, -score))
    codes, score = codes[order], score[order]
    found: list[Importance | TooFew] = []
    overall: dict[int, tuple[Importance, Floats]] = {}
    for place, view in enumerate(single_views(observations.axes, observations.strata)):
        rows = view.covers(observations.axes, codes)
        result = _judge(observations.axes, view, codes[rows], score[rows])
        if isinstance(result, TooFew):
            found.append(result)
            continue
        found.append(result[0])
        if not view.condition:
            overall[place] = result
    if overall:
        # How often each comes first. All were resampled with the same seed, so the samples belong together.
        first = np.argmax(np.stack([resampled for _, resampled in overall.values()]), axis=0)
        for number, (place, (importance, _)) in enumerate(overall.items()):
            found[place] = replace(importance, first=float(np.mean(first == number)))
    return found


def pearson_share(counts: Floats, best: Floats, widths: tuple[float, float] | None) -> float:
    """Return the share of the variance of "is among the best" that a parameter explains by itself.

    The Pearson divergence D of the two densities gives the variance of the marginal of the indicator as
    (quantile)^2 D; the indicator's own variance is quantile (1 - quantile).

    Args:
        counts: the number of trials in each cell.
        best: the number of the best trials in each cell.
        widths: of the Parzen windows for all and for the best, in cells; None for categories.
    """
    quantile = float(best.sum() / counts.sum())
    if quantile in (0, 1):
        return 0.0
    width, width_best = widths or (None, None)
    everywhere = density(counts, width)
    divergence = float(everywhere @ (density(best, width_best) / everywhere - 1) ** 2)
    return min(1.0, divergence * quantile / (1 - quantile))


def _judge(
    axes: tuple[Axis, ...], view: View, codes: Floats, score: Floats
) -> tuple[Importance, Floats] | TooFew:
    """Judge one parameter among the trials of a view, best first; also return its resampled shares."""
    count = len(score)
    if count < enough.IMPORTANCE:
        return TooFew(count, enough.IMPORTANCE, "ended trials")
    wanted = max(FEWEST_BEST, math.ceil(BEST_SHARE * count))
    completed = int(np.isfinite(score).sum())
    if completed < wanted:
        return TooFew(completed, wanted, "completed trials")
    axis = axes[view.over[0]]
    cell, number = cells(axis, codes[:, view.over[0]])
    onehot = np.eye(number)[cell]
    counts, top = onehot.sum(axis=0), onehot[:wanted].sum(axis=0)
    rng = np.random.default_rng(0)
    resampled = _resampled_shares(onehot, wanted, _widths(axis, counts, top), rng)
    low, high = percentile_interval(resampled)
    # The best drawn at random.
    best = np.arange(count) < wanted
    drawn = np.stack([rng.permutation(best) for _ in range(RESAMPLES)]).astype(float) @ onehot
    chance = [pearson_share(counts, random, _widths(axis, counts, random)) for random in drawn]
    importance = Importance(
        parameter=axis.name,
        condition=view.condition_values(axes),
        share=pearson_share(counts, top, _widths(axis, counts, top)),
        low=float(low),
        high=float(high),
        by_chance=float(np.quantile(chance, LEVEL)),
        first=None,
        trials=count,
        best=wanted,
    )
    return importance, resampled


def _widths(axis: Axis, counts: Floats, best: Floats) -> tuple[float, float] | None:
    return None if axis.is_category else (bandwidth(counts), bandwidth(best))


def _resampled_shares(
    onehot: Floats, wanted: int, widths: tuple[float, float] | None, rng: np.random.Generator
) -> Floats:
    """Return the share on each bootstrap sample of the trials.

    Samples repeat trials, and windows that followed them would narrow around the repeats: the widths stay.
    """
    count = len(onehot)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(float)
    # The best of a sample: its first trials, whose weights sum to `wanted`.
    best = np.clip(wanted - (np.cumsum(weights, axis=1) - weights), 0, weights)
    pairs = zip(weights @ onehot, best @ onehot, strict=True)
    return np.array([pearson_share(everyone, top, widths) for everyone, top in pairs])


def cells(axis: Axis, codes: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], int]:
    """Return the cell of each code, and the number of cells."""
    if axis.is_category:
        return codes.astype(np.int64), len(axis.choices)
    if axis.is_integer and len(axis.grid) == axis.high - axis.low + 1:
        return np.abs(codes[:, None] - axis.grid).argmin(axis=1), len(axis.grid)
    # A value half-way between two cells belongs to the lower.
    return np.clip(np.ceil(codes * (STEPS - 1) - 0.5), 0, STEPS - 1).astype(np.int64), STEPS


def density(counts: Floats, width: float | None) -> Floats:
    """Return the probability of each cell.

    Args:
        counts: the (weighted) number of trials in each cell; at least one is not 0.
        width: of the Parzen windows, in cells; None for categories, which have no order.
    """
    total = float(counts.sum())
    if width is None:
        # Optuna 5.0 smooths by the number of *distinct* values seen, not of trials: of three categories, one
        # that decides everything then gets a tenth of its share.
        return np.asarray((counts + _PRIOR / len(counts)) / (total + _PRIOR))
    cell = np.flatnonzero(counts).astype(float)
    centre = np.append(cell, (len(counts) - 1) / 2)
    widths = np.append(np.full(len(cell), width), len(counts))
    edges = np.arange(len(counts) + 1) - 0.5
    below = ndtr((edges[:, None] - centre) / widths)
    mass = np.diff(below, axis=0) / (below[-1] - below[0])
    return np.asarray(mass @ np.append(counts[counts > 0], _PRIOR) / (total + _PRIOR))


def bandwidth(counts: Floats) -> float:
    """Return the width of the Parzen windows, in cells, by Scott's rule.

    The rule takes the smaller of the standard deviation and the scaled distance of the quartiles. The width
    is at least such that a window covers its own cell.
    """
    cell, weight, total = np.flatnonzero(counts).astype(float), counts[counts > 0], float(counts.sum())
    mean = cell @ weight / total
    deviation = np.sqrt((cell - mean) ** 2 @ weight / max(1.0, total - 1))
    cumulated = np.cumsum(weight)
    lower = np.searchsorted(cumulated, total // 4, side="left")
    upper = min(len(cell) - 1, int(np.searchsorted(cumulated, total * 3 // 4, side="right")))
    scott = 1.059 * min((cell[upper] - cell[lower]) / 1.34, deviation) * total**-0.2
    return max(float(scott), _SMALLEST_WIDTH)
