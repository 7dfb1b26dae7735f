"""Supervised contrastive learning.

SupCon: Khosla et al. 2020, https://arxiv.org/abs/2004.11362, Eq. 2 (L_out) and Eq. 3 (L_in).
Shapes: V views, B images, D width, N = V * B anchors; each anchor is compared with all the others.
"""

from typing import Annotated

import torch
from torch import Tensor

from contrasweep.losses.groups import anchor_values, group_index, group_sizes, group_sums, positives
from contrasweep.losses.scores import flat_views, full_precision, logsumexp, self_scores
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive, require_views
from contrasweep.rules import OneOf

FORMS = ("out", "in")


@full_precision
def supcon_terms(views: Tensor, labels: Tensor, temperature: float, form: str = "out") -> LossTerms:
    """One term per anchor a; its positives P are the other anchors of its label.

    `form="out"`: `-1/|P| sum_{p in P} log( e^f(a,p) / sum_{k != a} e^f(a,k) )`, Khosla's Eq. 2.
    `form="in"`: `-log( sum_{p in P} e^f(a,p) / sum_{k != a} e^f(a,k) )`. Khosla's Eq. 3 adds
    `-log 1/|P|`, a constant for each anchor; ours is the form of Barbano et al. 2023, Eq. 7.

    `views` (V, B, D) and `labels` (B,). N terms; a term without a positive is invalid. Errors: ValueError
    on shapes.
    """
    require_views(views, labels=labels)
    z, group = flat_views(views), anchor_values(group_index(labels), views)
    scores = self_scores(z, temperature)
    if form == "in":
        chosen = positives(group)
        attraction = logsumexp(chosen.among(scores).masked_fill(~chosen.present, -torch.inf))
        valid = chosen.counts > 0
    else:
        others = group_sizes(group) - 1
        attraction = mean_positive_score(z, group_sums(z, group) - z, others, temperature)
        valid = others > 0
    return LossTerms((logsumexp(scores) - attraction.masked_fill(~valid, 0)), valid)


def mean_positive_score(z: Tensor, sums: Tensor, count: Tensor, temperature: float) -> Tensor:
    """Return the mean score (N,) of each anchor with its positives, from their sum (N, D) and number (N,)."""
    return (z * sums).sum(1) / count.clamp_min(1) / temperature


class SupCon(Loss):
    """Mean of `supcon_terms` over the anchors that have a positive."""

    temperature: Positive
    form: Annotated[str, OneOf(FORMS)] = "out"

    def terms(self, views: Tensor, labels: Tensor) -> LossTerms:
        """Terms for `views` (V, B, D) and `labels` (B,)."""
        return supcon_terms(views, labels, self.temperature, self.form)
