"""Groups of anchors that share a label, a bias or a cluster: their members, and sums over them.

Shapes: N anchors, G groups, M places for the positives of an anchor. Where reading the number of groups would
make a device wait, G is N, which no number reaches, and there are empty groups.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from contrasweep.losses.synchronisation import reading_synchronises


class Positives(NamedTuple):
    """The positives of each anchor: the other anchors of its group.

    `columns` (N, M) holds their indices, M being the size of the largest group; the remaining places of a
    row, at least one, hold the anchor's own index. Where reading M would make a device wait, `columns` is
    None and the N places stand for all anchors. `present` (N, M) says which places hold a positive. `counts`
    (N,) is the number of positives.
    """

    columns: Tensor | None
    present: Tensor
    counts: Tensor

    def among(self, scores: Tensor) -> Tensor:
        """Return the `scores` (N, N) in the places (N, M); those not `present` are other scores or -inf."""
        return scores if self.columns is None else scores.gather(1, self.columns)

    def left_out(self, scores: Tensor, *, in_place: bool = False) -> Tensor:
        """Return `scores` (N, N), perhaps `in_place`, with -inf for each anchor's positives and itself."""
        if self.columns is None:
            return scores.masked_fill(self.present, -torch.inf).fill_diagonal_(-torch.inf)
        # An anchor's columns include the anchor itself.
        put = scores.scatter_ if in_place else scores.scatter
        return put(1, self.columns, -torch.inf)

    def put(self, matrix: Tensor, values: Tensor) -> Tensor:
        """Return `matrix` (N, N), which may change, with `values` (N, M) in the places of the positives."""
        if self.columns is None:
            return torch.where(self.present, values, matrix)
        return matrix.scatter_(1, self.columns, values)


def anchor_values(per_image: Tensor, views: Tensor) -> Tensor:
    """Repeat one value per image (B,) for each view: one value per anchor (V * B,)."""
    return per_image.repeat(views.shape[0])


def group_index(first: Tensor, second: Tensor | None = None) -> Tensor:
    """Group numbers 0 .. G - 1 (N,) of anchors that agree in `first` (N,) and, if given, in `second` (N,)."""
    index = _dense_ranks(first)
    return index if second is None else _dense_ranks(index * len(index) + _dense_ranks(second))


def _dense_ranks(values: Tensor) -> Tensor:
    """Return the rank (N,) of each value among the distinct values."""
    ordered, order = torch.sort(values, stable=True)
    ranks = (ordered[1:] != ordered[:-1]).cumsum(0)
    return torch.zeros_like(order).scatter_(0, order[1:], ranks)


def sums_by_group(x: Tensor, group: Tensor) -> Tensor:
    """Return the sum of `x` (N, ...) over each group, by its number: (G, ...)."""
    return x.new_zeros(_rows(group), *x.shape[1:]).index_add(0, group, x)


def sizes_by_group(group: Tensor) -> Tensor:
    """Return the size of each group, by its number: (G,)."""
    return group.new_zeros(_rows(group)).scatter_add_(0, group, torch.ones_like(group))


def _rows(group: Tensor) -> int:
    return len(group) if reading_synchronises(group) else int(group.max()) + 1


def group_sums(x: Tensor, group: Tensor) -> Tensor:
    """Return for each anchor the sum of `x` (N, D) over its group, itself included: (N, D)."""
    return sums_by_group(x, group).index_select(0, group)


def group_sizes(group: Tensor) -> Tensor:
    """Return for each anchor the size of its group, itself included: (N,)."""
    return sizes_by_group(group)[group]


def positives(group: Tensor, *, columns: bool | None = None) -> Positives:
    """Return the other members of each anchor's group.

    With `columns` the cost is N * M, not N * N, but M is read from the device; None: where that is free.
    """
    if columns is None:
        columns = not reading_synchronises(group)
    if columns:
        return _by_columns(group)
    present = (group[:, None] == group).fill_diagonal_(False)
    return Positives(None, present, present.sum(1))


def _by_columns(group: Tensor) -> Positives:
    sizes = sizes_by_group(group)
    members = torch.argsort(group, stable=True)
    first = sizes.cumsum(0) - sizes
    slots = torch.arange(int(sizes.max()), device=group.device)
    filled = slots < sizes[:, None]
    table = members[(first[:, None] + slots).clamp_max(len(group) - 1)]
    own = torch.arange(len(group), device=group.device)[:, None]
    columns = torch.where(filled[group], table[group], own)
    return Positives(columns, columns != own, sizes[group] - 1)
