"""HardNeg-InfoNCE (HN-CL): negatives reweighted by how close they are, with an optional debiasing.

Robinson et al. 2021, "Contrastive learning with hard negative samples", https://arxiv.org/abs/2010.04592,
Eq. 4. The negatives are those of the batch, or the keys of a queue.
Shapes: B images, D width, N = 2B anchors, each with 2(B - 1) negatives; Q keys in the queue.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from contrasweep.losses.scores import (
    cosines,
    flat_views,
    full_precision,
    logsumexp,
    normalised,
    partner_scores,
    softplus,
)
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Fraction, NonNegative, Positive, require_queue, require_views


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
            return LossTerms.all_valid(softplus(torch.full_like(positive, -torch.inf) - positive))
        excluded = torch.zeros_like(scores)
        for offset in (-B, 0, B):
            excluded.diagonal(offset).fill_(-torch.inf)
        weighted = _Reweighting(self.beta, self.tau_plus, -1 / self.temperature, 2 * (B - 1))
        return LossTerms.all_valid(softplus(weighted.log_negatives(scores, positive, excluded) - positive))


class QueueHardNegInfoNCE(Loss):
    """HardNeg-InfoNCE of queries and their keys, with the Q keys of MoCo's queue as the negatives (n = Q).

    The equation is that of `HardNegInfoNCE`. Neither its authors' code nor CACR's has the form with a queue.
    """

    temperature: Positive
    beta: NonNegative
    tau_plus: Fraction = 0.0

    @full_precision
    def terms(self, queries: Tensor, keys: Tensor, queue: Tensor) -> LossTerms:
        """B valid terms for `queries` (B, D), `keys` (B, D) of the momentum encoder and `queue` (Q, D).

        Keys and queue are used without gradient. Errors: ValueError on shapes.
        """
        require_queue(queries, keys, queue)
        q = normalised(queries)
        positive = (q * normalised(keys.detach())).sum(1) / self.temperature
        scores = (q / self.temperature) @ normalised(queue.detach()).T
        weighted = _Reweighting(self.beta, self.tau_plus, -1 / self.temperature, len(queue))
        return LossTerms.all_valid(softplus(weighted.log_negatives(scores, positive) - positive))


class _Reweighting(NamedTuple):
    """How `negatives` of each anchor are weighed; `smallest` is the lowest score of a cosine."""

    beta: float
    tau_plus: float
    smallest: float
    negatives: int

    def log_negatives(self, scores: Tensor, positive: Tensor, excluded: Tensor | float = 0.0) -> Tensor:
        """Return log Ng (N,) of `scores` (N, M); `excluded` is -inf where a score is no negative, else 0."""
        log_count = math.log(self.negatives)
        log_R = (
            logsumexp((1 + self.beta) * scores + excluded)
            - logsumexp(self.beta * scores + excluded)
            + log_count
        )
        if self.tau_plus > 0:
            # log(R - tau_plus n e_pos) as log R + log(1 - e^x); where x >= 0 the difference is negative, the
            # floor holds
            x = math.log(self.tau_plus) + log_count + positive - log_R
            above = x < 0
            remainder = torch.log(-torch.expm1(x.masked_fill(~above, -1)))
            debiased = (log_R + remainder).masked_fill(~above & ~x.isnan(), -torch.inf)
            log_R = debiased - math.log1p(-self.tau_plus)
        return log_R.clamp_min(log_count + self.smallest)
