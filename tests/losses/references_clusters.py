"""The losses with prototypes as their papers write them: loops over scalars, in float64."""

from itertools import permutations

import numpy as np
import torch
from references import cos, mean, unit
from torch import Tensor


def sinkhorn(scores: Tensor, epsilon: float, iterations: int) -> Tensor:
    """Caron et al. 2020, Eq. 5; here rows are images, and each row of the result sums to 1."""
    B, K = scores.shape
    Q = (scores / epsilon).exp()
    for _ in range(iterations):
        for k in range(K):
            Q[:, k] = Q[:, k] / Q[:, k].sum() * (B / K)
        for i in range(B):
            Q[i] = Q[i] / Q[i].sum()
    return Q


def swapped_prediction(
    views: Tensor, prototypes: Tensor, temperature: float, epsilon: float, iterations: int
) -> Tensor:
    """Caron et al. 2020, Eq. 1 and 2."""
    V, B, _ = views.shape
    scores = torch.stack([torch.stack([cos(z, c) for c in prototypes]) for view in views for z in view])
    scores = scores.view(V, B, -1)
    values = []
    for a, b in permutations(range(V), 2):
        codes = sinkhorn(scores[b].detach().clone(), epsilon, iterations)
        for i in range(B):
            shares = [(s / temperature).exp() for s in scores[a, i]]
            values.append(-sum(q * (p / sum(shares)).log() for q, p in zip(codes[i], shares, strict=True)))
    return mean(values)


def prototype_nce(queries: Tensor, prototypes: Tensor, concentrations: Tensor, clusters: Tensor) -> Tensor:
    """Li et al. 2021, the second term of Eq. 11 for one clustering."""
    values = []
    for q, s in zip(queries, clusters.tolist(), strict=True):
        shares = [(cos(q, c) / phi).exp() for c, phi in zip(prototypes, concentrations, strict=True)]
        values.append(-(shares[s] / sum(shares)).log())
    return mean(values)


def concentrations(embeddings: Tensor, clusters: Tensor, temperature: float) -> Tensor:
    """Li et al. 2021, Eq. 12, with the bounds and the scale of the released code."""
    found: list[float | None] = []
    for k in range(int(clusters.max()) + 1):
        members = [unit(z) for z, cluster in zip(embeddings, clusters.tolist(), strict=True) if cluster == k]
        centre = sum(members) / len(members)
        total = sum(float((z - centre).norm()) for z in members)
        found.append(total / (len(members) * np.log(len(members) + 10)) if len(members) > 1 else None)
    largest = max((phi for phi in found if phi is not None), default=0.0)
    phi = np.array([largest if one is None else one for one in found])
    phi = phi.clip(np.percentile(phi, 10), np.percentile(phi, 90))
    return torch.from_numpy(temperature * phi / phi.mean())
