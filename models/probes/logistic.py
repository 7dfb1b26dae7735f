"""Multinomial logistic regression by L-BFGS."""

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from contrasweep.models.probes.linear import (
    LinearProbe,
    on_raw_features,
    require_labels,
    require_samples,
    standardised,
    weight_penalties,
)


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
        penalty: the factor of the squared weights; the bias has no penalty.
        max_steps: the largest number of L-BFGS iterations.
        standardise: whether the penalty is on the weights of the standardised features; else of the raw ones.

    Source: the linear evaluation of CCL-K (L-BFGS, 500 steps, penalty 1e-6 on raw weights).

    Raises:
        ValueError: no sample, shapes that do not match, labels out of range, or features that are not finite.
    """
    require_samples(features, labels.shape[0])
    require_labels(labels, classes)
    inputs, shift, scale = standardised(features)
    basis, penalties = _principal_basis(inputs, weight_penalties(penalty, scale, standardise))
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
