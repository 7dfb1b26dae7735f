"""The four populations of pairs of anchors that FairKL compares, and sums over them.

A pair is positive (same class) or negative, and aligned (same bias) or conflicting. Populations are numbered
in the order of `POPULATIONS`. Shapes: N anchors, G groups of anchors of the same class and bias.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from contrasweep.losses.groups import group_index, sizes_by_group
from contrasweep.losses.synchronisation import reading_synchronises

POPULATIONS = ("positive aligned", "positive conflicting", "negative aligned", "negative conflicting")


class PairPopulations(Protocol):
    """The population of every ordered pair of anchors."""

    @property
    def counts(self) -> Tensor:
        """The number of ordered pairs in each population, int64 (4,)."""

    @property
    def with_self(self) -> bool:
        """Whether an anchor pairs with itself."""

    def sums(self, x: Tensor) -> Tensor:
        """Return the sums (4,) of `x` (N, N) over the populations."""

    def spread(self, values: Tensor) -> Tensor:
        """Return the value (N, N) of each pair's population, from `values` (4,); any on the diagonal."""


def pair_populations(labels: Tensor, bias: Tensor, *, with_self: bool = False) -> PairPopulations:
    """Return the populations of the pairs of anchors of these `labels` (N,) and `bias` (N,).

    The sums go group by group, which is several times faster on a CPU than masks of all pairs. Elsewhere
    their number would have to be read from the device.
    """
    kind = _ByMasks if reading_synchronises(labels) else _ByGroups
    return kind.of(labels, bias, with_self)


class _ByGroups(NamedTuple):
    """`group` (N,) is the group of each anchor, `population` (G, G) the population of each pair of groups."""

    group: Tensor
    population: Tensor
    counts: Tensor
    with_self: bool

    @staticmethod
    def of(labels: Tensor, bias: Tensor, with_self: bool) -> "_ByGroups":
        group = group_index(labels, bias)
        sizes = sizes_by_group(group)
        member = torch.empty_like(sizes).scatter_(0, group, torch.arange(len(group), device=group.device))
        classes, biases = labels[member], bias[member]
        population = 2 * (classes[:, None] != classes).long() + (biases[:, None] != biases).long()
        pairs = sizes[:, None] * sizes
        if not with_self:
            pairs.diagonal().sub_(sizes)
        counts = pairs.new_zeros(4).scatter_add_(0, population.flatten(), pairs.flatten())
        return _ByGroups(group, population, counts, with_self)

    def sums(self, x: Tensor) -> Tensor:
        """By rows and then by columns of each group."""
        groups = len(self.population)
        rows = x.new_zeros(groups, len(x)).index_add_(0, self.group, x)
        blocks = x.new_zeros(groups, groups).index_add_(1, self.group, rows)
        if not self.with_self:
            blocks.diagonal().sub_(x.new_zeros(groups).index_add_(0, self.group, x.diagonal()))
        masks = torch.nn.functional.one_hot(self.population.flatten(), 4).to(x.dtype)
        return blocks.flatten() @ masks

    def spread(self, values: Tensor) -> Tensor:
        columns = values[self.population].index_select(1, self.group)
        return columns.index_select(0, self.group)


class _ByMasks(NamedTuple):
    """`same_class` and `same_bias` (N, N) say what the anchors of a pair share."""

    same_class: Tensor
    same_bias: Tensor
    with_self: bool
    counts: Tensor

    @staticmethod
    def of(labels: Tensor, bias: Tensor, with_self: bool) -> "_ByMasks":
        same_class, same_bias = (values[:, None] == values for values in (labels, bias))
        counted = torch.ones_like(same_class)
        if not with_self:
            counted.fill_diagonal_(False)
        empty = counted.new_zeros(4, dtype=torch.int64)
        pairs = _ByMasks(same_class, same_bias, with_self, empty)
        return pairs._replace(counts=pairs._sums(counted))

    def sums(self, x: Tensor) -> Tensor:
        return self._sums(x if self.with_self else x.clone().fill_diagonal_(0))

    def _sums(self, x: Tensor) -> Tensor:
        signs = (x.masked_fill(~self.same_class, 0), x.masked_fill(self.same_class, 0))
        return torch.stack(
            [
                one.masked_fill(left_out, 0).sum()
                for one in signs
                for left_out in (~self.same_bias, self.same_bias)
            ]
        )

    def spread(self, values: Tensor) -> Tensor:
        aligned = torch.where(self.same_class, values[0], values[2])
        conflicting = torch.where(self.same_class, values[1], values[3])
        return torch.where(self.same_bias, aligned, conflicting)
