"""Exact averages of a forest: the mean prediction over one parameter or two, averaged over the others.

Trees are a sum of leaves, and each leaf is a box with a value. The average over all parameters but one is a
sum over the leaves: the value times the share of random draws within the other sides (Hutter et al. 2014).
With conditional parameters the sum is taken in each stratum, where inactive parameters have one fixed place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity.axes import Axis, Floats, Stratum
from contrasweep.tuning.sensitivity.forest import INACTIVE


@dataclass(frozen=True)
class View:
    """The parameters of a curve or a map: one axis or two, by index, under a condition (parent to code)."""

    over: tuple[int, ...]
    condition: Mapping[str, float] = field(default_factory=dict)

    def condition_values(self, axes: Sequence[Axis]) -> dict[str, Scalar]:
        """Return the condition with the parents' values in place of their codes."""
        by_name = {axis.name: axis for axis in axes}
        return {parent: by_name[parent].value(code) for parent, code in self.condition.items()}

    def covers(self, axes: Sequence[Axis], codes: Floats) -> NDArray[np.bool_]:
        """Return which configurations have the axes and meet the condition, (n,)."""
        names = [axis.name for axis in axes]
        rows = np.isfinite(codes[:, list(self.over)]).all(axis=1)
        for parent, code in self.condition.items():
            rows &= codes[:, names.index(parent)] == code
        return np.asarray(rows)


@dataclass(frozen=True)
class Leaves:
    """The n leaves of all trees. The prediction for a configuration sums the values of the leaves around it.

    Attributes:
        value: of each leaf, (n,).
        inside: for each axis, whether a leaf contains an entry of the grid, (n, grid), as 0 or 1.
        inactive: whether a leaf contains the inactive value of an axis, (n, axes), as 0 or 1.
    """

    value: Floats
    inside: tuple[Floats, ...]
    inactive: Floats


def leaves_of(boosted: Any, axes: tuple[Axis, ...]) -> Leaves:
    """Return the leaves of fitted boosted trees over the columns of `design`."""
    grown, low, high = _bounds([tree.tree_ for (tree,) in boosted.estimators_])
    # Boosting starts from a constant: a leaf without sides.
    everything = np.full((1, low.shape[1]), np.inf)
    low, high = np.concatenate([-everything, low]), np.concatenate([everything, high])
    value = np.concatenate([boosted.init_.constant_.ravel(), boosted.learning_rate * grown])
    inside, inactive = [], []
    column = 0
    for axis in axes:
        if axis.is_category:
            width = len(axis.choices)
            ruled_out = high[:, column : column + width] < 1
            required = low[:, column : column + width] >= 0
            others = required.sum(axis=1, keepdims=True) - required
            inside.append((~ruled_out & (others == 0)).astype(float))
            inactive.append(~required.any(axis=1))
        else:
            width = 1
            lo, hi = low[:, column], high[:, column]
            inside.append(((lo[:, None] < axis.grid) & (axis.grid <= hi[:, None])).astype(float))
            inactive.append((lo < INACTIVE) & (hi >= INACTIVE))
        column += width
    return Leaves(value, tuple(inside), np.stack(inactive, axis=1).astype(float))


def averages(
    leaves: Leaves, axes: tuple[Axis, ...], strata: Sequence[Stratum], views: Sequence[View]
) -> list[Floats]:
    """Return each view's curve (grid,) or map (grid, grid); NaN where the axes are never active together."""
    sums = [np.zeros([len(axes[i].grid) for i in view.over]) for view in views]
    weights = [np.zeros_like(total) for total in sums]
    for stratum in strata:
        sides = _sides(leaves, axes, stratum)
        for view, total, weight in zip(views, sums, weights, strict=True):
            if not stratum.meets(view.condition) or not _is_active(view, axes, stratum):
                continue
            others = [i for i in range(len(axes)) if i not in view.over]
            share = stratum.weight * _where(view, axes, stratum)
            total += share * _average(leaves, view, np.prod(sides[:, others], axis=1))
            weight += share
    return [
        np.divide(t, w, out=np.full_like(t, np.nan), where=w > 0) for t, w in zip(sums, weights, strict=True)
    ]


def view_weights(axes: tuple[Axis, ...], strata: Sequence[Stratum], view: View) -> Floats:
    """Return the share of random draws at each entry of a view's grid, among the draws that it covers."""
    shares = [axes[i].weights for i in view.over]
    prior = shares[0] if len(shares) == 1 else np.outer(shares[0], shares[1])
    total = np.zeros_like(prior)
    for stratum in strata:
        if stratum.meets(view.condition) and _is_active(view, axes, stratum):
            fixed = [axes[i].name in stratum.fixed for i in view.over]
            own = [np.ones_like(s) if f else s for s, f in zip(shares, fixed, strict=True)]
            spread = own[0] if len(own) == 1 else np.outer(own[0], own[1])
            total += stratum.weight * _where(view, axes, stratum) * spread
    return np.asarray(total / total.sum()) if total.sum() > 0 else total


def _average(leaves: Leaves, view: View, rest: Floats) -> Floats:
    weighted = leaves.value * rest
    first = leaves.inside[view.over[0]]
    if len(view.over) == 1:
        return np.asarray(weighted @ first)
    return np.asarray((first * weighted[:, None]).T @ leaves.inside[view.over[1]])


def _sides(leaves: Leaves, axes: tuple[Axis, ...], stratum: Stratum) -> Floats:
    """Return the share of a stratum's draws within each side of each leaf, (leaves, axes)."""
    sides = np.empty((len(leaves.value), len(axes)))
    for i, axis in enumerate(axes):
        if axis.name in stratum.fixed:
            sides[:, i] = leaves.inside[i][:, _entry(axis, stratum)]
        elif axis.name in stratum.active:
            sides[:, i] = leaves.inside[i] @ axis.weights
        else:
            sides[:, i] = leaves.inactive[:, i]
    return sides


def _is_active(view: View, axes: tuple[Axis, ...], stratum: Stratum) -> bool:
    return all(axes[i].name in stratum.active for i in view.over)


def _where(view: View, axes: tuple[Axis, ...], stratum: Stratum) -> Floats:
    """Return 1 at the entries of a view's grid that a stratum covers, else 0.

    A stratum covers all entries of an axis, or the one entry at which it fixes the axis.
    """
    masks = []
    for i in view.over:
        mask = np.ones(len(axes[i].grid))
        if axes[i].name in stratum.fixed:
            mask[:] = 0
            mask[_entry(axes[i], stratum)] = 1
        masks.append(mask)
    return masks[0] if len(masks) == 1 else np.outer(masks[0], masks[1])


def _entry(axis: Axis, stratum: Stratum) -> int:
    return int(np.argmin(np.abs(axis.grid - stratum.fixed[axis.name])))


def _bounds(trees: Sequence[Any]) -> tuple[Floats, Floats, Floats]:
    """Return the value of each leaf, and its open lower and closed upper ends, (leaves, columns).

    All trees are walked down together, one level at a time.
    """
    node = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
    left, right = (
        np.concatenate([np.where(c < 0, -1, c + start) for c, start in zip(children, node, strict=True)])
        for children in ([t.children_left for t in trees], [t.children_right for t in trees])
    )
    split_on, threshold = (
        np.concatenate([getattr(tree, name) for tree in trees]) for name in ("feature", "threshold")
    )
    value = np.concatenate([tree.value[:, 0, 0] for tree in trees])
    low = np.full((len(node), trees[0].n_features), -np.inf)
    high = -low
    values, lows, highs = [], [], []
    while len(node):
        is_leaf = left[node] < 0
        values.append(value[node[is_leaf]])
        lows.append(low[is_leaf])
        highs.append(high[is_leaf])
        node, low, high = node[~is_leaf], low[~is_leaf], high[~is_leaf]
        at = (np.arange(len(node)), split_on[node])
        left_high, right_low = high.copy(), low.copy()
        left_high[at] = np.minimum(left_high[at], threshold[node])
        right_low[at] = np.maximum(right_low[at], threshold[node])
        node = np.concatenate([left[node], right[node]])
        low, high = np.concatenate([low, right_low]), np.concatenate([left_high, high])
    return np.concatenate(values), np.concatenate(lows), np.concatenate(highs)
