"""Alignment and uniformity on the hypersphere (AU-CL).

Wang and Isola 2020, https://arxiv.org/abs/2005.10242, Eq. 4 (alignment) and 5 (uniformity).
Shapes: V views, B images, D width.
"""

import math
from itertools import combinations

import torch
from torch import Tensor

from contrasweep.losses.scores import full_precision, logsumexp, normalised, self_scores
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NonNegative, Positive, require_views


class AlignUniform(Loss):
    """`align_weight E|x - y|^2 + uniform_weight mean over views of log E_{i != j} e^{-t |x_i - x_j|^2}`.

    Uniformity is pooled over a view and cannot be split by image, so each of the B terms is the image's own
    alignment plus the whole uniformity; the mean of the terms is the loss. With more than two views,
    alignment is averaged over the pairs of views. With one image there is no pair, and uniformity is 0.
    """

    t: Positive = 2.0
    align_weight: NonNegative = 1.0
    uniform_weight: NonNegative = 1.0

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """Terms for `views` (V, B, D), V >= 2. Errors: ValueError on other shapes."""
        require_views(views, at_least=2)
        z = normalised(views)
        pairs = list(combinations(range(len(z)), 2))
        distances = torch.stack([(z[a] - z[b]).square().sum(1) for a, b in pairs])
        values = self.align_weight * distances.mean(0)
        if views.shape[1] > 1:
            uniformities = torch.stack([_uniformity(view, self.t) for view in z])
            values = values + self.uniform_weight * uniformities.mean()
        return LossTerms.all_valid(values)


def _uniformity(z: Tensor, t: float) -> Tensor:
    """Return the uniformity of unit rows `z` (B, D), from `-t |x - x'|^2 = 2t <x, x'> - 2t`."""
    B = len(z)
    return logsumexp(logsumexp(self_scores(z, 1 / (2 * t)))) - 2 * t - math.log(B * (B - 1))
