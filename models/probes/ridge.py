"""Ridge regression, solved exactly: for a cheap classifier and for the regression of a colour."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from contrasweep.models.probes.linear import (
    LinearProbe,
    on_raw_features,
    require_samples,
    standardised,
    weight_penalties,
)


def fit_ridge(
    features: Tensor, targets: Tensor, *, penalty: float = 1e-6, standardise: bool = True
) -> LinearProbe:
    """Least squares with a penalty, solved exactly.

    Minimises `mean over N of sum_T (prediction - target)^2 + penalty * sum weight^2`.

    Args:
        features: `(N, D)`.
        targets: `(N, T)`, floating point.
        penalty: the factor of the squared weights; the bias has no penalty.
        standardise: whether the penalty is on the weights of the standardised features; else of the raw ones.

    Raises:
        ValueError: no sample, shapes that do not match, or features that are not finite.
    """
    require_samples(features, targets.shape[0])
    inputs, shift, scale = standardised(features.double())
    wanted = targets.double()
    mean = wanted.mean(dim=0)
    gram = inputs.T @ inputs / inputs.shape[0]
    # The small constant keeps dead and duplicated features solvable; at 1e-9 of unit variance it moves
    # nothing.
    gram.diagonal().add_(weight_penalties(penalty, scale, standardise) + 1e-9)
    weight = torch.linalg.solve(gram, inputs.T @ (wanted - mean) / inputs.shape[0])
    probe = on_raw_features(weight, mean, shift, scale)
    return LinearProbe(probe.weight.to(features.dtype), probe.bias.to(features.dtype))


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Return `labels` `(N,)` as float32 `(N, classes)`: the targets of a ridge classifier."""
    return F.one_hot(labels, classes).float()
