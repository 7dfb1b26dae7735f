"""Functional analysis of variance: how much of the surrogate's variance each parameter and pair explains.

The method is by Hutter, Hoos and Leyton-Brown (2014). The averages over the space come from `boxes`. So
a parameter counts in the scale in which it was searched, and a conditional parameter counts within each value
of its parents. Noise explains variance too: forests on permuted scores say how large a share chance gives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity.axes import Floats, Stratum
from contrasweep.tuning.sensitivity.boxes import View, view_weights
from contrasweep.tuning.sensitivity.forest import Forest, draw_codes
from contrasweep.tuning.sensitivity.marginals import (
    MOST_PAIRED,
    forest_averages,
    named,
    pair_views,
    single_views,
)

DRAWS: Final = 4096


@dataclass(frozen=True)
class Share:
    """The share of the surrogate's variance that one parameter explains, or the interaction of two.

    Attributes:
        parameters: one name or two.
        condition: the parents' values within which the share is taken; empty for the whole space.
        share: of the surrogate's variance there, 0..1.
        by_chance: the share that permuted scores give: mean plus two standard deviations over permutations.
    """

    parameters: tuple[str, ...]
    condition: Mapping[str, Scalar]
    share: float
    by_chance: float

    @property
    def above_chance(self) -> bool:
        """Whether it explains more than permuted scores do."""
        return bool(self.share > self.by_chance)

    @property
    def name(self) -> str:
        """The parameter, or the two of a pair, with the condition."""
        return named(" x ".join(self.parameters), self.condition)


def variance_shares(forest: Forest) -> list[Share]:
    """Return the share of each parameter, largest first; a conditional one has a share for each condition."""
    return _shares(forest, single_views(forest.axes, forest.strata))


def interaction_shares(forest: Forest, singles: Sequence[Share]) -> tuple[list[View], list[Share]]:
    """Return the pairs among the parameters with the largest shares, and the shares of their interactions."""
    largest: dict[str, float] = {}
    for single in singles:
        name = single.parameters[0]
        largest[name] = max(largest.get(name, 0.0), single.share)
    names = sorted(largest, key=lambda name: -largest[name])[:MOST_PAIRED]
    chosen = [i for i, axis in enumerate(forest.axes) if axis.name in names]
    views = pair_views(forest.axes, forest.strata, chosen)
    return views, _shares(forest, views)


def _shares(forest: Forest, views: Sequence[View]) -> list[Share]:
    observed = _variances(forest, forest.whole, views)
    chance = [_variances(forest, boosted, views) for boosted in forest.shuffled]
    floor = np.mean(chance, axis=0) + 2 * np.std(chance, axis=0, ddof=1)
    found = []
    for view, variance, least in zip(views, observed, floor, strict=True):
        total = _total(forest, view)
        scale = 1 / total if total > 0 else 0.0
        names = tuple(forest.axes[i].name for i in view.over)
        condition = view.condition_values(forest.axes)
        found.append(Share(names, condition, min(variance * scale, 1.0), min(float(least) * scale, 1.0)))
    return sorted(found, key=lambda one: (-one.share, one.name))


def _variances(forest: Forest, boosted: Any, views: Sequence[View]) -> list[float]:
    found = forest_averages(boosted, forest, views)
    weights = [view_weights(forest.axes, forest.strata, view) for view in views]
    return [_variance(mean, weight) for mean, weight in zip(found, weights, strict=True)]


def _variance(mean: Floats, weight: Floats) -> float:
    """Return the variance of a curve, or the variance of a map beyond the sum of its two margins."""
    known = np.nan_to_num(mean)
    centre = float((known * weight).sum())
    effect = known - centre
    if mean.ndim == 2:
        rows, columns = weight.sum(axis=1), weight.sum(axis=0)
        by_row = _divide((effect * weight).sum(axis=1), rows)
        by_column = _divide((effect * weight).sum(axis=0), columns)
        effect = effect - by_row[:, None] - by_column[None, :]
    return float((effect**2 * weight).sum())


def _divide(total: Floats, weight: Floats) -> Floats:
    return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0)


def _total(forest: Forest, view: View) -> float:
    """Return the variance of the surrogate over draws from the part of the space that a view covers."""
    names = [forest.axes[i].name for i in view.over]
    covered = [s for s in forest.strata if s.meets(view.condition) and all(n in s.active for n in names)]
    codes = draw_codes(forest.axes, _rescaled(covered), DRAWS, np.random.default_rng(0))
    return float(forest.predict(codes).var())


def _rescaled(strata: Sequence[Stratum]) -> tuple[Stratum, ...]:
    total = sum(s.weight for s in strata)
    return tuple(replace(s, weight=s.weight / total) for s in strata)
