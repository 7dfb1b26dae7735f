"""Clusters for the objectives that need discrete groups: by k-means, by instance, by label.

`data.top_k` makes clusters from attributes, `data.hierarchy` from a hierarchy of classes.
"""

import torch
from torch import Tensor

from contrasweep.data.kmeans import lloyd_kmeans
from contrasweep.data.seeds import named_seed

_MINI_BATCH_ABOVE = 200_000


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
    from sklearn.cluster import KMeans, MiniBatchKMeans

    settings = {"n_clusters": clusters, "n_init": starts, "random_state": named_seed("k-means", seed) % 2**32}
    if len(features) > _MINI_BATCH_ABOVE:
        algorithm = MiniBatchKMeans(**settings)
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
