"""k-means in batched tensor operations, for features on an accelerator.

N rows, D features, K clusters. Starts are drawn by greedy k-means++ (Arthur and Vassilvitskii 2007) and
improved by Lloyd's algorithm. There are no scattered sums, and running sums add whole numbers. So results do
not depend on the order in which a device adds: a seed gives the same clusters again on the same device.
"""

import math

import torch
from torch import Tensor

from contrasweep.data.seeds import torch_generator

# Lloyd stops when the centres move less than this, in units of the mean variance of a feature.
_TOLERANCE = 1e-4
# The number of distances in memory at once: 128 MiB in float32.
_BLOCK_CELLS = 2**25
_WEIGHT_STEPS = 2**30


def lloyd_kmeans(
    features: Tensor, clusters: int, seed: int, *, starts: int = 3, iterations: int = 300
) -> Tensor:
    """Group rows by k-means on their device; the best start is kept.

    An empty cluster takes the row that is farthest from its centre, so no cluster stays empty.

    Args:
        features: ``(N, D)``, finite; float64 is computed in float64, other types in float32.
        clusters: the number of groups, 1..N.
        seed: determines the starts.
        starts: the number of starts, at least 1.
        iterations: the most iterations of Lloyd's algorithm for each start, at least 1.

    Returns:
        int64 ``(N,)`` on the device of the features, every number of 0..clusters-1 at least once.
    """
    rows = features.detach()
    rows = rows if rows.dtype == torch.float64 else rows.float()
    # Centred, because |x|^2 - 2xc + |c|^2 loses the fewest digits around the origin.
    rows = rows - rows.mean(dim=0)
    generator = torch_generator("lloyd k-means", seed)
    best: tuple[float, Tensor] | None = None
    for _ in range(starts):
        labels, inertia = _lloyd(rows, _plus_plus(rows, clusters, generator), iterations)
        if best is None or inertia < best[0]:
            best = inertia, labels
    assert best is not None
    return best[1]


def _plus_plus(rows: Tensor, clusters: int, generator: torch.Generator) -> Tensor:
    """Draw starting centres ``(K, D)``: each is the best of a few candidates, drawn by squared distance."""
    candidates = 2 + int(math.log(clusters))
    # Drawn on the CPU, all at once: every device gets the same numbers and does not wait for each.
    draws = torch.rand(clusters, candidates, generator=generator).to(rows)
    chosen = (draws[0, :1] * len(rows)).long().clamp(max=len(rows) - 1)
    nearest = _squared_distances(rows, rows[chosen])[:, 0]
    centres = [rows[chosen]]
    for step in range(1, clusters):
        # Whole numbers as weights: their running sum is exact in any order of addition.
        weights = (nearest / nearest.max().clamp(min=torch.finfo(rows.dtype).tiny) * _WEIGHT_STEPS).long()
        running = weights.cumsum(0)
        drawn = torch.searchsorted(running, (draws[step] * running[-1]).long(), right=True)
        drawn = drawn.clamp(max=len(rows) - 1)
        distances = torch.minimum(nearest[:, None], _squared_distances(rows, rows[drawn]))
        best = distances.sum(dim=0).argmin().view(1)
        nearest = distances.index_select(1, best)[:, 0]
        centres.append(rows[drawn[best]])
    return torch.cat(centres)


def _squared_distances(rows: Tensor, centres: Tensor) -> Tensor:
    squares = rows.square().sum(dim=1)[:, None] + centres.square().sum(dim=1)
    return (squares - 2 * rows @ centres.T).clamp(min=0.0)


def _lloyd(rows: Tensor, centres: Tensor, iterations: int) -> tuple[Tensor, float]:
    """Return clusters ``(N,)`` after Lloyd's iterations, and the sum of squared distances to their means."""
    enough = _TOLERANCE * float(rows.square().mean())
    for _ in range(iterations):
        moved = _means(rows, _without_empty(rows, _nearest(rows, centres), centres), len(centres))
        shift = float((moved - centres).square().sum())
        centres = moved
        if shift <= enough:
            break
    labels = _without_empty(rows, _nearest(rows, centres), centres)
    return labels, float((rows - _means(rows, labels, len(centres))[labels]).square().sum())


def _nearest(rows: Tensor, centres: Tensor) -> Tensor:
    halves = centres.square().sum(dim=1) / 2
    block = max(1, _BLOCK_CELLS // len(centres))
    return torch.cat([(halves - part @ centres.T).argmin(dim=1) for part in torch.split(rows, block)])


def _means(rows: Tensor, labels: Tensor, clusters: int) -> Tensor:
    """Return the mean of each cluster, ``(K, D)``; no cluster is empty."""
    sums = rows.new_zeros(clusters, rows.shape[1])
    block = max(1, _BLOCK_CELLS // clusters)
    for part, numbers in zip(torch.split(rows, block), torch.split(labels, block), strict=True):
        # A product with the memberships, because scattered additions have no fixed order on an accelerator.
        members = part.new_zeros(len(part), clusters).scatter_(1, numbers[:, None], 1.0)
        sums += members.T @ part
    return sums / labels.bincount(minlength=clusters)[:, None]


def _without_empty(rows: Tensor, labels: Tensor, centres: Tensor) -> Tensor:
    """Give each empty cluster the row farthest from its centre, from a cluster that keeps other rows."""
    counts = labels.bincount(minlength=len(centres))
    empty = (counts == 0).nonzero()[:, 0].tolist()
    if not empty:
        return labels
    labels = labels.clone()
    distances = (rows - centres[labels]).square().sum(dim=1)
    for cluster in empty:
        row = torch.where(counts[labels] > 1, distances, -1.0).argmax()
        counts[labels[row]] -= 1
        counts[cluster] = 1
        labels[row] = cluster
    return labels
