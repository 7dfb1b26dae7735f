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
from torch import Tensor

from contrasweep.losses.scores import full_precision, logsumexp, normalised, without_self
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Positive, checked, require_views, takes_tensors
from contrasweep.rules import OneOf

Negatives = Annotated[str, OneOf(("cross", "same"))]


class CACR(Loss):
    """`L_CA + L_CR`, one term per image: L_CA is averaged over the views, L_CR over the sets of negatives.

    `negatives="cross"`: for each pair of views a < b, queries come from view a and keys from view b.
    `"same"`: keys come from the query's own view. `intra_batch=False` leaves only the negatives of the queue.
    Without any negative, L_CR is 0.

    `attraction=False` and `repulsion=False` make w+ and w- uniform; `detach_positive_weights` uses w+ without
    gradient, as in Algorithm 3. `cost="rbf"` is Eq. 14, `ln mean_i sum_j w-_ij e^{-precision d}`, which is
    pooled over the batch and so the same for every image.
    """

    t_pos: Positive = 1.0
    t_neg: Positive = 2.0
    negatives: Negatives = "cross"
    attraction: bool = True
    repulsion: bool = True
    cost: Annotated[str, OneOf(("euclidean", "rbf"))] = "euclidean"
    precision: Positive = 2.0
    detach_positive_weights: bool = False
    intra_batch: bool = True

    def terms(self, views: Tensor, queue: Tensor | None = None, keys: Tensor | None = None) -> LossTerms:
        """B valid terms for `views` (V, B, D).

        `queue` (Q, D) adds its keys to the negatives; `keys` (V, B, D), a momentum encoder's embeddings of
        the same views, replace the positives. Both have no gradient. Errors: ValueError on shapes.
        """
        require_views(views, at_least=2)
        if queue is not None and (queue.dim() != 2 or queue.shape[1] != views.shape[2]):
            raise ValueError(f"queue must have shape (Q, {views.shape[2]}), got {tuple(queue.shape)}")
        if keys is not None and keys.shape != views.shape:
            allowed = f"the shape of views {tuple(views.shape)}"
            raise ValueError(f"keys must have {allowed}, got {tuple(keys.shape)}")
        return LossTerms.all_valid(self._attraction(views, keys) + self._repulsion(views, queue))

    def repulsion_entropy(self, views: Tensor, queue: Tensor | None = None) -> Tensor:
        """`H(X-|X)` of this loss's own weights w-, a scalar in nats without gradient."""
        require_views(views, at_least=2)
        return repulsion_entropy(views, self.t_neg, self.negatives, queue, self.intra_batch, self.repulsion)

    @full_precision
    def _attraction(self, views: Tensor, keys: Tensor | None) -> Tensor:
        """L_CA (B,)."""
        z = normalised(views).transpose(0, 1)
        targets = z if keys is None else normalised(keys.detach()).transpose(0, 1)
        distances = 2 - 2 * (z @ targets.transpose(1, 2))
        logits = self.t_pos * distances if self.attraction else torch.zeros_like(distances)
        weights = without_self(logits).softmax(2)
        if self.detach_positive_weights:
            weights = weights.detach()
        return (weights * distances).sum(2).mean(1)

    @full_precision
    def _repulsion(self, views: Tensor, queue: Tensor | None) -> Tensor:
        """L_CR (B,); `-t_neg d` is `2 t_neg cos` plus a constant, which softmax ignores."""
        found = []
        for cosines, masked in _negative_cosines(views, self.negatives, queue, self.intra_batch):
            logits = _log_weights(masked, self.t_neg, self.repulsion)
            if self.cost == "euclidean":
                found.append(2 * (logits.softmax(1) * cosines).sum(1) - 2)
            else:
                exponents = logits.log_softmax(1) + 2 * self.precision * (cosines - 1)
                pooled = logsumexp(exponents.flatten()) - math.log(len(cosines))
                found.append(pooled.expand(len(cosines)))
        return torch.stack(found).mean(0) if found else views.sum((0, 2)) * 0


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


def _log_weights(masked: Tensor, t_neg: float, repulsion: bool) -> Tensor:
    """Return `log w-`, up to a constant in each row."""
    return 2 * t_neg * masked if repulsion else torch.zeros_like(masked).where(masked > -torch.inf, masked)


@checked
@takes_tensors
@torch.no_grad()
@full_precision
def repulsion_entropy(
    views: Tensor,
    t_neg: Positive,
    negatives: Negatives = "cross",
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
