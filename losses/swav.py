"""SwAV: one view predicts the cluster of the other.

Caron et al. 2020, "Unsupervised learning of visual features by contrasting cluster assignments",
https://arxiv.org/abs/2006.09882, Eq. 1-5.
Shapes: V views, B images, D width, K prototypes.
"""

from typing import Annotated

import torch
from torch import Tensor, nn

from contrasweep.losses.scores import crop_cross_entropies, full_precision, logsumexp, normalised
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Count, Positive, checked, require_views, takes_tensors
from contrasweep.rules import Number


@checked
@takes_tensors
@torch.no_grad()
@full_precision
def balanced_assignments(scores: Tensor, epsilon: Positive, iterations: Count = 3) -> Tensor:
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

    `q_b` are the balanced assignments of view b to K learned prototypes, without gradient. With multi-crop
    (Eq. 6) there are local crops beside the views: they predict the assignments of all views and get none.
    With a queue (Section 3.1), embeddings of earlier batches are assigned together with those of the batch:
    a small batch alone cannot use many prototypes about equally.

    Attributes:
        prototypes: `(K, D)`, of length 1 at the start. The loss does not depend on their length. The released
            code sets it back to 1 before every step (`normalise_prototypes`), so that the learning rate keeps
            its meaning.
    """

    temperature: Positive
    epsilon: Positive
    iterations: Count

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
    def terms(self, views: Tensor, local: Tensor | None = None, queue: Tensor | None = None) -> LossTerms:
        """V(V + L - 1)B valid terms for `views` (V, B, D) and `local` crops (L, B, D), V + L >= 2.

        `queue` (V, Q, D) holds earlier embeddings of each view; all embeddings are normalised here. Errors:
        ValueError on shapes.
        """
        self._require_shapes(views, local, queue)
        crops = views if local is None else torch.cat([views, local])
        scores = normalised(crops) @ normalised(self.prototypes.to(views.dtype)).T
        targets = self._assignments(scores[: len(views)], queue)
        return LossTerms.all_valid(crop_cross_entropies(scores / self.temperature, targets))

    @torch.no_grad()
    def _assignments(self, scores: Tensor, queue: Tensor | None) -> list[Tensor]:
        """Return the assignments (B, K) of each view from its `scores` (V, B, K)."""
        if queue is not None:
            earlier = normalised(queue) @ normalised(self.prototypes.to(queue.dtype)).T
            scores = torch.cat([earlier, scores], dim=1)
        passed = 0 if queue is None else queue.shape[1]
        return [balanced_assignments(one, self.epsilon, self.iterations)[passed:] for one in scores]

    def _require_shapes(self, views: Tensor, local: Tensor | None, queue: Tensor | None) -> None:
        count = 0 if local is None else len(local)
        require_views(views, at_least=1 if count else 2)
        width = views.shape[2]
        if self.prototypes.shape[1] != width:
            raise ValueError(f"prototypes must be (K, {width}), got {tuple(self.prototypes.shape)}")
        if local is not None and local.shape[1:] != views.shape[1:]:
            raise ValueError(f"local must be (L, {views.shape[1]}, {width}), got {tuple(local.shape)}")
        if queue is not None and (queue.dim() != 3 or (len(queue), queue.shape[2]) != (len(views), width)):
            raise ValueError(f"queue must be ({len(views)}, Q, {width}), got {tuple(queue.shape)}")
