"""SwAV: one view predicts the cluster of the other.

Caron et al. 2020, "Unsupervised learning of visual features by contrasting cluster assignments",
https://arxiv.org/abs/2006.09882, Eq. 1-5.
Shapes: V views, B images, D width, K prototypes.
"""

from itertools import permutations
from typing import Annotated

import torch
from torch import Tensor, nn

from contrasweep.losses.scores import full_precision, logsumexp, normalised
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Count, Number, Positive, require_views


@torch.no_grad()
@full_precision
def balanced_assignments(scores: Tensor, epsilon: float, iterations: int = 3) -> Tensor:
    """Soft assignments (B, K), rows summing to 1, that use all prototypes about equally (Eq. 3-5).

    Sinkhorn-Knopp on `e^{scores / epsilon}` for cosines `scores` (B, K): every iteration scales all
    prototypes to the same total, then each image to a total of 1. It works in log space, so that a small
    epsilon does not overflow, and without gradient.
    """
    logs = scores / epsilon
    for _ in range(iterations):
        logs = logs - logsumexp(logs, 0)
        logs = logs - logsumexp(logs, 1)[:, None]
    return logs.exp()


class SwAV(Loss):
    """`- sum_k q_bk log softmax_k(<z_a, c> / temperature)` for every ordered pair of views (a, b): Eq. 2.

    `q_b` are the balanced assignments of view b to K learned prototypes, without gradient.

    Attributes:
        prototypes: `(K, D)`, of length 1 at the start. The loss does not depend on their length. The released
            code sets it back to 1 before every step (`normalise_prototypes`), so that the learning rate keeps
            its meaning.
    """

    def __init__(
        self,
        dim: Count,
        prototypes: Annotated[int, Number(at_least=2, whole=True)],
        temperature: Positive = 0.1,
        epsilon: Positive = 0.05,
        iterations: Count = 3,
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.epsilon = epsilon
        self.iterations = iterations
        self.prototypes = nn.Parameter(torch.randn(prototypes, dim))
        self.normalise_prototypes()

    @torch.no_grad()
    def normalise_prototypes(self) -> None:
        """Give every prototype the length 1."""
        self.prototypes.copy_(normalised(self.prototypes))

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """V(V - 1)B valid terms for `views` (V, B, D), V >= 2. Errors: ValueError on shapes."""
        require_views(views, at_least=2)
        if self.prototypes.shape[1] != views.shape[2]:
            given = tuple(self.prototypes.shape)
            raise ValueError(f"prototypes must be (K, {views.shape[2]}), got {given}")
        scores = normalised(views) @ normalised(self.prototypes).to(views.dtype).T
        targets = [balanced_assignments(view, self.epsilon, self.iterations) for view in scores]
        # The targets sum to 1, so the cross-entropy is the logsumexp minus the expected score.
        logits = scores / self.temperature
        totals = logsumexp(logits)
        pairs = permutations(range(len(views)), 2)
        return LossTerms.all_valid(torch.cat([totals[a] - (targets[b] * logits[a]).sum(1) for a, b in pairs]))
