"""CACR: contrastive attraction among positives and contrastive repulsion among negatives.

Zheng et al. 2021, "Contrastive attraction and contrastive repulsion", https://arxiv.org/abs/2105.03746,
Eq. 3-8, Eq. 14 (rbf cost), Algorithm 3 (momentum encoder and queue), Table 8 (uniform weights).
Shapes: V = K + 1 views, B images, D width, Q keys in the queue.

With `d(a, b) = |a - b|^2 = 2 - 2 cos` and the cost c = d (every view is the query in turn):

    L_CA =   mean_i sum_k w+_ik c(x_i, x+_ik)      w+ = softmax_k(t_pos d),  over the image's K other views
    L_CR = - mean_i sum_j w-_ij c(x_i, x_j)        w- = softmax_j(-t_neg d), over other images and the queue
"""

import math
from collections.abc import Iterator
from itertools import combinations
from typing import Annotated

import torch
from torch import Tensor, nn

from contrasweep.losses.scores import full_precision, logsumexp, normalised, without_self
from contrasweep.losses.terms import LossTerms
from contrasweep.losses.validation import OneOf, Positive, checked, require_views

NEGATIVES = ("cross", "same")
COSTS = ("euclidean", "rbf")


@full_precision
def attraction_terms(
    views: Tensor,
    t_pos: float,
    attraction: bool = True,
    detach_positive_weights: bool = False,
    keys: Tensor | None = None,
) -> Tensor:
    """L_CA of every image (B,), averaged over the V queries of `views` (V, B, D).

    `attraction=False` makes w+ uniform; `detach_positive_weights` uses w+ without gradient, as in Algorithm
    3. `keys` (V, B, D) are a momentum encoder's embeddings of the same views; if given, they are the
    positives, without gradient.
    """
    z = normalised(views).transpose(0, 1)
    targets = z if keys is None else normalised(keys.detach()).transpose(0, 1)
    cosines = z @ targets.transpose(1, 2)
    distances = 2 - 2 * cosines
    if attraction:
        weights = without_self(t_pos * distances).softmax(2)
    else:
        weights = without_self(torch.zeros_like(distances)).softmax(2)
    if detach_positive_weights:
        weights = weights.detach()
    return (weights * distances).sum(2).mean(1)


@full_precision
def repulsion_terms(
    views: Tensor,
    t_neg: float,
    negatives: str = "cross",
    repulsion: bool = True,
    cost: str = "euclidean",
    precision: float = 2.0,
    queue: Tensor | None = None,
    intra_batch: bool = True,
) -> Tensor:
    """L_CR of every image (B,), averaged over the pairs of views (`"cross"`) or over the views (`"same"`).

    `negatives="cross"`: for each pair a < b, queries come from view a and keys from view b. `"same"`: keys
    come from the query's own view. The `queue` (Q, D) adds its keys, without gradient; `intra_batch=False`
    leaves only these. `repulsion=False` makes w- uniform. `cost="rbf"` is Eq. 14,
    `ln mean_i sum_j w-_ij e^{-precision d}`, which is pooled over the batch and so the same for every image.
    Without any negative, L_CR is 0.
    """
    cosines = list(_negative_cosines(views, negatives, queue, intra_batch))
    if not cosines:
        return views.sum((0, 2)) * 0
    per_pair = [_repulsion(s, logits, t_neg, repulsion, cost, precision) for s, logits in cosines]
    return torch.stack(per_pair).mean(0)


def _negative_cosines(
    views: Tensor, negatives: str, queue: Tensor | None, intra_batch: bool
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield cosines (B, J) with J keys, and the same with -inf where the key is not a negative.

    One item for each pair of views (`"cross"`) or each view (`"same"`); no item if no image has a negative.
    """
    z = normalised(views)
    V, B, _ = z.shape
    stored = None if queue is None or len(queue) == 0 else normalised(queue.detach()).to(z.dtype).T
    with_batch = intra_batch and B > 1
    pairs = combinations(range(V), 2) if negatives == "cross" else ((v, v) for v in range(V))
    for a, b in pairs:
        within = z[a] @ z[b].T if with_batch else z.new_empty(B, 0)
        masked = without_self(within) if with_batch else within
        if stored is not None:
            against_queue = z[a] @ stored
            yield torch.cat([within, against_queue], 1), torch.cat([masked, against_queue], 1)
        elif with_batch:
            yield within, masked


def _repulsion(
    cosines: Tensor, masked: Tensor, t_neg: float, repulsion: bool, cost: str, precision: float
) -> Tensor:
    """L_CR (B,) of one pair of views; `-t_neg d` is `2 t_neg cos` plus a constant, which softmax ignores."""
    logits = _log_weights(masked, t_neg, repulsion)
    if cost == "euclidean":
        return 2 * (logits.softmax(1) * cosines).sum(1) - 2
    exponents = logits.log_softmax(1) + 2 * precision * (cosines - 1)
    pooled = logsumexp(exponents.flatten()) - math.log(len(cosines))
    return pooled.expand(len(cosines))


def _log_weights(masked: Tensor, t_neg: float, repulsion: bool) -> Tensor:
    """Return `log w-`, up to a constant in each row."""
    return 2 * t_neg * masked if repulsion else torch.zeros_like(masked).where(masked > -torch.inf, masked)


@torch.no_grad()
@full_precision
def repulsion_entropy(
    views: Tensor,
    t_neg: float,
    negatives: str = "cross",
    queue: Tensor | None = None,
    intra_batch: bool = True,
    repulsion: bool = True,
) -> Tensor:
    """`H(X-|X) = - mean_i sum_j w-_ij log w-_ij` in nats, a scalar (Fig. 3); 0 without any negative.

    Its maximum is the logarithm of the number of negatives; uniform weights (`repulsion=False`) reach it.
    """
    entropies = []
    for cosines, masked in _negative_cosines(views, negatives, queue, intra_batch):
        logits = _log_weights(masked, t_neg, repulsion)
        expected = 2 * t_neg * (logits.softmax(1) * cosines).sum(1) if repulsion else 0
        entropies.append((logsumexp(logits) - expected).mean())
    return torch.stack(entropies).mean() if entropies else views.new_zeros(())


class CACR(nn.Module):
    """`L_CA + L_CR`, one term per image; `attraction_terms` and `repulsion_terms` explain the options."""

    @checked
    def __init__(
        self,
        t_pos: Positive = 1.0,
        t_neg: Positive = 2.0,
        negatives: Annotated[str, OneOf(NEGATIVES)] = "cross",
        attraction: bool = True,
        repulsion: bool = True,
        cost: Annotated[str, OneOf(COSTS)] = "euclidean",
        precision: Positive = 2.0,
        detach_positive_weights: bool = False,
        intra_batch: bool = True,
    ) -> None:
        super().__init__()
        self.t_pos = t_pos
        self.t_neg = t_neg
        self.negatives = negatives
        self.attraction = attraction
        self.repulsion = repulsion
        self.cost = cost
        self.precision = precision
        self.detach_positive_weights = detach_positive_weights
        self.intra_batch = intra_batch

    def terms(self, views: Tensor, queue: Tensor | None = None, keys: Tensor | None = None) -> LossTerms:
        """B valid terms for `views` (V, B, D), `queue` (Q, D), `keys` (V, B, D) of a momentum encoder."""
        require_views(views, at_least=2)
        if queue is not None and (queue.dim() != 2 or queue.shape[1] != views.shape[2]):
            raise ValueError(f"queue must have shape (Q, {views.shape[2]}), got {tuple(queue.shape)}")
        if keys is not None and keys.shape != views.shape:
            raise ValueError(
                f"keys must have the shape of views {tuple(views.shape)}, got {tuple(keys.shape)}"
            )
        attracted = attraction_terms(
            views, self.t_pos, self.attraction, self.detach_positive_weights, keys=keys
        )
        repelled = repulsion_terms(
            views,
            self.t_neg,
            self.negatives,
            self.repulsion,
            self.cost,
            self.precision,
            queue,
            self.intra_batch,
        )
        return LossTerms(attracted + repelled, torch.ones_like(attracted, dtype=torch.bool))

    def forward(self, views: Tensor, queue: Tensor | None = None, keys: Tensor | None = None) -> Tensor:
        """Scalar loss; arguments as for `terms`."""
        return self.terms(views, queue, keys).mean()

    def repulsion_entropy(self, views: Tensor, queue: Tensor | None = None) -> Tensor:
        """H(X-|X) of this loss's own weights w-, a scalar in nats without gradient."""
        require_views(views, at_least=2)
        return repulsion_entropy(views, self.t_neg, self.negatives, queue, self.intra_batch, self.repulsion)
