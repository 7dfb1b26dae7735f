"""`LossTerms`: the values of a loss by anchor, and which anchors count."""

from typing import NamedTuple

import torch
from torch import Tensor


class LossTerms(NamedTuple):
    """The terms of a loss before they are averaged.

    Shapes: `values` (N,) floating point; `valid` (N,) bool. An anchor is invalid where its formula is
    undefined (it has no positive, say); its value is then arbitrary, and neither mean nor gradient sees it.
    """

    values: Tensor
    valid: Tensor

    def mean(self) -> Tensor:
        """Mean over the valid anchors, a scalar; NaN and Inf of valid anchors pass through.

        Without a valid anchor it is a zero that is attached to the graph and has a zero gradient.
        """
        return self.sum() / self.valid.sum().clamp_min(1)

    def sum(self) -> Tensor:
        """Sum over the valid terms, a scalar, with the same treatment of invalid ones as `mean`."""
        return self.values.masked_fill(~self.valid, 0).sum()

    def dropped_fraction(self) -> Tensor:
        """Share of the anchors that are invalid, a scalar in [0, 1] without gradient."""
        dropped = ~self.valid
        return dropped.sum(dtype=torch.float32) / max(dropped.numel(), 1)
