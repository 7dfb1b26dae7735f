"""Clusters of a continuous condition or of features, for the objectives that need discrete groups."""

import torch
from torch import Tensor

from data.seeds import named_seed

_MINI_BATCH_ABOVE = 200_000


def kmeans_clusters(features: Tensor, clusters: int, seed: int) -> Tensor:
    """Group rows by k-means: Lloyd's algorithm, mini-batch k-means above 200,000 rows.

    Args:
        features: ``(N, D)``, finite, any floating type and device.
        clusters: how many groups, at least 1 and at most the number of distinct rows.
        seed: which start; the best of three k-means++ starts derived from it is kept.

    Returns:
        int64 ``(N,)`` on the CPU, cluster numbers 0..clusters-1.

    Raises:
        ValueError: the features have the wrong shape or type or are not finite, or the number of clusters is
            out of range.
    """
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if features.dim() != 2 or not features.is_floating_point():
        raise ValueError(f"features must be floating (N, D), got {features.dtype} {tuple(features.shape)}")
    if not bool(features.isfinite().all()):
        raise ValueError("features must be finite, got NaN or Inf")
    if clusters < 1:
        raise ValueError(f"clusters must be at least 1, got {clusters}")
    rows = features.detach().cpu().double()
    distinct = _distinct_rows(rows, enough=clusters)
    if distinct < clusters:
        raise ValueError(f"clusters must be at most the {distinct} distinct rows, got {clusters}")
    algorithm = MiniBatchKMeans if len(rows) > _MINI_BATCH_ABOVE else KMeans
    random_state = named_seed("k-means", seed) % 2**32
    fitted = algorithm(n_clusters=clusters, n_init=3, random_state=random_state).fit(rows.numpy())
    return torch.from_numpy(fitted.labels_).long()


def _distinct_rows(rows: Tensor, enough: int) -> int:
    """Count distinct rows, stopping at ``enough``: a full count would sort all rows."""
    seen: set[bytes] = set()
    # Adding zero turns -0.0 into 0.0, which is the same point with other bytes.
    for row in (rows + 0.0).numpy():
        seen.add(row.tobytes())
        if len(seen) == enough:
            break
    return len(seen)
