"""Importance by PED-ANOVA: which parameters set the best trials apart (Watanabe et al. 2023).

PED-ANOVA compares two densities of a parameter: among the best trials, and among all ended trials. So it
needs no model of the score. A failed trial counts as not one of the best; a trial that was stopped before has
an estimated score (see `scores`). A conditional parameter is judged among the trials that meet its condition.

The densities say where the best trials are, not why: a search that learns repeats all parameters of its good
trials. Whether a parameter matters is judged by `effects`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from scipy.special import ndtr

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.search.axes import Axis, Stratum
from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.boxes import View
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.marginals import named, single_views
from contrasweep.tuning.sensitivity.scores import DRAWS, ScoredTrials
from contrasweep.tuning.statistics import LEVEL, Floats, Ints, percentile_interval

BEST_SHARE: Final = 0.1
FEWEST_BEST: Final = 8
"""With the 5 best of 24, the main parameter of random searches came first in 87 %; with 8, in 98 %."""

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
        trials, best: the number of trials that were compared, and of those that count as the best.
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


def importances(
    axes: tuple[Axis, ...], strata: Sequence[Stratum], trials: ScoredTrials
) -> list[Importance | TooFew]:
    """Return the importance of each parameter, in the order of the axes; TooFew where trials are too few.

    A conditional parameter has an entry for each condition.
    """
    lost = np.full((len(trials.draws), len(trials.lost)), -np.inf)
    draws = np.concatenate([trials.draws, lost], axis=1)
    codes = np.concatenate([trials.codes, trials.lost])
    order = np.lexsort((*np.nan_to_num(codes, nan=-1.0).T, -draws.mean(axis=0)))
    codes, draws = codes[order], _ties_broken(draws[:, order])
    found: list[Importance | TooFew] = []
    overall: dict[int, tuple[Importance, Floats]] = {}
    for place, view in enumerate(single_views(axes, strata)):
        rows = view.covers(axes, codes)
        result = _judge(axes, view, codes[rows], draws[:, rows])
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


def _ties_broken(draws: Floats) -> Floats:
    """Return the places of the scores, (draws, trials), larger for better ones; equal scores at random.

    Otherwise the values of the parameters would decide which of the equal trials are among the best. A single
    draw is repeated, so that no one order of them decides.
    """
    if len(draws) == 1:
        draws = np.repeat(draws, DRAWS, axis=0)
    random = np.random.default_rng(1).random(draws.shape)
    places = np.argsort(np.lexsort((random, draws), axis=1), axis=1).astype(float)
    return np.where(np.isfinite(draws), places, -np.inf)


def pearson_share(counts: Floats, best: Floats, widths: tuple[Floats, Floats] | None) -> Floats:
    """Return the share of the variance of "is among the best" that a parameter explains by itself.

    The Pearson divergence D of the two densities gives the variance of the marginal of the indicator as
    (quantile)^2 D; the indicator's own variance is quantile (1 - quantile).

    Args:
        counts: the number of trials in each cell, (..., cells).
        best: the number of the best trials in each cell, (..., cells); some, and not all.
        widths: of the Parzen windows for all and for the best, in cells, (...); None for categories.
    """
    quantile = best.sum(axis=-1) / counts.sum(axis=-1)
    width, width_best = widths or (None, None)
    everywhere = density(counts, width)
    divergence = (everywhere * (density(best, width_best) / everywhere - 1) ** 2).sum(axis=-1)
    return np.asarray(np.minimum(1.0, divergence * quantile / (1 - quantile)))


def _judge(
    axes: tuple[Axis, ...], view: View, codes: Floats, draws: Floats
) -> tuple[Importance, Floats] | TooFew:
    """Judge one parameter among the trials of a view; also return its resampled shares.

    The trials are about in the order of their scores, (draws, trials), the best first.
    """
    count = draws.shape[1]
    if count < enough.IMPORTANCE:
        return TooFew(count, enough.IMPORTANCE, "ended trials")
    wanted = max(FEWEST_BEST, math.ceil(BEST_SHARE * count))
    scored = int(np.isfinite(draws[0]).sum())
    if scored < wanted:
        return TooFew(scored, wanted, "trials with a score")
    axis = axes[view.over[0]]
    cell, number = cells(axis, codes[:, view.over[0]])
    onehot = np.eye(number)[cell]
    ranked = np.argsort(-draws, axis=1, kind="stable")
    counts, top = onehot.sum(axis=0), onehot[ranked[:, :wanted]].sum(axis=1)
    rng = np.random.default_rng(0)
    resampled = _resampled_shares(onehot, ranked, wanted, _widths(axis, counts, top), rng)
    low, high = percentile_interval(resampled)
    # The best drawn at random.
    best = np.arange(count) < wanted
    drawn = np.stack([rng.permutation(best) for _ in range(RESAMPLES)]).astype(float) @ onehot
    importance = Importance(
        parameter=axis.name,
        condition=view.condition_values(axes),
        share=float(pearson_share(counts, top, _widths(axis, counts, top)).mean()),
        low=float(low),
        high=float(high),
        by_chance=float(np.quantile(pearson_share(counts, drawn, _widths(axis, counts, drawn)), LEVEL)),
        first=None,
        trials=count,
        best=wanted,
    )
    return importance, resampled


def _widths(axis: Axis, counts: Floats, best: Floats) -> tuple[Floats, Floats] | None:
    return None if axis.is_category else (bandwidth(counts), bandwidth(best))


def _resampled_shares(
    onehot: Floats,
    ranked: Ints,
    wanted: int,
    widths: tuple[Floats, Floats] | None,
    rng: np.random.Generator,
) -> Floats:
    """Return the share on each bootstrap sample of the trials; each sample takes another draw of the scores.

    Samples repeat trials, and windows that followed them would narrow around the repeats: the widths stay.

    Args:
        onehot: the cell of each trial, (trials, cells).
        ranked: the places of the trials, the best first, (draws, trials).
        wanted: the number of trials that count as the best.
        widths: of the Parzen windows.
        rng: the source of the samples.
    """
    count, draw = ranked.shape[1], np.arange(RESAMPLES) % len(ranked)
    weights = rng.multinomial(count, np.full(count, 1 / count), size=RESAMPLES).astype(float)
    # The best of a sample: its first trials, whose weights sum to `wanted`.
    best = np.clip(wanted - (np.cumsum(weights, axis=1) - weights), 0, weights)
    everyone, top = (
        np.stack([own @ onehot[ranked[place]] for own, place in zip(given, draw, strict=True)])
        for given in (weights, best)
    )
    return pearson_share(everyone, top, widths and (widths[0], widths[1][draw]))


def cells(axis: Axis, codes: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], int]:
    """Return the cell of each code, and the number of cells."""
    if axis.is_category:
        return codes.astype(np.int64), len(axis.choices)
    if axis.is_integer and len(axis.grid) == axis.high - axis.low + 1:
        return np.abs(codes[:, None] - axis.grid).argmin(axis=1), len(axis.grid)
    # A value half-way between two cells belongs to the lower.
    return np.clip(np.ceil(codes * (STEPS - 1) - 0.5), 0, STEPS - 1).astype(np.int64), STEPS


def density(counts: Floats, width: Floats | None) -> Floats:
    """Return the probability of each cell.

    Args:
        counts: the (weighted) number of trials in each cell, (..., cells); at least one is not 0.
        width: of the Parzen windows, in cells, (...); None for categories, which have no order.
    """
    total, number = counts.sum(axis=-1, keepdims=True), counts.shape[-1]
    if width is None:
        # Optuna 5.0 smooths by the number of *distinct* values seen, not of trials: of three categories, one
        # that decides everything then gets a tenth of its share.
        return np.asarray((counts + _PRIOR / number) / (total + _PRIOR))
    # The share of a window in the cells around it, from -number to number cells away.
    steps = np.arange(-number, number + 1)
    below = ndtr((steps - 0.5) / np.asarray(width)[..., None])
    cell = np.arange(number)
    inside = below[..., 2 * number - cell] - below[..., number - cell]
    away = cell[None, :] - cell[:, None] + number
    mass = np.einsum("...c,...ce->...e", counts / inside, np.diff(below, axis=-1)[..., away])
    prior = np.diff(ndtr((np.arange(number + 1) - 0.5 - (number - 1) / 2) / number))
    return np.asarray((mass + _PRIOR * prior / prior.sum()) / (total + _PRIOR))


def bandwidth(counts: Floats) -> Floats:
    """Return the width of the Parzen windows, in cells, by Scott's rule, (...), for counts (..., cells).

    The rule takes the smaller of the standard deviation and the scaled distance of the quartiles. The width
    is at least such that a window covers its own cell.
    """
    total, number = counts.sum(axis=-1), counts.shape[-1]
    cell = np.arange(number)
    mean = (counts @ cell / total)[..., None]
    deviation = np.sqrt((counts * (cell - mean) ** 2).sum(axis=-1) / np.maximum(1.0, total - 1))
    cumulated = np.cumsum(counts, axis=-1)
    # The first occupied cell with a quarter of the trials up to it, and the first with more than three.
    quarter = np.maximum(total // 4, np.finfo(float).tiny)
    lower = (cumulated < quarter[..., None]).sum(axis=-1)
    last = number - 1 - np.argmax(np.flip(counts, axis=-1) > 0, axis=-1)
    upper = np.minimum(last, (cumulated <= (total * 3 // 4)[..., None]).sum(axis=-1))
    scott = 1.059 * np.minimum((upper - lower) / 1.34, deviation) * total**-0.2
    return np.asarray(np.maximum(scott, _SMALLEST_WIDTH))
