"""FairKL: the distances of bias-aligned and bias-conflicting pairs should follow one distribution.

Barbano et al. 2023, "Unbiased supervised contrastive learning", https://arxiv.org/abs/2211.05568, Eq. 9-10
and Table 11; continuous bias: section B.2.4.
Shapes: V views, B images, D width, N = V * B anchors.

There are four populations of pairs: positive (same class) or negative, each aligned (same bias) or
conflicting. No anchor is paired with itself. Each population has the mean mu and the population standard
deviation s of its distances `d = 2 - 2 cos`, pooled over the batch. One term compares the aligned (a) with
the conflicting (c) positives, the other one does the same for the negatives:

    kl          1/2 [ (s_a^2 + (mu_a - mu_c)^2) / s_c^2 - log(s_a^2 / s_c^2) - 1 ]       (Eq. 10)
    jeffreys    kl in both directions, added
    moments     (mu_a - mu_c)^2 + (s_a - s_c)^2
    mean        (mu_a - mu_c)^2
    released    the formula of the published code, see `_released`
"""

from typing import Annotated, Any

import torch
from torch import Tensor

from contrasweep.losses.derivatives import first_derivative_only
from contrasweep.losses.groups import anchor_values
from contrasweep.losses.pair_populations import PairPopulations, pair_populations
from contrasweep.losses.scores import cosines, flat_views, full_precision, normalised
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import extremes, require_views
from contrasweep.rules import OneOf

FORMS = ("kl", "jeffreys", "moments", "mean", "released")


class FairKL(Loss):
    """Sum of two terms, one for the positives and one for the negatives.

    A term is invalid and adds nothing if one of its two populations has fewer than two unordered pairs; if
    both are, the loss is a zero with zero gradient. With `form="released"` both terms are always valid.
    """

    form: Annotated[str, OneOf(FORMS)] = "kl"
    sums_terms = True

    @full_precision
    def terms(
        self, views: Tensor, labels: Tensor, bias: Tensor | None = None, bias_similarity: Tensor | None = None
    ) -> LossTerms:
        """Two terms for `views` (V, B, D), `labels` (B,), and `bias` (B,) or `bias_similarity` (B, B).

        Errors: ValueError on shapes, unless exactly one of the two is given, and on a similarity with
        `form="released"`.
        """
        if bias is not None and bias_similarity is None:
            require_views(views, labels=labels, bias=bias)
            if self.form == "released":
                return _released(views[0], labels, bias)
            pairs = pair_populations(anchor_values(labels, views), anchor_values(bias, views))
            mean, variance = _Moments.apply(cosines(flat_views(views)), pairs)
            # The counts hold each pair in both orders.
            return _compared(2 - 2 * mean, 4 * variance, pairs.counts >= 4, self.form)
        if bias_similarity is None or bias is not None:
            raise ValueError(
                "FairKL takes either bias (one label per image) or bias_similarity (one value per pair)"
            )
        if self.form == "released":
            raise ValueError("form='released' is defined for bias labels only, not for bias_similarity")
        return _continuous(views, labels, bias_similarity, self.form)


def _continuous(views: Tensor, labels: Tensor, bias_similarity: Tensor, form: str) -> LossTerms:
    """FairKL for a bias that is a similarity b in [0, 1] of each pair of images, not a label (B.2.4).

    Each pair enters the aligned population with the distance `b d` and the conflicting one with `(1 - b) d`.
    The means are `1/N sum b d` and `1/N sum (1 - b) d`, with N the number of anchors, as in the paper. The
    paper gives no standard deviation; we take the standard deviation of the weighted distances over the
    pairs of the class (for the negatives: of the other classes). A term with fewer than two pairs is invalid;
    for kl and jeffreys, also one of a population whose weights come to fewer than two pairs.
    """
    require_views(views, labels=labels)
    B = views.shape[1]
    if bias_similarity.shape != (B, B):
        raise ValueError(f"bias_similarity must have shape ({B}, {B}), got {tuple(bias_similarity.shape)}")
    _require_similarity(bias_similarity)
    distances = 2 - 2 * cosines(flat_views(views))
    b = bias_similarity.to(distances.dtype).repeat(len(views), len(views))
    classes = anchor_values(labels, views)
    pairs = pair_populations(classes, torch.zeros_like(classes))
    aligned, conflicting = (_Moments.apply(weight * distances, pairs) for weight in (b, 1 - b))
    # All anchors have the same bias here, so these are all the positives and all the negatives.
    both = slice(0, None, 2)
    mean, variance = (
        torch.stack([a[both], c[both]], 1).flatten() for a, c in zip(aligned, conflicting, strict=True)
    )
    counts = pairs.counts[both].repeat_interleave(2)
    enough = counts >= 4
    if form in ("kl", "jeffreys"):
        # These divide by variances, which of a population without weight are rounding errors.
        held = torch.stack([pairs.sums(weight)[both] for weight in (b, 1 - b)], 1)
        # In this form a NaN counts, so that it comes out.
        enough = enough & ~(held.flatten() < 4)
    return _compared(mean * counts / len(distances), variance, enough, form)


def _require_similarity(similarity: Tensor) -> None:
    """Check on a CPU that similarities lie in [0, 1], up to rounding in bfloat16; NaN is told by the loss."""
    found = extremes(similarity)
    if found is not None and (found[0] < -1e-2 or found[1] > 1 + 1e-2):
        raise ValueError(
            f"bias_similarity must lie in [0, 1], got {found[0]:g}..{found[1]:g}; "
            "of cosines c, (1 + c) / 2 does"
        )


def _compared(mean: Tensor, variance: Tensor, enough: Tensor, form: str) -> LossTerms:
    """Return the two terms (2,) from the moments (4,) of the four populations.

    A variance is at least the rounding error of a distance, so that equal point masses have the distance 0.
    """
    valid = enough.view(2, 2).all(1)
    (mu_a, mu_c), (a, c) = mean.view(2, 2).T, _floored(variance).view(2, 2).T
    gap = (mu_a - mu_c).square()
    if form == "mean":
        values = gap
    elif form == "moments":
        values = gap + (a.sqrt() - c.sqrt()).square()
    elif form == "kl":
        values = _gaussian_kl(gap, a, c)
    else:
        values = _gaussian_kl(gap, a, c) + _gaussian_kl(gap, c, a)
    return LossTerms(values, valid)


def _gaussian_kl(gap: Tensor, a: Tensor, c: Tensor) -> Tensor:
    """`KL(N(mu_a, a) || N(mu_c, c))` from the squared gap between the means and from the variances a and c.

    It uses log1p of (ratio - 1), which keeps the digits when the two variances are nearly equal.
    """
    excess = (a - c) / c
    log_ratio = torch.where(excess > -0.5, excess.clamp_min(-0.5).log1p(), (a / c).log())
    return 0.5 * (gap / c + excess - log_ratio)


def _released(first_view: Tensor, labels: Tensor, bias: Tensor) -> LossTerms:
    """The formula of the published code; s are the cosines of the first view.

    The positive aligned pairs include each image with itself.

    `mu` = sum of s over a population / max(count, 1); `S` = unbiased standard deviation of the whole (B, B)
    matrix with zeros outside the population. Positives: `(mu_c - mu_a)^2 + (S_a - S_c)^2 - mu_c`, negatives:
    `(mu_a - mu_c)^2 + (S_a - S_c)^2 + mu_a`.
    """
    s = cosines(normalised(first_view))
    pairs = pair_populations(labels, bias, with_self=True)
    mean, variance = _Moments.apply(s, pairs)
    count = pairs.counts.to(s.dtype)
    inside, outside = count / max(s.numel() - 1, 1), 1 - count / s.numel()
    deviation = _floored((variance + mean.square() * outside) * inside).sqrt()
    moments = torch.stack([mean, deviation]).view(2, 2, 2)  # moment, sign, aligned or conflicting
    values = (moments[..., 0] - moments[..., 1]).square().sum(0)
    values = values + torch.stack([-mean[1], mean[2]])
    return LossTerms(values, torch.ones(2, dtype=torch.bool, device=s.device))


def _floored(variance: Tensor) -> Tensor:
    """Raise variances to the rounding error of a distance, so that roots and ratios stay differentiable."""
    return variance.clamp_min(torch.finfo(variance.dtype).eps ** 2)


class _Moments(torch.autograd.Function):
    """Mean and population variance, (4,) each, of the entries of `x` (N, N) in each population of pairs.

    It takes two passes: in float32 the mean of squares minus the squared mean cancels to nothing.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, pairs: PairPopulations) -> tuple[Tensor, Tensor]:
        count = pairs.counts.clamp_min(1).to(x.dtype)
        mean = pairs.sums(x) / count
        centred = pairs.spread(mean).sub_(x).neg_()
        ctx.save_for_backward(centred, count)
        ctx.pairs = pairs
        return mean, pairs.sums(centred.square()) / count

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad_mean: Tensor, grad_variance: Tensor) -> tuple[Tensor, None]:
        centred, count = ctx.saved_tensors
        grad = ctx.pairs.spread(2 * grad_variance / count).mul_(centred)
        grad.add_(ctx.pairs.spread(grad_mean / count))
        if not ctx.pairs.with_self:
            grad.fill_diagonal_(0)
        return grad, None
