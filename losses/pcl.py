"""PCL: an image attracts the prototype of its cluster and repels all others.

Li et al. 2021, "Prototypical contrastive learning of unsupervised representations",
https://arxiv.org/abs/2005.04966, Eq. 11 and 12. ProtoNCE is InfoNCE against a queue (`QueueInfoNCE`) plus the
mean of `PrototypeNCE` over several clusterings.
Shapes: B images in the batch, N images in all, D width, K prototypes.
"""

import torch
from torch import Tensor

from contrasweep.losses.scores import full_precision, logsumexp, normalised
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import (
    POSITIVE,
    require_classes,
    require_positive,
    takes_tensors,
)

SMOOTHING = 10.0
"""alpha of Eq. 12: it keeps the concentration of small clusters from becoming too large."""

SMALLEST_SHARE = 0.01
"""The smallest concentration, as a share of the mean: a cluster of equal points would have temperature 0."""


@takes_tensors
@torch.no_grad()
@full_precision
def cluster_prototypes(embeddings: Tensor, clusters: Tensor) -> Tensor:
    """Return the mean embedding (K, D) of each cluster, not normalised.

    `embeddings` (N, D) are normalised here; `clusters` (N,) are 0 .. K - 1, and no cluster is empty.
    """
    clusters = require_classes("clusters", clusters, len(embeddings), len(embeddings))
    sums = embeddings.new_zeros(int(clusters.max()) + 1, embeddings.shape[1])
    sums.index_add_(0, clusters, normalised(embeddings))
    return sums / torch.bincount(clusters)[:, None]


@takes_tensors
@torch.no_grad()
@full_precision
def cluster_concentrations(
    embeddings: Tensor, clusters: Tensor, prototypes: Tensor, temperature: float
) -> Tensor:
    """Return phi (K,) of Eq. 12, scaled so that its mean is `temperature`.

    Before scaling, phi is `sum |v - c| / (n log(n + 10))` over the n embeddings v of a cluster with the mean
    c. `embeddings` (N, D) are normalised here, `prototypes` (K, D) come from `cluster_prototypes`. As in the
    released code, a cluster of one image gets the largest phi of all, and phi is clipped at its 10th and 90th
    percentile before scaling.
    """
    POSITIVE.check("temperature", temperature)
    clusters = require_classes("clusters", clusters, len(embeddings), len(prototypes))
    distances = (normalised(embeddings) - prototypes[clusters]).norm(dim=1)
    # Equal embeddings leave a rounding error, which would decide phi where every cluster has only such ones.
    distances = distances.masked_fill(distances <= 16 * torch.finfo(distances.dtype).eps, 0)
    sizes = torch.bincount(clusters, minlength=len(prototypes))
    spread = distances.new_zeros(len(prototypes)).index_add_(0, clusters, distances)
    spread = spread / (sizes * (sizes + SMOOTHING).log())
    spread = torch.where(sizes > 1, spread, spread.masked_fill(sizes <= 1, 0).max())
    low, high = spread.quantile(torch.tensor([0.1, 0.9]).to(spread))
    spread = spread.clamp(low, high)
    mean = spread.mean()
    shares = torch.where(mean > 0, spread / mean, torch.ones_like(spread))
    return temperature * shares.clamp_min(SMALLEST_SHARE)


class PrototypeNCE(Loss):
    """The prototype term of Eq. 11 for one clustering; s is the query's cluster.

        - log e^{<q, c_s> / phi_s} / sum_k e^{<q, c_k> / phi_k}

    Only the queries have a gradient. The sum runs over all K prototypes; the paper samples r of them.
    """

    @full_precision
    def terms(
        self, queries: Tensor, prototypes: Tensor, concentrations: Tensor, clusters: Tensor
    ) -> LossTerms:
        """B valid terms for `queries` (B, D) and `prototypes` (K, D), which are normalised here.

        `concentrations` (K,) are phi, above 0; `clusters` (B,) are 0 .. K - 1. Errors: ValueError on others.
        """
        if queries.dim() != 2 or prototypes.dim() != 2 or prototypes.shape[1] != queries.shape[1]:
            shapes = f"{tuple(queries.shape)} and {tuple(prototypes.shape)}"
            raise ValueError(f"queries must be (B, D) and prototypes (K, D), got {shapes}")
        clusters = require_classes("clusters", clusters, len(queries), len(prototypes))
        if concentrations.shape != prototypes.shape[:1]:
            given = tuple(concentrations.shape)
            raise ValueError(f"concentrations must have shape ({len(prototypes)},), got {given}")
        require_positive("concentrations", concentrations)
        directions = normalised(prototypes.detach()) / concentrations.detach()[:, None]
        scores = normalised(queries) @ directions.T
        return LossTerms.all_valid(logsumexp(scores) - scores.gather(1, clusters[:, None])[:, 0])
