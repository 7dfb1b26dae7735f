"""`LossTerms`: the value of a loss for each anchor, and which anchors count."""

from typing import NamedTuple

import torch
from torch import Tensor


class LossTerms(NamedTuple):
    """The terms of a loss before they are averaged.

    Shapes: `values` (N,) floating point; `valid` (N,) bool. An anchor is invalid if its formula is
    undefined (for example, it has no positive); its value is then arbitrary and affects neither the mean nor
    the gradient.
    """

    values: Tensor
    valid: Tensor

    def mean(self) -> Tensor:
        """Mean over the valid anchors, a scalar; NaN and Inf of valid anchors pass through.

        Without a valid anchor the mean is a zero that is part of the graph and has a zero gradient.
        """
        return self.sum() / self.valid.sum().clamp_min(1)

    def sum(self) -> Tensor:
        """Sum over the valid anchors, a scalar; it treats invalid ones as `mean` does."""
        return self.values.masked_fill(~self.valid, 0).sum()

    def dropped_fraction(self) -> Tensor:
        """Share of the anchors that are invalid, a scalar in [0, 1] without gradient."""
        dropped = ~self.valid
        return dropped.sum(dtype=torch.float32) / max(dropped.numel(), 1)
