"""Ridge regression, solved exactly: with a given penalty, or with the one that predicts left-out rows best.

N rows, D features, T targets, P penalties.
"""

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

ENOUGH_ROWS = 4
"""Rows per feature from which on `choose_ridge` takes the least penalty: a choice would change little."""

_NEVER_SINGULAR = 1e-9
"""Added to every penalty, so that dead and duplicated features can be solved; it moves nothing else."""

_DECADES = range(-5, 3)
"""The penalties that `choose_ridge` compares, as powers of ten times the mean variance of the features."""


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Return `labels` `(N,)` as float32 `(N, classes)`: the targets of a ridge classifier."""
    return F.one_hot(labels, classes).float()


def fit_ridge(
    features: Tensor, targets: Tensor, *, penalty: float = 1e-6, standardise: bool = True
) -> LinearProbe:
    """Least squares with a penalty, solved exactly, for `features` `(N, D)` and `targets` `(N, T)`.

    Minimises `mean over N of sum_T (prediction - target)^2 + penalty * sum weight^2`; the bias is free of
    penalty. `standardise` says whether the weights are those of the standardised features; else of the raw
    ones.

    Raises:
        ValueError: no sample, shapes that do not match, or features that are not finite.
    """
    features = features.detach()
    require_samples(features, targets.shape[0])
    inputs, shift, scale = standardised(features.double())
    wanted = targets.double()
    mean = wanted.mean(dim=0)
    gram = inputs.T @ inputs / inputs.shape[0]
    gram.diagonal().add_(weight_penalties(penalty, scale, standardise) + _NEVER_SINGULAR)
    weight = torch.linalg.solve(gram, inputs.T @ (wanted - mean) / inputs.shape[0])
    probe = on_raw_features(weight, mean, shift, scale)
    return LinearProbe(probe.weight.to(features.dtype), probe.bias.to(features.dtype))


def choose_ridge(
    features: Tensor, targets: Tensor, *, least: float = 1e-6, standardise: bool = True
) -> LinearProbe:
    """Return the probe of `fit_ridge` whose penalty, `least` or more, predicts left-out rows best.

    With a small penalty, the error on other rows has a peak where there are about as many rows as features
    (double descent): the probe fits the noise of its rows, and an encoder with fewer independent features
    seems better. So with fewer than `ENOUGH_ROWS` rows per feature, `least` is compared with larger penalties
    by the squared error of leave-one-out, in closed form. Only the given rows are used, without randomness;
    of equal penalties the smallest wins.

    Raises:
        ValueError: as for `fit_ridge`.
    """
    features = features.detach()
    require_samples(features, targets.shape[0])
    rows, width = features.shape
    penalty = least
    if 1 < rows < ENOUGH_ROWS * width:
        inputs, _, scale = standardised(features.double())
        if not standardise:
            inputs = inputs * scale
        larger = [float(inputs.square().mean()) * 10.0**power for power in _DECADES]
        penalties = [least, *(value for value in larger if value > least)]
        errors = _left_out_errors(inputs, targets.double(), inputs.new_tensor(penalties))
        penalty = penalties[int(errors.argmin())]
    return fit_ridge(features, targets, penalty=penalty, standardise=standardise)


def _left_out_errors(inputs: Tensor, targets: Tensor, penalties: Tensor) -> Tensor:
    """Return the mean squared error in a row that is left out of the fit, for each penalty `(P,)`.

    A row's error without itself is its error in the fit, divided by one minus its leverage (its share of its
    own prediction). `inputs` `(N, D)` have mean 0, so that the free bias adds 1 / N to each leverage.
    """
    axes, variances = _principal_rows(inputs)
    centred = targets - targets.mean(dim=0)
    projected = axes.T @ centred
    errors = []
    for penalty in penalties:
        kept = variances / (variances + penalty + _NEVER_SINGULAR)
        residuals = centred - axes @ (kept[:, None] * projected)
        own = axes.square() @ kept + 1 / len(inputs)
        errors.append((residuals / (1 - own)[:, None]).square().mean())
    return torch.stack(errors).nan_to_num(torch.inf)


def _principal_rows(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return the left singular vectors of `inputs` `(N, R)`, and the variance along each of them `(R,)`.

    The smaller of the two Gram matrices is decomposed. Axes without variance are left out.
    """
    rows, width = inputs.shape
    gram = (inputs @ inputs.T if rows <= width else inputs.T @ inputs) / rows
    variances, axes = torch.linalg.eigh(gram)
    kept = variances > 1e-12 * variances[-1].clamp_min(1e-30)
    variances, axes = variances[kept], axes[:, kept]
    return (axes if rows <= width else inputs @ axes / (rows * variances).sqrt()), variances
