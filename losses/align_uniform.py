"""Alignment and uniformity on the hypersphere (AU-CL), of a batch alone and against a queue of keys.

Wang and Isola 2020, https://arxiv.org/abs/2005.10242, Eq. 4 (alignment) and 5 (uniformity); appendix, Eq. 17
and 18 (a queue). Shapes: V views, B images, D width, Q keys in the queue.
"""

import math
from itertools import combinations

import torch
from torch import Tensor

from contrasweep.losses.scores import full_precision, logsumexp, normalised, self_scores
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import NonNegative, Positive, require_queue, require_views


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


class QueueAlignUniform(Loss):
    """AU-CL with MoCo's queue: queries align with their keys, and are uniform with the queue.

    `align_weight E|q - k|^2 + uniform_weight log E e^{-t d}`, where d runs over the squared distances of all
    B * Q pairs of a query and a stored key and, with `intra_batch` (Eq. 18), of the B(B - 1) / 2 unordered
    pairs of queries. Without it (Eq. 17), the queue's pairs are alone. As in `AlignUniform`, each of the B
    terms holds the whole uniformity.

    The released code (moco_align_uniform, moco/builder.py) counts the same pairs.
    """

    t: Positive = 3.0
    align_weight: NonNegative = 3.0
    uniform_weight: NonNegative = 1.0
    intra_batch: bool = True

    @full_precision
    def terms(self, queries: Tensor, keys: Tensor, queue: Tensor) -> LossTerms:
        """B valid terms for `queries` (B, D), `keys` (B, D) of the momentum encoder and `queue` (Q, D).

        Keys and queue are used without gradient. Errors: ValueError on shapes.
        """
        require_queue(queries, keys, queue)
        q = normalised(queries)
        alignment = (q - normalised(keys.detach())).square().sum(1)
        B, pairs = len(q), len(q) * len(queue)
        total = logsumexp(logsumexp((2 * self.t * q) @ normalised(queue.detach()).T))
        if self.intra_batch and B > 1:
            # The matrix of scores holds each pair of queries twice.
            total = torch.logaddexp(
                total, logsumexp(logsumexp(self_scores(q, 1 / (2 * self.t)))) - math.log(2)
            )
            pairs += B * (B - 1) // 2
        uniformity = total - 2 * self.t - math.log(pairs)
        return LossTerms.all_valid(self.align_weight * alignment + self.uniform_weight * uniformity)


def _uniformity(z: Tensor, t: float) -> Tensor:
    """Return the uniformity of unit rows `z` (B, D), from `-t |x - x'|^2 = 2t <x, x'> - 2t`."""
    B = len(z)
    return logsumexp(logsumexp(self_scores(z, 1 / (2 * t)))) - 2 * t - math.log(B * (B - 1))
