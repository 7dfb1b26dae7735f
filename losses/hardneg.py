"""HardNeg-InfoNCE (HN-CL): negatives reweighted by how close they are, with an optional debiasing.

Robinson et al. 2021, "Contrastive learning with hard negative samples", https://arxiv.org/abs/2010.04592,
Eq. 4. Shapes: B images, D width, N = 2B anchors, each with 2(B - 1) negatives.
"""

import math

import torch
from torch import Tensor

from contrasweep.losses.scores import cosines, flat_views, full_precision, logsumexp, partner_scores, softplus
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Fraction, NonNegative, Positive, require_views


class HardNegInfoNCE(Loss):
    """`-log e_pos / (e_pos + Ng)` for both views of every image, e_j = e^f_j over n = 2(B - 1) negatives.

    `R = sum_j e_j^beta e_j / mean_j e_j^beta` and
    `Ng = max( (R - tau_plus n e_pos) / (1 - tau_plus), n e^{-1/temperature} )`.
    `tau_plus = 0` is the form without debiasing.
    """

    temperature: Positive
    beta: NonNegative
    tau_plus: Fraction = 0.0

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """N valid terms for `views` (2, B, D). Errors: ValueError on shapes."""
        require_views(views, exactly=2)
        z, B = flat_views(views), views.shape[1]
        scores, positive = cosines(z) / self.temperature, partner_scores(z, self.temperature)
        if B == 1:
            log_negative = torch.full_like(positive, -torch.inf)
        else:
            smallest = -1 / self.temperature
            log_negative = _reweighted_negatives(scores, positive, self.beta, self.tau_plus, smallest)
        return LossTerms.all_valid(softplus(log_negative - positive))


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
