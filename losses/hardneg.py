"""HardNeg-InfoNCE (HN-CL): negatives reweighted by how close they are, with an optional debiasing.

Robinson et al. 2021, "Contrastive learning with hard negative samples", https://arxiv.org/abs/2010.04592,
Eq. 4. Shapes: B images, D width, N = 2B anchors, each with 2(B - 1) negatives.
"""

import math

import torch
from torch import Tensor, nn

from contrasweep.losses.scores import cosines, flat_views, full_precision, logsumexp, partner_scores, softplus
from contrasweep.losses.terms import LossTerms
from contrasweep.losses.validation import Fraction, NonNegative, Positive, checked, require_views


@full_precision
def hard_neg_info_nce_terms(
    views: Tensor, temperature: float, beta: float, tau_plus: float = 0.0
) -> LossTerms:
    """`-log e_pos / (e_pos + Ng)` for both views of every image, e_j = e^f_j over n = 2(B - 1) negatives.

    `R = sum_j e_j^beta e_j / mean_j e_j^beta` and
    `Ng = max( (R - tau_plus n e_pos) / (1 - tau_plus), n e^{-1/temperature} )`.
    `views` (2, B, D); N valid terms. `tau_plus = 0` is the form without debiasing. Errors: ValueError on
    shapes.
    """
    require_views(views, exactly=2)
    z, B = flat_views(views), views.shape[1]
    scores, positive = cosines(z) / temperature, partner_scores(z, temperature)
    if B == 1:
        log_negative = torch.full_like(positive, -torch.inf)
    else:
        log_negative = _reweighted_negatives(scores, positive, beta, tau_plus, -1 / temperature)
    values = softplus(log_negative - positive)
    return LossTerms(values, torch.ones_like(values, dtype=torch.bool))


def _reweighted_negatives(
    scores: Tensor, positive: Tensor, beta: float, tau_plus: float, smallest: float
) -> Tensor:
    """Return log Ng (N,); `smallest` is the lowest score that a cosine can give."""
    N, B = len(scores), len(scores) // 2
    excluded = torch.zeros_like(scores)
    for offset in (-B, 0, B):
        excluded.diagonal(offset).fill_(-torch.inf)
    log_count = math.log(N - 2)
    log_R = logsumexp((1 + beta) * scores + excluded) - logsumexp(beta * scores + excluded) + log_count
    if tau_plus > 0:
        # log(R - tau_plus n e_pos) as log R + log(1 - e^x); where x >= 0 the difference is negative, the
        # floor holds
        x = math.log(tau_plus) + log_count + positive - log_R
        above = x < 0
        remainder = torch.log(-torch.expm1(x.masked_fill(~above, -1)))
        log_R = (log_R + remainder).masked_fill(~above & ~x.isnan(), -torch.inf) - math.log1p(-tau_plus)
    return log_R.clamp_min(log_count + smallest)


class HardNegInfoNCE(nn.Module):
    """Mean of `hard_neg_info_nce_terms`."""

    @checked
    def __init__(self, temperature: Positive, beta: NonNegative, tau_plus: Fraction = 0.0) -> None:
        super().__init__()
        self.temperature = temperature
        self.beta = beta
        self.tau_plus = tau_plus

    def terms(self, views: Tensor) -> LossTerms:
        """Terms for `views` (2, B, D)."""
        return hard_neg_info_nce_terms(views, self.temperature, self.beta, self.tau_plus)

    def forward(self, views: Tensor) -> Tensor:
        """Scalar loss for `views` (2, B, D)."""
        return self.terms(views).mean()
