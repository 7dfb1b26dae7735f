"""Clusters for the objectives that need discrete groups: by k-means, by instance, by label.

`data.top_k` makes clusters from attributes, `data.hierarchy` from a hierarchy of classes.

k-means on an accelerator works in batched tensor operations: N rows, D features, K clusters. Starts are drawn
by greedy k-means++ (Arthur and Vassilvitskii 2007) and improved by Lloyd's algorithm. There are no scattered
sums, and running sums add whole numbers. So results do not depend on the order in which a device adds: a seed
gives the same clusters again on the same device.
"""

import math
import random

import torch
from torch import Tensor

from contrasweep.data.seeds import named_seed, torch_generator

_MINI_BATCH_ABOVE = 200_000
# scikit-learn's size of a batch, and the least rows of a batch for each cluster. With about one row for each,
# the sum of squares was 1 to 6 % above that of Lloyd's algorithm; with eight, at most 0.5 % (400 to 2,500
# clusters of 5,000 to 201,000 rows in 8 dimensions; one to three seeds each).
_MINI_BATCH, _ROWS_OF_A_CLUSTER = 1024, 8
# Lloyd stops when the centres move less than this, in units of the mean variance of a feature.
_TOLERANCE = 1e-4
# The number of distances in memory at once: 128 MiB in float32.
_BLOCK_CELLS = 2**25
_WEIGHT_STEPS = 2**30


def kmeans_clusters(
    features: Tensor, clusters: int, seed: int, *, starts: int = 3, iterations: int = 300
) -> Tensor:
    """Group rows by k-means.

    On the CPU: Lloyd's algorithm, or mini-batch k-means above 200,000 rows. On an accelerator: Lloyd's
    algorithm there (`lloyd_kmeans`), so that only the result is copied.

    Args:
        features: ``(N, D)``, finite, any floating type and device.
        clusters: the number of groups, at least 1 and at most the number of distinct rows.
        seed: determines the starts.
        starts: the number of k-means++ starts; the best result is kept.
        iterations: the most iterations of Lloyd's algorithm. One start of 20 costs a third to a sixth of the
            default and ends within half a per cent of its sum of squares on features: enough for clusters
            that are recomputed in every epoch.

    Returns:
        int64 ``(N,)`` on the CPU, cluster numbers 0..clusters-1.

    Raises:
        ValueError: the features have the wrong shape or type or are not finite, or the number of clusters,
            starts or iterations is out of range.
    """
    if features.dim() != 2 or not features.is_floating_point():
        raise ValueError(f"features must be floating (N, D), got {features.dtype} {tuple(features.shape)}")
    if not bool(features.isfinite().all()):
        raise ValueError("features must be finite, got NaN or Inf")
    if clusters < 1:
        raise ValueError(f"clusters must be at least 1, got {clusters}")
    if min(starts, iterations) < 1:
        raise ValueError(f"starts and iterations must be at least 1, got {starts} and {iterations}")
    features = features.detach()
    distinct = _distinct_rows(features, enough=clusters)
    if distinct < clusters:
        raise ValueError(f"clusters must be at most the {distinct} distinct rows, got {clusters}")
    if features.device.type == "cpu":
        return _scikit_kmeans(features, clusters, seed, starts, iterations)
    return lloyd_kmeans(features, clusters, seed, starts=starts, iterations=iterations).cpu()


def instance_clusters(images: int) -> Tensor:
    """Return one cluster for each image, int64 ``(N,)``; with them, Cl-InfoNCE is SimCLR.

    Raises:
        ValueError: there are no images.
    """
    if images < 1:
        raise ValueError(f"clusters need at least one image, got {images}")
    return torch.arange(images)


def label_clusters(labels: Tensor) -> Tensor:
    """Return the classes as clusters, int64 ``(N,)`` without gaps; with them, Cl-InfoNCE is SupCon.

    Raises:
        ValueError: the labels are not whole numbers ``(N,)``.
    """
    if labels.dim() != 1 or labels.is_floating_point() or labels.is_complex() or not len(labels):
        raise ValueError(f"labels must be whole numbers (N,), got {labels.dtype} {tuple(labels.shape)}")
    clusters: Tensor = torch.unique(labels.detach().cpu(), return_inverse=True)[1]
    return clusters


def _scikit_kmeans(features: Tensor, clusters: int, seed: int, starts: int, iterations: int) -> Tensor:
    # A library that scikit-learn imports draws from this generator as it is imported.
    state = random.getstate()
    from sklearn.cluster import KMeans, MiniBatchKMeans

    random.setstate(state)
    settings = {"n_clusters": clusters, "n_init": starts, "random_state": named_seed("k-means", seed) % 2**32}
    if len(features) > _MINI_BATCH_ABOVE:
        batch = max(_MINI_BATCH, _ROWS_OF_A_CLUSTER * clusters)
        algorithm = MiniBatchKMeans(**settings, batch_size=batch)
    else:
        algorithm = KMeans(**settings, max_iter=iterations)
    fitted = algorithm.fit(features.double().numpy())
    return torch.from_numpy(fitted.labels_).long()


def _distinct_rows(rows: Tensor, enough: int) -> int:
    """Count distinct rows, stopping at ``enough``: a full count would sort all rows."""
    seen: set[bytes] = set()
    # In parts, so that no more rows than necessary are copied from an accelerator.
    for part in torch.split(rows, 4096):
        # Adding zero turns -0.0 into 0.0: the same point, but other bytes.
        for row in (part.cpu().double() + 0.0).numpy():
            seen.add(row.tobytes())
            if len(seen) == enough:
                return enough
    return len(seen)


def lloyd_kmeans(
    features: Tensor, clusters: int, seed: int, *, starts: int = 3, iterations: int = 300
) -> Tensor:
    """Group rows by k-means on their device, where the result stays; arguments as for `kmeans_clusters`.

    That function checks them; this one does not, because each check would wait for the device.
    An empty cluster takes the row that is farthest from its centre, so every number of 0..clusters-1 occurs.
    Features in float64 are computed in float64, other types in float32.
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
