"""Probes: linear models fitted on frozen features, to score what an encoder has learned.

Shapes: N samples, D features, C classes, T regression targets. All fits are full-batch, deterministic, and
run on the device the features are on. The solvers work on standardised features either way; `standardise`
says which weights the penalty is on. On those of the standardised features (the default) a score does not
depend on the scale at which an encoder happens to put its features; on those of the raw features, as
published protocols have it, a penalty that is nothing to a trained encoder can cripple the untrained one
beside it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812


class NonFiniteFeatures(ValueError):
    """Features hold NaN or Inf: the encoder that gave them has diverged."""


@dataclass(frozen=True)
class LinearProbe:
    """`weight (D, K)` and `bias (K,)` of a fitted linear map on raw features."""

    weight: Tensor
    bias: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """Return the outputs `(N, K)` for `features` `(N, D)`."""
        return features @ self.weight + self.bias


def fit_logistic(
    features: Tensor,
    labels: Tensor,
    classes: int,
    *,
    penalty: float = 1e-6,
    max_steps: int = 500,
    standardise: bool = True,
) -> LinearProbe:
    """Multinomial logistic regression by L-BFGS with a strong-Wolfe line search.

    Minimises `mean cross-entropy + penalty * sum weight^2` in at most `max_steps` iterations.

    Args:
        features: `(N, D)`.
        labels: `(N,)`, integers in `[0, classes)`.
        classes: the number of classes C; the probe's outputs are `(N, C)`.
        penalty: the factor of the squared weights; the bias is free.
        max_steps: the most L-BFGS iterations.
        standardise: whether the penalty is on the weights of the standardised features or of the raw ones.

    Source: the linear evaluation of CCL-K (L-BFGS, 500 steps, penalty 1e-6 on raw weights).

    Raises:
        ValueError: no sample, shapes that do not match, or features that are not finite.
    """
    _check(features, labels.shape[0])
    inputs, shift, scale = _standardise(features)
    basis, penalties = _principal_basis(inputs, _penalties(penalty, scale, standardise))
    inputs = inputs @ basis
    weight = inputs.new_zeros((inputs.shape[1], classes), requires_grad=True)
    bias = inputs.new_zeros(classes, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias],
        max_iter=max_steps,
        max_eval=2 * max_steps,
        tolerance_grad=1e-5,
        tolerance_change=1e-9,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(torch.addmm(bias, inputs, weight), labels)
        loss = loss + ((penalties @ weight) * weight).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    with torch.enable_grad():
        optimizer.step(closure)  # type: ignore[no-untyped-call]
    return _unstandardise(basis @ weight.detach(), bias.detach(), shift, scale)


def fit_ridge(
    features: Tensor, targets: Tensor, *, penalty: float = 1e-6, standardise: bool = True
) -> LinearProbe:
    """Least squares with a penalty, solved exactly.

    Minimises `mean over N of sum_T (prediction - target)^2 + penalty * sum weight^2`.

    Args:
        features: `(N, D)`.
        targets: `(N, T)`, floating point.
        penalty: the factor of the squared weights; the bias is free.
        standardise: whether the penalty is on the weights of the standardised features or of the raw ones.

    Raises:
        ValueError: no sample, shapes that do not match, or features that are not finite.
    """
    _check(features, targets.shape[0])
    inputs, shift, scale = _standardise(features.double())
    wanted = targets.double()
    mean = wanted.mean(dim=0)
    gram = inputs.T @ inputs / inputs.shape[0]
    # The small constant keeps dead and duplicated features solvable; at 1e-9 of unit variance it moves
    # nothing.
    gram.diagonal().add_(_penalties(penalty, scale, standardise) + 1e-9)
    weight = torch.linalg.solve(gram, inputs.T @ (wanted - mean) / inputs.shape[0])
    probe = _unstandardise(weight, mean, shift, scale)
    return LinearProbe(probe.weight.to(features.dtype), probe.bias.to(features.dtype))


def accuracy(probe: LinearProbe, features: Tensor, labels: Tensor) -> float:
    """Return the share of `features` `(N, D)` whose largest output is at `labels` `(N,)`."""
    return float((probe(features).argmax(dim=1) == labels).double().mean())


def mean_squared_error(probe: LinearProbe, features: Tensor, targets: Tensor) -> float:
    """Return the mean squared error over samples and targets, in squared units of `targets` `(N, T)`."""
    return float((probe(features) - targets).double().square().mean())


def one_hot(labels: Tensor, classes: int) -> Tensor:
    """Return `labels` `(N,)` as float32 `(N, classes)`: the targets of a ridge classifier."""
    return F.one_hot(labels, classes).float()


def _check(features: Tensor, targets: int) -> None:
    if features.ndim != 2 or features.shape[0] == 0 or features.shape[0] != targets:
        raise ValueError(
            f"a probe needs features (N, D), N >= 1, and N targets; got {tuple(features.shape)}, {targets}"
        )
    if not bool(torch.isfinite(features).all()):
        raise NonFiniteFeatures("features hold NaN or Inf: the encoder diverged")


def _standardise(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    shift = features.mean(dim=0)
    spread = features.std(dim=0, correction=0)
    # A constant feature carries nothing; scale 1 leaves it at zero instead of dividing by zero.
    scale = torch.where(spread > 1e-6 * spread.max().clamp_min(1e-30), spread, torch.ones_like(spread))
    return (features - shift) / scale, shift, scale


def _principal_basis(inputs: Tensor, penalties: Tensor) -> tuple[Tensor, Tensor]:
    """Return a basis `(D, D)` in which the problem is well conditioned, and the penalty in it `(D, D)`.

    Features of an encoder are strongly correlated, and L-BFGS then needs hundreds of steps; along the
    principal axes, each scaled by what data and penalty together make of its curvature, it needs dozens.
    """
    covariance = (inputs.T @ inputs / inputs.shape[0]).double()
    # The logistic loss bends at about p (1 - p), 0.1 of the features' own variance; a penalty w^2 bends at 2.
    curvature = 0.1 * covariance + 2 * torch.diag(penalties.double())
    values, axes = torch.linalg.eigh(curvature)
    # Constant features without a penalty do not bend the loss at all: any scale will do for them.
    basis = axes / values.clamp_min(max(1e-9 * float(values[-1]), 1e-12)).sqrt()
    penalty = basis.T @ (penalties.double()[:, None] * basis)
    return basis.to(inputs.dtype), penalty.to(inputs.dtype)


def _penalties(penalty: float, scale: Tensor, standardise: bool) -> Tensor:
    """The penalty on each standardised weight `(D,)`: a raw weight is the standardised one over the scale."""
    return torch.full_like(scale, penalty) if standardise else penalty / scale.square()


def _unstandardise(weight: Tensor, bias: Tensor, shift: Tensor, scale: Tensor) -> LinearProbe:
    raw = weight / scale[:, None]
    return LinearProbe(raw, bias - shift @ raw)
