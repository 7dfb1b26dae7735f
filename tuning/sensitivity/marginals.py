"""The effect of one parameter or two, averaged over the others: curves, maps, and shares of the variance.

The shares are a functional analysis of variance by Hutter, Hoos and Leyton-Brown (2014). The averages over
the space come from `boxes`. So a parameter counts in the scale in which it was searched, and a conditional
parameter counts within each value of its parents. Noise explains variance too: forests on permuted scores say
how large a share chance gives; see `forest`.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.search.axes import Axis, Stratum, draw_codes
from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.boxes import View, averages, leaves_of, view_weights
from contrasweep.tuning.sensitivity.forest import Forest, spread
from contrasweep.tuning.statistics import Floats, normal_interval

MOST_PAIRED: Final = 6
"""Pairs are formed among this number of parameters: those with the largest shares of the variance."""

DRAWS: Final = 4096


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
        mean, error: predicted mean score at each entry of the grid, and its standard error.
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
        first, second: the parameters along rows and along columns.
        mean, error: the score and its standard error, (first's grid, second's grid).
    """

    first: Axis
    second: Axis
    mean: Floats
    error: Floats


@dataclass(frozen=True)
class Share:
    """The share of the surrogate's variance that one parameter explains, or the interaction of two.

    Attributes:
        parameters: one name or two.
        condition: the parents' values within which the share is taken; empty for the whole space.
        share: of the surrogate's variance there, 0..1.
        by_chance: the largest share that permutations give (19; so chance gives more in 5 % of the cases).
            For a parameter, the scores are permuted. For a pair, it is the largest share of any pair, in
            scores with the additive effects and no interaction: so it holds for all pairs at once.
    """

    parameters: tuple[str, ...]
    condition: Mapping[str, Scalar]
    share: float
    by_chance: float

    @property
    def above_chance(self) -> bool:
        """Whether it explains more than chance gives."""
        return bool(self.share > self.by_chance)

    @property
    def name(self) -> str:
        """The parameter, or the two of a pair, with the condition."""
        return named(" x ".join(self.parameters), self.condition)


def named(parameter: str, condition: Mapping[str, Scalar]) -> str:
    """Return the parameter's name with its condition: `sigma2 (kernel rbf)`."""
    return f"{parameter} ({condition_text(condition)})" if condition else parameter


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
        active = [s.fixed for s in strata if axis.name in s.active]
        found = {tuple((parent, fixed[parent]) for parent in axis.when) for fixed in active}
        views += [View((i,), dict(condition)) for condition in sorted(found)]
    return views


def marginals(forest: Forest) -> list[Marginal]:
    """Return the marginal curve of each parameter; a conditional one has a curve for each condition."""
    views = single_views(forest.axes, forest.strata)
    pairs = zip(views, *_averaged(forest, views), strict=True)
    return [_marginal(forest, view, mean, error) for view, mean, error in pairs]


def _marginal(forest: Forest, view: View, mean: Floats, error: Floats) -> Marginal:
    axis, trials = forest.axes[view.over[0]], forest.trials
    rows = view.covers(forest.axes, trials.codes)
    points = Points(trials.codes[rows, view.over[0]], trials.score[rows], trials.estimated[rows])
    if axis.is_category:
        counts = np.array([np.count_nonzero(points.code == code) for code in axis.grid])
    else:
        counts = np.full(len(axis.grid), len(points.code))
    condition = view.condition_values(forest.axes)
    return Marginal(axis, condition, axis.grid, mean, error, points, counts < enough.CATEGORY)


def pair_maps(forest: Forest, views: Sequence[View]) -> list[PairMap]:
    """Return the map of each pair."""
    pairs = [(forest.axes[view.over[0]], forest.axes[view.over[1]]) for view in views]
    means, errors = _averaged(forest, views)
    return [PairMap(*pair, mean, error) for pair, mean, error in zip(pairs, means, errors, strict=True)]


def _averaged(forest: Forest, views: Sequence[View]) -> tuple[list[Floats], list[Floats]]:
    """Return the mean over each view, and its standard error from the halves."""
    halves = [_averages(half, forest, views) for half in forest.halves]
    errors = [spread(np.stack(of_view)) for of_view in zip(*halves, strict=True)]
    return _averages(forest.whole, forest, views), errors


def _averages(boosted: Any, forest: Forest, views: Sequence[View]) -> list[Floats]:
    return averages(leaves_of(boosted, forest.axes), forest.axes, forest.strata, views)


def variance_shares(forest: Forest) -> list[Share]:
    """Return the share of each parameter, largest first; a conditional one has a share for each condition."""
    views = single_views(forest.axes, forest.strata)
    observed, *chance = _shares_of(forest, [forest.whole, *forest.shuffled], views)
    return _shares(forest, views, observed, np.max(chance, axis=0))


def interaction_shares(forest: Forest, singles: Sequence[Share]) -> tuple[list[View], list[Share]]:
    """Return the pairs among the parameters with the largest shares, and the shares of their interactions.

    Only parameters that can vary together are paired: not one with another that has a single value where
    the first one is active.
    """
    # Shares come largest first, so the first of a parameter is its largest.
    names = list(dict.fromkeys(single.parameters[0] for single in singles))[:MOST_PAIRED]
    chosen = [i for i, axis in enumerate(forest.axes) if axis.name in names]
    pairs = map(View, itertools.combinations(chosen, 2))
    views = [view for view in pairs if _varies(view_weights(forest.axes, forest.strata, view))]
    if not views:
        return [], []
    observed, *chance = _shares_of(forest, [forest.whole, *forest.additive], views)
    return views, _shares(forest, views, observed, np.full(len(views), np.max(chance)))


def _varies(weights: Floats) -> bool:
    """Return whether draws fall into several rows and into several columns of a map."""
    drawn = weights > 0
    return bool(drawn.any(axis=1).sum() > 1 and drawn.any(axis=0).sum() > 1)


def _shares(forest: Forest, views: Sequence[View], observed: Floats, by_chance: Floats) -> list[Share]:
    found = [
        Share(tuple(forest.axes[i].name for i in view.over), view.condition_values(forest.axes), share, least)
        for view, share, least in zip(views, observed.tolist(), by_chance.tolist(), strict=True)
    ]
    return sorted(found, key=lambda one: (-one.share, one.name))


def _shares_of(forest: Forest, fitted: Sequence[Any], views: Sequence[View]) -> Floats:
    """Return the share of the surrogate's variance that each view has in fitted trees, (fitted, views)."""
    weights = [view_weights(forest.axes, forest.strata, view) for view in views]
    variances = np.array([[*map(_variance, _averages(one, forest, views), weights)] for one in fitted])
    total = _totals(forest, views)
    shares = np.divide(variances, total, out=np.zeros_like(variances), where=total > 0)
    return np.asarray(np.minimum(shares, 1.0))


def _variance(mean: Floats, weight: Floats) -> float:
    """Return the variance of a curve, or the variance of a map beyond the sum of its two margins."""
    known = np.nan_to_num(mean)
    effect = known - float((known * weight).sum())
    if mean.ndim == 2:
        by_row, by_column = (_margin(effect, weight, axis) for axis in (1, 0))
        effect = effect - by_row - by_column
    return float((effect**2 * weight).sum())


def _margin(effect: Floats, weight: Floats, axis: int) -> Floats:
    total: Floats = (effect * weight).sum(axis, keepdims=True)
    weights = weight.sum(axis, keepdims=True)
    return np.asarray(np.divide(total, weights, out=np.zeros_like(total), where=weights > 0))


def _totals(forest: Forest, views: Sequence[View]) -> Floats:
    """Return the variance of the surrogate over draws from the part of the space that each view covers."""
    found: dict[tuple[int, ...], float] = {}
    parts = []
    for view in views:
        part = tuple(
            place
            for place, stratum in enumerate(forest.strata)
            if stratum.meets(view.condition) and view.is_active(forest.axes, stratum)
        )
        parts.append(part)
        if part not in found:
            found[part] = _total(forest, [forest.strata[place] for place in part])
    return np.array([found[part] for part in parts])


def _total(forest: Forest, strata: Sequence[Stratum]) -> float:
    weight = sum(s.weight for s in strata)
    rescaled = tuple(replace(s, weight=s.weight / weight) for s in strata)
    codes = draw_codes(forest.axes, rescaled, DRAWS, np.random.default_rng(0))
    return float(forest.predict(codes).var())
