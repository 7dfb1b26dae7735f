"""Contrastive losses with a margin epsilon between positives and negatives.

Barbano et al. 2023, "Unbiased supervised contrastive learning", https://arxiv.org/abs/2211.05568.
Shapes: V views, B images, D width, N = V * B anchors, M the largest number of positives of an anchor.
Let s+ be the scores of an anchor with its P positives (same label, itself excluded), and s- its scores with
the negatives:

    eps-SupInfoNCE (Eq. 4)   -1/P sum_i log( e^{s+_i} / ( e^{s+_i - eps} + sum_j e^{s-_j} ) )
    eps-SupCon (Eq. 5)       -1/P sum_i log( e^{s+_i} / ( sum_t e^{s+_t - eps} + sum_j e^{s-_j} ) )
    eps-InfoNCE (Eq. 2)      eps-SupInfoNCE where the only positives are the image's other views

An anchor without a positive is invalid. An anchor without a negative has the value -eps in eps-SupInfoNCE.
"""

from typing import Annotated, Any

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from contrasweep.losses.derivatives import first_derivative_only
from contrasweep.losses.groups import Positives, anchor_values, group_index, positives
from contrasweep.losses.scores import (
    flat_views,
    full_precision,
    gram_gradient,
    logsumexp,
    self_scores,
    softmax_and_logsumexp,
    softplus,
)
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NonNegative, Positive, require_views
from contrasweep.rules import OneOf

VARIANTS = ("a", "b", "c", "d")


@full_precision
def eps_sup_info_nce_terms(
    views: Tensor, labels: Tensor, temperature: float, epsilon: float, variant: str = "c"
) -> LossTerms:
    """Eq. 4, or another smooth form of the same margin condition from Eq. 17; N terms.

    `variant="c"` is Eq. 4. `"a"`: `log( e^-eps + sum_i sum_j e^{s-_j - s+_i} )`, one maximum over all pairs;
    `"b"`: the mean over negatives j of `log( e^-eps + sum_i e^{s-_j - s+_i} )`; `"d"`: the mean over pairs of
    `log( e^-eps + e^{s-_j - s+_i} )`. Eq. 17 has sums; we take means, as Eq. 4 does for "c".

    `views` (V, B, D), `labels` (B,). Errors: ValueError on shapes.
    """
    # Variant d passes over the columns one by one, so their number is read whatever the device.
    z, chosen = _anchors_and_positives(views, labels, columns=True if variant == "d" else None)
    valid = chosen.counts > 0
    if variant == "c":
        return LossTerms(_MarginTerms.apply(z, chosen, temperature, epsilon) - epsilon, valid)
    scores = self_scores(z, temperature)
    attraction = chosen.among(scores).masked_fill(~chosen.present, 0)
    negatives = chosen.left_out(scores)
    if variant == "d":
        values = _pairwise(attraction, chosen.present, negatives, epsilon)
    else:
        repulsion = logsumexp((-attraction).masked_fill(~chosen.present, -torch.inf)) + epsilon
        repulsion = repulsion.masked_fill(~valid, 0)
        if variant == "a":
            values = softplus(logsumexp(negatives) + repulsion)
        else:
            values = _mean_over(softplus(negatives + repulsion[:, None]), negatives > -torch.inf)
    return LossTerms(values - epsilon, valid)


def _anchors_and_positives(
    views: Tensor, labels: Tensor, columns: bool | None = None
) -> tuple[Tensor, Positives]:
    require_views(views, labels=labels)
    return flat_views(views), positives(anchor_values(group_index(labels), views), columns=columns)


def _mean_over(values: Tensor, counted: Tensor) -> Tensor:
    """Return the mean of each row over its counted entries; 0 for a row without one."""
    return (values * counted).sum(1) / counted.sum(1).clamp_min(1)


def _pairwise(attraction: Tensor, present: Tensor, negatives: Tensor, epsilon: float) -> Tensor:
    """Mean over positives of the mean over negatives, one column of positives at a time.

    The backward pass computes each column again, so that memory stays at N * N for any number of positives.
    """
    total = attraction.new_zeros(len(attraction))
    is_negative = negatives > -torch.inf

    def against_one(score: Tensor) -> Tensor:
        return _mean_over(softplus(negatives + epsilon - score[:, None]), is_negative)

    for score, counted in zip(attraction.T, present.T, strict=True):
        mean = checkpoint(against_one, score, use_reentrant=False, preserve_rng_state=False)
        total = total + mean * counted
    return total / present.sum(1).clamp_min(1)


class _MarginTerms(torch.autograd.Function):
    """Mean over an anchor's positives of `log(1 + e^{L + eps - s+})`, L the logsumexp over negatives: (N,).

    It starts from the unit rows `z` (N, D), because autograd would keep and add several N x N matrices.
    """

    @staticmethod
    def forward(ctx: Any, z: Tensor, chosen: Positives, temperature: float, epsilon: float) -> Tensor:
        scores = torch.mm(z / temperature, z.T)
        attraction = chosen.among(scores)
        share, repulsion = softmax_and_logsumexp(chosen.left_out(scores, in_place=True), 1)
        gap = (repulsion[:, None] + epsilon).sub(attraction)
        weight = chosen.present / chosen.counts.clamp_min(1)[:, None].to(z.dtype)
        ctx.save_for_backward(z, share, gap, weight)
        ctx.chosen, ctx.temperature = chosen, temperature
        return (softplus(gap) * weight).sum(1)

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None]:
        z, share, gap, weight = ctx.saved_tensors
        slopes = gap.sigmoid().mul_(weight).mul_(grad[:, None])
        # `share` is 0 for positives and on the diagonal, where the slopes of padding are 0 too
        slope_of_scores = ctx.chosen.put(share * slopes.sum(1, keepdim=True), -slopes)
        return gram_gradient(slope_of_scores, z, ctx.temperature), None, None, None


class EpsSupInfoNCE(Loss):
    """Mean of `eps_sup_info_nce_terms` over the anchors that have a positive."""

    temperature: Positive
    epsilon: NonNegative
    variant: Annotated[str, OneOf(VARIANTS)] = "c"

    def terms(self, views: Tensor, labels: Tensor) -> LossTerms:
        """Terms for `views` (V, B, D) and `labels` (B,)."""
        return eps_sup_info_nce_terms(views, labels, self.temperature, self.epsilon, self.variant)


class EpsInfoNCE(Loss):
    """Eq. 2: mean of `eps_sup_info_nce_terms` where every image is its own class; two views or more."""

    temperature: Positive
    epsilon: NonNegative

    def terms(self, views: Tensor) -> LossTerms:
        """Terms for `views` (V, B, D), V >= 2."""
        require_views(views, at_least=2)
        instances = torch.arange(views.shape[1], device=views.device)
        return eps_sup_info_nce_terms(views, instances, self.temperature, self.epsilon)


class EpsSupCon(Loss):
    """Eq. 5 without its additive eps, for anchors that have a positive; epsilon = 0 is SupCon's L_out."""

    temperature: Positive
    epsilon: NonNegative

    @full_precision
    def terms(self, views: Tensor, labels: Tensor) -> LossTerms:
        """N terms for `views` (V, B, D) and `labels` (B,). Errors: ValueError on shapes."""
        z, chosen = _anchors_and_positives(views, labels)
        scores, valid = self_scores(z, self.temperature), chosen.counts > 0
        attraction = chosen.among(scores).masked_fill(~chosen.present, -torch.inf)
        repulsion = logsumexp(chosen.left_out(scores))
        denominator = logsumexp(torch.stack([logsumexp(attraction) - self.epsilon, repulsion]), 0)
        values = denominator - _mean_over(attraction.masked_fill(~chosen.present, 0), chosen.present)
        return LossTerms(values.masked_fill(~valid, 0), valid)
