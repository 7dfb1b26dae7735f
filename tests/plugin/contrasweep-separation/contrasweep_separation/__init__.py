"""A metric: how far apart the classes are in the features."""

import torch
from torch import Tensor

from contrasweep.tuning.methods import Metric


def class_separation(features: Tensor, labels: Tensor) -> float:
    """Return the share of the variance of `features` (N, D) that lies between the classes, 0 to 1."""
    centred = features.double() - features.double().mean(dim=0)
    sums = torch.zeros_like(centred).index_add_(0, labels, centred)
    counts = labels.bincount(minlength=len(sums)).clamp(min=1)
    between = (sums.square().sum(dim=1) / counts).sum()
    return float(between / centred.square().sum())


METRIC = Metric("class_separation", "share of the variance between the classes", class_separation)
