"""Exact averages of a forest: the mean prediction over one parameter or two, averaged over the others.

Trees are a sum of leaves, and each leaf is a box with a value. The average over all parameters but one is a
sum over the leaves: the value times the share of random draws within the other sides (Hutter et al. 2014).
With conditional parameters the sum is taken in each stratum, where inactive parameters have one fixed place.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.search.axes import INACTIVE, Axis, Stratum
from contrasweep.tuning.statistics import Floats


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

    def is_active(self, axes: Sequence[Axis], stratum: Stratum) -> bool:
        """Return whether a stratum has the axes."""
        return all(axes[i].name in stratum.active for i in self.over)


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
        width = len(axis.choices) or 1
        lo, hi = low[:, column : column + width], high[:, column : column + width]
        if axis.is_category:
            required = lo >= 0
            others = required.sum(axis=1, keepdims=True) - required
            inside.append(((hi >= 1) & (others == 0)).astype(float))
            inactive.append(~required.any(axis=1))
        else:
            inside.append(((lo < axis.grid) & (axis.grid <= hi)).astype(float))
            inactive.append(((lo < INACTIVE) & (hi >= INACTIVE))[:, 0])
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
            if stratum.meets(view.condition) and view.is_active(axes, stratum):
                others = [i for i in range(len(axes)) if i not in view.over]
                share = stratum.weight * _where(view, axes, stratum)
                total += share * _average(leaves, view, np.prod(sides[:, others], axis=1))
                weight += share
    pairs = zip(sums, weights, strict=True)
    return [np.divide(t, w, out=np.full_like(t, np.nan), where=w > 0) for t, w in pairs]


def view_weights(axes: tuple[Axis, ...], strata: Sequence[Stratum], view: View) -> Floats:
    """Return the share of random draws at each entry of a view's grid, among the draws that it covers."""
    total = np.zeros([len(axes[i].grid) for i in view.over])
    for stratum in strata:
        if stratum.meets(view.condition) and view.is_active(axes, stratum):
            over = [axes[i] for i in view.over]
            shares = [np.ones(len(a.grid)) if a.name in stratum.fixed else a.weights for a in over]
            total += stratum.weight * _where(view, axes, stratum) * _outer(shares)
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
            sides[:, i] = leaves.inside[i][:, axis.entry(stratum.fixed[axis.name])]
        elif axis.name in stratum.active:
            sides[:, i] = leaves.inside[i] @ axis.weights
        else:
            sides[:, i] = leaves.inactive[:, i]
    return sides


def _outer(sides: Sequence[Floats]) -> Floats:
    return sides[0] if len(sides) == 1 else np.outer(sides[0], sides[1])


def _where(view: View, axes: tuple[Axis, ...], stratum: Stratum) -> Floats:
    """Return 1 at the entries of a view's grid that a stratum covers, else 0.

    A stratum covers all entries of an axis, or the one entry at which it fixes the axis.
    """
    masks = []
    for axis in (axes[i] for i in view.over):
        fixed = stratum.fixed.get(axis.name)
        every = np.arange(len(axis.grid))
        masks.append(np.ones(len(every)) if fixed is None else (every == axis.entry(fixed)).astype(float))
    return _outer(masks)


def _bounds(trees: Sequence[Any]) -> tuple[Floats, Floats, Floats]:
    """Return the value of each leaf, and its open lower and closed upper ends, (leaves, columns).

    All trees are walked down together, one level at a time.
    """
    node = np.cumsum([0, *(tree.node_count for tree in trees[:-1])])
    names = ("children_left", "children_right", "feature", "threshold")
    left, right, split_on, threshold = (np.concatenate([getattr(t, name) for t in trees]) for name in names)
    start = np.repeat(node, [tree.node_count for tree in trees])
    left, right = (np.where(child < 0, -1, child + start) for child in (left, right))
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
