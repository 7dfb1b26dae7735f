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
    views: Tensor,
    prototypes: Tensor,
    temperature: float,
    epsilon: float,
    iterations: int,
    local: Tensor | None = None,
    queue: Tensor | None = None,
) -> Tensor:
    """Caron et al. 2020, Eq. 1, 2 and 6; the queue's embeddings are assigned before those of the batch."""
    crops = views if local is None else torch.cat([views, local])
    V, B, _ = crops.shape

    def score(z: Tensor) -> Tensor:
        return torch.stack([cos(z, c) for c in prototypes])

    scores = torch.stack([score(z) for view in crops for z in view]).view(V, B, -1)
    values = []
    for a, b in permutations(range(V), 2):
        if b >= len(views):
            continue
        together = [] if queue is None else [score(z) for z in queue[b]]
        codes = sinkhorn(torch.stack([*together, *scores[b].detach()]), epsilon, iterations)[-B:]
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


def instance_discrimination(features: Tensor, memory: Tensor, index: Tensor, temperature: float) -> Tensor:
    """Tao et al. 2021, L_I: the softmax of Wu et al. 2018 over the memory of all images."""
    values = []
    for f, i in zip(features, index.tolist(), strict=True):
        shares = [(cos(f, m) / temperature).exp() for m in memory]
        values.append(-(shares[i] / sum(shares)).log())
    return mean(values)


def decorrelation(features: Tensor, temperature: float) -> Tensor:
    """Tao et al. 2021, L_F, as a mean over features."""
    rows = torch.stack([unit(f) for f in features])
    values = []
    for f in rows.T:
        shares = [(cos(f, other) / temperature).exp() for other in rows.T]
        values.append(-((cos(f, f) / temperature).exp() / sum(shares)).log())
    return mean(values)


def components(embeddings: Tensor) -> list[int]:
    """Zheng et al. 2021, Section 3: the parts of the graph of nearest neighbours, by joining sets."""
    found = list(range(len(embeddings)))
    for i, z in enumerate(embeddings.detach()):
        others = [j for j in range(len(embeddings)) if j != i]
        if others:
            old, new = found[i], found[max(others, key=lambda j: float(cos(z, embeddings[j].detach())))]
            found = [new if part == old else part for part in found]
    return found


def weak_labels(views: Tensor, temperature: float) -> Tensor:
    """Zheng et al. 2021, L_swap: L_out of each view, with the components of the other view as labels."""
    values = []
    for own, other in ((views[0], views[1]), (views[1], views[0])):
        labels = components(other)
        for i, z in enumerate(own):
            scores = {j: cos(z, own[j]) / temperature for j in range(len(own)) if j != i}
            total = sum(score.exp() for score in scores.values())
            same = [score - total.log() for j, score in scores.items() if labels[j] == labels[i]]
            values += [-sum(same) / len(same)] if same else []
    return mean(values)
