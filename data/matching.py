"""Clusters matched with labels, or with other clusters: the scores of a clustering.

N images.
"""

import torch
from torch import Tensor


def renumbered(clusters: Tensor, others: Tensor, count: int) -> Tensor:
    """Number `clusters` ``(N,)`` so that as many images as possible have the number of `others` ``(N,)``.

    Both hold numbers 0..count-1, on the CPU. An assignment problem: Kuhn, "The Hungarian method" (1955).
    """
    from scipy.optimize import linear_sum_assignment

    shared = (clusters * count + others).bincount(minlength=count * count).view(count, count)
    _, number = linear_sum_assignment(shared.numpy(), maximize=True)
    return torch.from_numpy(number)[clusters]


def clustering_accuracy(clusters: Tensor, labels: Tensor) -> float:
    """Return the share of images whose cluster is matched with their class (ACC), at best 1.

    Each class is matched with at most one cluster, so that the share is as large as possible. `clusters` and
    `labels` are int64 ``(N,)``, numbers from 0 on; their numbers may differ.

    Raises:
        ValueError: no image, or shapes that differ.
    """
    clusters, labels = _on_the_cpu(clusters, labels)
    count = int(torch.stack([clusters, labels]).max()) + 1
    return float((renumbered(clusters, labels, count) == labels).double().mean())


def clustering_nmi(clusters: Tensor, labels: Tensor) -> float:
    """Return the mutual information over the mean of both entropies (NMI), 0..1; see `clustering_accuracy`.

    Where clusters and labels are one group each, scikit-learn gives 1.
    """
    from sklearn.metrics import normalized_mutual_info_score

    clusters, labels = _on_the_cpu(clusters, labels)
    return float(normalized_mutual_info_score(labels.numpy(), clusters.numpy()))


def _on_the_cpu(clusters: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    if clusters.dim() != 1 or len(clusters) == 0 or clusters.shape != labels.shape:
        shapes = f"{tuple(clusters.shape)} and {tuple(labels.shape)}"
        raise ValueError(f"clusters and labels must both be (N,), N >= 1; got {shapes}")
    return clusters.cpu(), labels.cpu()
