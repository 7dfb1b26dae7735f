"""How far two samples are from one distribution."""

import torch
from torch import Tensor


def largest_gap(one: Tensor, other: Tensor) -> float:
    """The Kolmogorov-Smirnov distance of two samples of equal size."""
    values = torch.cat((one, other)).unique()
    below = [
        torch.searchsorted(sample.sort().values, values, right=True) / len(sample) for sample in (one, other)
    ]
    return float((below[0] - below[1]).abs().max())
