"""Logistic regression, solved to the optimum, and the steps that all fits of linear probes share."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from contrasweep.optimizers import LBFGS


class NonFiniteFeatures(ValueError):
    """The features hold NaN or Inf, because their encoder has diverged."""


@dataclass(frozen=True)
class LinearProbe:
    """A fitted linear map on raw features: `weight (D, K)` and `bias (K,)`."""

    weight: Tensor
    bias: Tensor

    def __call__(self, features: Tensor) -> Tensor:
        """Return the outputs `(N, K)` for `features` `(N, D)`."""
        return features.to(self.weight.dtype) @ self.weight + self.bias


def fit_logistic(
    features: Tensor,
    labels: Tensor,
    classes: int,
    *,
    penalty: float = 1e-6,
    max_steps: int = 500,
    standardise: bool = True,
) -> LinearProbe:
    """Multinomial logistic regression by L-BFGS with a strong-Wolfe line search; outputs `(N, classes)`.

    Minimises `mean cross-entropy + penalty * sum weight^2` in at most `max_steps` iterations, for `features`
    `(N, D)` and `labels` `(N,)`, integers in `[0, classes)`. The penalty is as in `ridge.fit_ridge`.
    Half-precision features are fitted in float32. No gradient flows to the features.

    Source: the linear evaluation of CCL-K (L-BFGS, 500 steps, penalty 1e-6 on raw weights).

    Raises:
        ValueError: no sample, shapes that do not match, labels out of range, or features that are not finite.
    """
    with torch.inference_mode(False):
        require_samples(features, labels.shape[0])
        require_labels(labels, classes)
        # The backward pass cannot keep a tensor of inference mode; it can keep a copy.
        wanted = labels.long().clone()
        return _logistic(constant(features), wanted, classes, penalty, max_steps, standardise)


def constant(features: Tensor) -> Tensor:
    """Return features without gradient in float64, if that is their type, else in float32."""
    return features.detach() if features.dtype == torch.float64 else features.detach().float()


def _logistic(
    features: Tensor, labels: Tensor, classes: int, penalty: float, max_steps: int, standardise: bool
) -> LinearProbe:
    inputs, shift, scale = standardised(features)
    basis, penalties = _principal_basis(inputs, weight_penalties(penalty, scale, standardise))
    inputs = inputs @ basis
    weight = inputs.new_zeros((inputs.shape[1], classes), requires_grad=True)
    bias = inputs.new_zeros(classes, requires_grad=True)
    optimizer = LBFGS(
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
    return on_raw_features(basis @ weight.detach(), bias.detach(), shift, scale)


def _principal_basis(inputs: Tensor, penalties: Tensor) -> tuple[Tensor, Tensor]:
    """Return a basis `(D, D)` in which the problem is well conditioned, and the penalty in it `(D, D)`.

    The features of an encoder are strongly correlated, so L-BFGS on them needs hundreds of steps. Along the
    principal axes, each scaled by its curvature (from data and penalty together), it needs dozens.
    """
    covariance = (inputs.T @ inputs / inputs.shape[0]).double()
    # The logistic loss bends at about p (1 - p), 0.1 of the features' own variance; a penalty w^2 bends at 2.
    curvature = 0.1 * covariance + 2 * torch.diag(penalties.double())
    values, axes = torch.linalg.eigh(curvature)
    # Constant features without a penalty do not bend the loss at all, so any scale works for them.
    basis = axes / values.clamp_min(max(1e-9 * float(values[-1]), 1e-12)).sqrt()
    penalty = basis.T @ (penalties.double()[:, None] * basis)
    return basis.to(inputs.dtype), penalty.to(inputs.dtype)


def require_samples(features: Tensor, targets: int) -> None:
    """Raise ValueError unless `features` are finite, `(N, D)` with N >= 1, and there are N `targets`."""
    if features.ndim != 2 or features.shape[0] == 0 or features.shape[0] != targets:
        given = f"{tuple(features.shape)}, {targets}"
        raise ValueError(f"a probe needs features (N, D), N >= 1, and N targets; got {given}")
    if not bool(torch.isfinite(features).all()):
        raise NonFiniteFeatures("features hold NaN or Inf: the encoder diverged")


def require_labels(labels: Tensor, classes: int) -> None:
    """Raise ValueError unless `labels` are integers `(N,)` in `[0, classes)`."""
    if labels.ndim != 1 or labels.is_floating_point():
        raise ValueError(f"labels must be integers (N,), got {labels.dtype} {tuple(labels.shape)}")
    low, high = (int(value) for value in torch.aminmax(labels))
    if low < 0 or high >= classes:
        raise ValueError(f"labels must lie in 0..{classes - 1}, got {low}..{high}")


def standardised(features: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return features `(N, D)` with mean 0 and deviation 1, and the shift and scale `(D,)` that were used."""
    shift = features.mean(dim=0)
    spread = features.std(dim=0, correction=0)
    # A constant feature carries no information; scale 1 makes it zero and avoids a division by zero.
    scale = torch.where(spread > 1e-6 * spread.max().clamp_min(1e-30), spread, torch.ones_like(spread))
    return (features - shift) / scale, shift, scale


def weight_penalties(penalty: float, scale: Tensor, standardise: bool) -> Tensor:
    """Return the penalty on each standardised weight `(D,)`; a raw weight is that weight over the scale."""
    return torch.full_like(scale, penalty) if standardise else penalty / scale.square()


def on_raw_features(weight: Tensor, bias: Tensor, shift: Tensor, scale: Tensor) -> LinearProbe:
    """Return the probe on raw features that equals `weight` and `bias` on standardised features."""
    raw = weight / scale[:, None]
    return LinearProbe(raw, bias - shift @ raw)
