"""Groups of anchors that share a label, a bias or a cluster: their members, and sums over them.

Shapes: N anchors, G distinct values, M the size of the largest group.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Positives(NamedTuple):
    """The positives of each anchor: the other anchors of its group.

    `columns` (N, M) holds their indices; the remaining places of a row, at least one, hold the anchor's own
    index, where scores without self are -inf. `present` (N, M) is False in these places. `counts` (N,) is the
    number of positives.
    """

    columns: Tensor
    present: Tensor
    counts: Tensor


def anchor_values(per_image: Tensor, views: Tensor) -> Tensor:
    """Repeat one value per image (B,) for each view: one value per anchor (V * B,)."""
    return per_image.repeat(views.shape[0])


def group_index(first: Tensor, second: Tensor | None = None) -> Tensor:
    """Group numbers 0 .. G - 1 (N,) of anchors that agree in `first` (N,) and, if given, in `second` (N,)."""
    index: Tensor = torch.unique(first, return_inverse=True)[1]
    if second is None:
        return index
    other: Tensor = torch.unique(second, return_inverse=True)[1]
    return group_index(index * (int(other.max()) + 1) + other)


def group_sums(x: Tensor, group: Tensor) -> Tensor:
    """Return for each anchor the sum of `x` (N, D) over its group, itself included: (N, D)."""
    sums = x.new_zeros(int(group.max()) + 1, x.shape[1]).index_add(0, group, x)
    return sums.index_select(0, group)


def group_sizes(group: Tensor) -> Tensor:
    """Return for each anchor the size of its group, itself included: (N,)."""
    return torch.bincount(group)[group]


def positives(group: Tensor) -> Positives:
    """Return the other members of each anchor's group; the cost is N * M, not N * N."""
    sizes = torch.bincount(group)
    members = torch.argsort(group, stable=True)
    first = sizes.cumsum(0) - sizes
    slots = torch.arange(int(sizes.max()), device=group.device)
    filled = slots < sizes[:, None]
    table = members[(first[:, None] + slots).clamp_max(len(group) - 1)]
    own = torch.arange(len(group), device=group.device)[:, None]
    columns = torch.where(filled[group], table[group], own)
    return Positives(columns, columns != own, sizes[group] - 1)
