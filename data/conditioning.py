"""How much a clustering of the conditioning variable says about the labels, without training anything.

Source: Tsai et al., "Learning Weakly-supervised Contrastive Representations" (ICLR 2022).
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor


def cluster_information(clusters: Tensor | ArrayLike, labels: Tensor | ArrayLike) -> tuple[float, float]:
    """Return the mutual information I(Z; T) and the conditional entropy H(Z | T), both in bits.

    Z is the cluster and T the label of an image drawn evenly from those given; the values are exact for that
    empirical distribution, computed from counts. I + H(Z | T) = H(Z).

    Args:
        clusters: ``(N,)`` discrete values, Z.
        labels: ``(N,)`` discrete values, T.

    Raises:
        ValueError: the two are not one-dimensional, not of one length, or empty.
    """
    z, t = _discrete(clusters), _discrete(labels)
    if z.ndim != 1 or z.shape != t.shape:
        raise ValueError(f"clusters and labels must both be (N,), got {z.shape} and {t.shape}")
    if not len(z):
        raise ValueError("clusters and labels must hold at least one image")
    _, z_index, z_count = np.unique(z, return_inverse=True, return_counts=True)
    _, t_index, t_count = np.unique(t, return_inverse=True, return_counts=True)
    pairs, joint = np.unique(z_index * len(t_count) + t_index, return_counts=True)
    of_cluster = z_count[pairs // len(t_count)]
    of_label = t_count[pairs % len(t_count)]
    total = len(z)
    information = math.fsum(joint / total * np.log2(joint / of_cluster * (total / of_label)))
    conditional = math.fsum(joint / total * np.log2(of_label / joint))
    # Rounding can leave -1e-17 where the truth is 0, and neither quantity is ever negative.
    return max(information, 0.0), max(conditional, 0.0)


def _discrete(values: Tensor | ArrayLike) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
