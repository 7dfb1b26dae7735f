"""InfoNCE with two or more views, and against a queue of keys.

InfoNCE: van den Oord et al. 2018, https://arxiv.org/abs/1807.03748. NT-Xent: Chen et al. 2020 (SimCLR),
https://arxiv.org/abs/2002.05709. More than two views: Tian et al. 2020 (CMC, full graph),
https://arxiv.org/abs/1906.05849. Queue: He et al. 2020 (MoCo), https://arxiv.org/abs/1911.05722.

Shapes: V views, B images, D width, N = V * B anchors, Q keys in the queue.
"""

from itertools import combinations
from typing import Annotated

import torch
from torch import Tensor

from contrasweep.losses.scores import (
    flat_views,
    full_precision,
    logsumexp,
    normalised,
    self_scores,
    softplus,
    without_self,
)
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive, require_queue, require_views
from contrasweep.rules import OneOf

NEGATIVES = ("cross", "all")


@full_precision
def info_nce_terms(views: Tensor, temperature: float, negatives: str = "cross") -> LossTerms:
    """`-log e^f(x_i,y_i) / (e^f(x_i,y_i) + sum_neg e^f)` for every ordered pair of views and every image.

    `negatives="cross"`: the `y_j` of the other images. `"all"`: their `y_j` and `x_j`, 2(B - 1) in all
    (NT-Xent).
    `views` (V, B, D) with V >= 2; V(V - 1)B terms, all valid. Raises ValueError for fewer than two views.

    With two views, the positive is left out of the sum and both are compared: where it dominates the sum, the
    difference of their logarithms would keep few digits, and none in TF32.
    """
    require_views(views, at_least=2)
    values = _all_negatives(views, temperature) if negatives == "all" else _cross_view(views, temperature)
    return LossTerms.all_valid(values)


def _cross_view(views: Tensor, temperature: float) -> Tensor:
    """Both directions of a pair of views are the rows and the columns of one (B, B) matrix of scores."""
    z = normalised(views)
    values = []
    for a, b in combinations(range(len(z)), 2):
        scores = (z[a] / temperature) @ z[b].T
        positive, negatives = scores.diagonal(), without_self(scores)
        values += [softplus(logsumexp(negatives, dim) - positive) for dim in (1, 0)]
    return torch.cat(values)


def _all_negatives(views: Tensor, temperature: float) -> Tensor:
    """The denominator of the pair (a, b) sums over all images of view b and the other images of view a."""
    V, B, _ = views.shape
    z = flat_views(views)
    scores = self_scores(z, temperature)
    if V == 2:
        return _nt_xent(scores)
    blocks = scores.view(V, B, V, B)
    positive = blocks.diagonal(dim1=1, dim2=3)
    per_view = logsumexp(blocks).transpose(1, 2)
    own_view = per_view.diagonal().T[:, None].expand_as(per_view)
    # The diagonal goes first: with one image its sums are empty, and the slope of log(0 + 0) is not a number.
    sums = torch.logaddexp(_off_diagonal(own_view), _off_diagonal(per_view))
    return (sums - _off_diagonal(positive)).flatten()


def _nt_xent(scores: Tensor) -> Tensor:
    """The terms (2B,) of two views from their scores (2B, 2B), whose diagonal is -inf."""
    images = len(scores) // 2
    first, second = slice(None, images), slice(images, None)
    partner = torch.zeros_like(scores)
    for rows, columns in ((first, second), (second, first)):
        partner[rows, columns].fill_diagonal_(-torch.inf)
    positive = torch.cat([scores[first, second].diagonal(), scores[second, first].diagonal()])
    return softplus(logsumexp(scores + partner) - positive)


def _off_diagonal(matrix: Tensor) -> Tensor:
    """Return the entries (V(V - 1), B) of `matrix` (V, V, B) beside its diagonal, row by row."""
    V, _, B = matrix.shape
    # Without its first entry, the matrix splits into rows of V + 1 that each end in one of the diagonal.
    return matrix.flatten(0, 1)[1:].view(V - 1, V + 1, B)[:, :-1].reshape(-1, B)


class InfoNCE(Loss):
    """Mean of `info_nce_terms`: InfoNCE (`negatives="cross"`), NT-Xent (`"all"`), CMC (V > 2)."""

    temperature: Positive
    negatives: Annotated[str, OneOf(NEGATIVES)] = "cross"

    def terms(self, views: Tensor) -> LossTerms:
        """Terms for `views` (V, B, D)."""
        return info_nce_terms(views, self.temperature, self.negatives)


class QueueInfoNCE(Loss):
    """MoCo's loss (its Eq. 1): `-log e^f(q_i,k_i) / (e^f(q_i,k_i) + sum_j e^f(q_i,queue_j))`.

    A query with several keys has a term for each of them, alone against the queue: CMC (its Eq. 8, the full
    graph) where the keys are the other views of the query's image.
    """

    temperature: Positive

    @full_precision
    def terms(self, queries: Tensor, keys: Tensor, queue: Tensor) -> LossTerms:
        """B valid terms for `queries` (B, D), `keys` (B, D) of the momentum encoder and `queue` (Q, D).

        With `keys` (B, K, D) there are B * K terms, query by query. Keys and queue are used without gradient.
        Errors: ValueError on shapes.
        """
        require_queue(queries, keys, queue, several_keys=True)
        q, k = normalised(queries), normalised(keys.detach())
        positive = (k.view(len(q), -1, q.shape[1]) @ q[:, :, None])[:, :, 0] / self.temperature
        negative = (q / self.temperature) @ normalised(queue.detach()).T
        return LossTerms.all_valid(softplus(logsumexp(negative)[:, None] - positive).flatten())
