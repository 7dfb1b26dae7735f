"""Clusters of images with the same values of the k binary attributes of the highest entropy.

N images, A binary attributes.

Source: Tsai et al., "Learning Weakly-supervised Contrastive Representations" (ICLR 2022), Section 3.1.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from contrasweep.data.attributes import check_binary


def rank_by_entropy(values: Tensor) -> Tensor:
    """Return the numbers of the attributes from the highest entropy to the lowest: int64 ``(A,)``.

    Among equal ones, the earlier comes first. Counts are compared, so that rounding breaks no tie: the
    entropy of a binary attribute grows with the count of its rarer value.

    Raises:
        ValueError: ``values`` is not a matrix of 0 and 1, ``(N, A)``.
    """
    check_binary(values)
    ones = (values == 1).sum(dim=0)
    rarer = torch.minimum(ones, len(values) - ones)
    return rarer.argsort(descending=True, stable=True)


def top_k_clusters(values: Tensor, k: int) -> Tensor:
    """Return one cluster for each distinct pattern of the ``k`` attributes of the highest entropy.

    Clusters are numbered from 0 in the order of their patterns, read from the highest entropy on (000, 001,
    010, ...), so a cluster's number does not depend on the order of the images. Among attributes of equal
    entropy, the earlier ones are taken. Returns int64 ``(N,)`` on the CPU for ``values`` ``(N, A)``.

    Raises:
        ValueError: ``values`` is not a matrix of 0 and 1, or ``k`` is out of range.
    """
    ((_, clusters),) = top_k_clusterings(values, [k])
    return clusters


def top_k_clusterings(values: Tensor, ks: Sequence[int]) -> Iterator[tuple[int, Tensor]]:
    """Yield ``(k, top_k_clusters(values, k))`` for ascending k; each clustering refines the one before.

    Raises:
        ValueError: see `top_k_clusters`; or ``ks`` does not ascend.
    """
    check_binary(values)
    for k in ks:
        if not 1 <= k <= values.shape[1]:
            raise ValueError(f"k must be 1..{values.shape[1]}, the number of attributes, got {k}")
    if list(ks) != sorted(set(ks)):
        raise ValueError(f"the numbers of attributes must ascend, got {list(ks)}")
    return _refined(values, ks)


def _refined(values: Tensor, ks: Sequence[int]) -> Iterator[tuple[int, Tensor]]:
    ranked = (values.detach() == 1).cpu()[:, rank_by_entropy(values).cpu()].T.contiguous()
    clusters = torch.zeros(ranked.shape[1], dtype=torch.int64)
    for k, attribute in enumerate(ranked[: max(ks, default=0)], start=1):
        clusters = _split(clusters, attribute)
        if k in ks:
            yield k, clusters


def _split(clusters: Tensor, attribute: Tensor) -> Tensor:
    """Split each cluster by one attribute and renumber the halves, in order and without gaps."""
    halves = 2 * clusters + attribute
    there = halves.bincount() > 0
    return (there.cumsum(0) - 1)[halves]
