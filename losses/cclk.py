"""Kernel-conditioned contrastive learning: WeaklySup-CCLK, Fair-CCLK and HardNeg-CCLK.

Tsai et al. 2022, "Conditional contrastive learning with kernel", https://arxiv.org/abs/2202.05458, Eq. 7-9.
With `W = (K_Z + lam I)^-1 K_Z` from the conditioning variable (`losses.kernels`, without gradient),
`K_XY[i,j] = e^f(x_i,y_j)` and `M_i = sum_j K_XY[i,j] W[j,i]`:

    WeaklySup (Eq. 7)           -log M_i / (M_i + sum_{j!=i} K_XY[i,j])
    Fair, HardNeg (Eq. 8, 9)    -log K_XY[i,i] / (K_XY[i,i] + (B - 1) M_i)

`weights="paper"` computes these formulas literally; an anchor with `M_i <= 0` drops out. The default,
`weights="released"`, follows the released code: W has a zero diagonal and no entry below 1e-6; the sums run
over both views of the other images (WeaklySup's denominator also includes `y_i`); WeaklySup's `M_i` is at
least 1e-7; every anchor is valid, and Fair's value is 0 where `M_i = 0`. One difference from the released
code: the diagonal of K_Z is what the kernel gives. Both views are anchors, so there are N = 2B terms.

Shapes: B images, D width, Z width of the condition.
"""

import math
from dataclasses import KW_ONLY
from typing import Annotated

import torch
from torch import Tensor

from contrasweep.losses.kernels import KERNELS, conditional_weights, released_weights
from contrasweep.losses.scores import (
    flat_views,
    full_precision,
    logsumexp,
    normalised,
    partner_scores,
    self_scores,
    softplus,
    without_self,
)
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive, require_views
from contrasweep.rules import OneOf

SMALLEST_RELEASED_MASS = 1e-7


@full_precision
def fair_cclk_terms(views: Tensor, W: Tensor, temperature: float, weights: str = "released") -> LossTerms:
    """Eq. 8 and 9 for `views` (2, B, D) and raw weights `W`: (B, B), or (2, B, B), one matrix per view."""
    if weights == "paper":
        _, positive, mass, valid = _paper_mass(views, W, temperature)
    else:
        _, positive, mass = _released_mass(views, W, temperature)
        valid = torch.ones_like(mass, dtype=torch.bool)
    others = views.shape[1] - 1
    negative = mass + (math.log(others) if others else -torch.inf)
    return LossTerms(softplus(negative - positive).flatten(), valid.flatten())


def _released_mass(views: Tensor, W: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (N, N) without self, positives (N,) and log M (N,); M sums over both views of other images."""
    B = views.shape[1]
    z = flat_views(views)
    scores, positive = self_scores(z, temperature), partner_scores(z, temperature)
    log_weights = released_weights(W).to(scores.dtype).log_().expand(2, B, B)
    weighted = scores.view(2, B, 2, B) + log_weights[:, :, None, :]
    return scores, positive, logsumexp(weighted.flatten(2)).flatten()


def _paper_mass(views: Tensor, W: Tensor, temperature: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Cross-view scores (2, B, B), and positives, log M and `M > 0` (2, B), one row per direction.

    W keeps its negative entries.
    """
    x, y = normalised(views)
    cross = (x / temperature) @ y.T
    scores = torch.stack([cross, cross.T])
    W = W.expand(2, *cross.shape)
    shifted = scores + W.abs().log().to(scores.dtype)
    largest = shifted.detach().amax(2, keepdim=True)
    largest = largest.masked_fill(largest == -torch.inf, 0)
    scaled_mass = (W.sign().to(scores.dtype) * (shifted - largest).exp()).sum(2)
    valid = ~(scaled_mass <= 0)  # an anchor with NaN stays valid, so that the loss shows the NaN
    mass = scaled_mass.masked_fill(~valid, 1).log() + largest[..., 0]
    return scores, scores.diagonal(dim1=1, dim2=2), mass, valid


class _KernelConditioned(Loss):
    """The hyperparameters of the three objectives."""

    kernel: Annotated[str, OneOf(KERNELS)]
    sigma2: Positive = 1.0
    _: KW_ONLY
    lam: Positive
    temperature: Positive
    weights: Annotated[str, OneOf(("released", "paper"))] = "released"

    def conditional_weights(self, condition: Tensor) -> Tensor:
        """Raw W (B, B) of `condition` (B,) or (B, Z), without gradient, float64."""
        columns = condition[:, None] if condition.dim() == 1 else condition
        return conditional_weights(columns, self.kernel, self.sigma2, self.lam)

    def _weights_of(self, views: Tensor, condition: Tensor) -> Tensor:
        """Raw W of a condition of the images that `views` show; ValueError on shapes."""
        require_views(views, exactly=2)
        images = views.shape[1]
        if condition.dim() not in (1, 2) or condition.shape[0] != images:
            allowed = f"({images},) or ({images}, Z)"
            raise ValueError(f"condition must have shape {allowed}, got {tuple(condition.shape)}")
        return self.conditional_weights(condition)


class WeaklySupCCLK(_KernelConditioned):
    """Eq. 7: images whose condition is alike attract each other."""

    @full_precision
    def terms(self, views: Tensor, condition: Tensor) -> LossTerms:
        """Terms for `views` (2, B, D) and `condition` (B,) or (B, Z) of any number type."""
        W = self._weights_of(views, condition)
        if self.weights == "paper":
            scores, _, mass, valid = _paper_mass(views, W, self.temperature)
            others = logsumexp(without_self(scores))
        else:
            scores, _, mass = _released_mass(views, W, self.temperature)
            mass = mass.clamp_min(math.log(SMALLEST_RELEASED_MASS))
            valid = torch.ones_like(mass, dtype=torch.bool)
            others = logsumexp(scores)
        return LossTerms(softplus(others - mass).flatten(), valid.flatten())


class FairCCLK(_KernelConditioned):
    """Eq. 8: negatives share the anchor's condition, which cannot tell them apart."""

    def terms(self, views: Tensor, condition: Tensor) -> LossTerms:
        """Terms for `views` (2, B, D) and `condition` (B,) or (B, Z) of any number type."""
        return fair_cclk_terms(views, self._weights_of(views, condition), self.temperature, self.weights)


class HardNegCCLK(_KernelConditioned):
    """Eq. 9: Eq. 8 with each view's own features as the condition, so that negatives are similar images.

    `condition` (2, B, Z) holds the encoder's features of each view, not normalised and before the head; the
    released sigma2 = 500 and lam = 100 fit their scale. None uses the normalised embeddings, which need a
    sigma2 near 1. No gradient flows through the condition.
    """

    def terms(self, views: Tensor, condition: Tensor | None = None) -> LossTerms:
        """Terms for `views` (2, B, D) and `condition` (2, B, Z) or None."""
        require_views(views, exactly=2)
        if condition is None:
            condition = normalised(views.detach().double())
        elif condition.dim() != 3 or condition.shape[:2] != views.shape[:2]:
            raise ValueError(f"condition must be (2, {views.shape[1]}, Z), got {tuple(condition.shape)}")
        W = torch.stack([self.conditional_weights(features) for features in condition])
        return fair_cclk_terms(views, W, self.temperature, self.weights)
