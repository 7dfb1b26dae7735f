"""The information of clusters about the labels, computed without training.

Z is the cluster and T the label of an image. Useful clusters tell much about the label (a high mutual
information I(Z; T)) and little else (a low conditional entropy H(Z | T)).

Source: Tsai et al., "Learning Weakly-supervised Contrastive Representations" (ICLR 2022), Sections 3.2, 4.3.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike
from torch import Tensor


def cluster_information(clusters: Tensor | ArrayLike, labels: Tensor | ArrayLike) -> tuple[float, float]:
    """Return the mutual information I(Z; T) and the conditional entropy H(Z | T), both in bits.

    The values are exact for the empirical distribution: Z is the cluster and T the label of an image drawn
    uniformly from the given ones, both ``(N,)`` of discrete values. I + H(Z | T) = H(Z).

    Raises:
        ValueError: the arguments are not one-dimensional, differ in length, or are empty.
    """
    z, t = _discrete(clusters), _discrete(labels)
    if z.ndim != 1 or z.shape != t.shape:
        raise ValueError(f"clusters and labels must both be (N,), got {z.shape} and {t.shape}")
    if not len(z):
        raise ValueError("clusters and labels must hold at least one image")
    z_index, z_count = _counted(z)
    t_index, t_count = _counted(t)
    pairs, joint = np.unique(z_index * len(t_count) + t_index, return_counts=True)
    of_cluster = z_count[pairs // len(t_count)]
    of_label = t_count[pairs % len(t_count)]
    total = len(z)
    information = math.fsum((joint / total * np.log2(joint / of_cluster * (total / of_label))).tolist())
    conditional = math.fsum((joint / total * np.log2(of_label / joint)).tolist())
    # Neither quantity is negative, but rounding can give -1e-17 instead of 0.
    return max(information, 0.0), max(conditional, 0.0)


@dataclass(frozen=True)
class Crossing:
    """The crossing of rescaled I(Z; T) and rescaled -H(Z | T), and the best k.

    Attributes:
        at: the place, interpolated between the two neighbouring k along straight lines over log k.
        k: the neighbour with the smaller distance between the curves; for equal distances, the smaller k.
    """

    at: float
    k: int


@dataclass(frozen=True)
class InformationCurve:
    """The information about the labels in clusters by the k attributes of the highest entropy, for each k.

    Attributes:
        ks: the numbers of attributes, ascending.
        clusters: the number of clusters for each k.
        information: I(Z; T), bits.
        conditional_entropy: H(Z | T), bits.
    """

    ks: tuple[int, ...]
    clusters: tuple[int, ...]
    information: tuple[float, ...]
    conditional_entropy: tuple[float, ...]

    @property
    def rescaled_information(self) -> tuple[float, ...] | None:
        """I(Z; T), rescaled to 0..1 over the available k; None if it is the same for all k."""
        return rescaled(self.information)

    @property
    def rescaled_negative_entropy(self) -> tuple[float, ...] | None:
        """-H(Z | T), rescaled to 0..1 over the available k; None if it is the same for all k."""
        return rescaled([-entropy for entropy in self.conditional_entropy])

    @property
    def crossing(self) -> Crossing | None:
        """The first place where rescaled I rises to rescaled -H: the paper's choice of k (Section 4.3).

        None if a curve is flat, or the curves do not meet; for clusterings that refine each other they always
        meet. The place depends on the available k, because both curves are rescaled over them.
        """
        found = crossing(self.ks, self.information, [-entropy for entropy in self.conditional_entropy])
        return None if found is None else Crossing(found[0], self.ks[found[1]])


def information_curve(
    clusterings: Iterable[tuple[int, Tensor]], labels: Tensor | ArrayLike
) -> InformationCurve:
    """Return `cluster_information` for each of the given ``(k, clusters)``, k ascending.

    Raises:
        ValueError: there is no clustering, k does not ascend, or see `cluster_information`.
    """
    rows = []
    for k, clusters in clusterings:
        both = cluster_information(clusters, labels)
        rows.append((k, np.count_nonzero(_counted(_discrete(clusters))[1]), *both))
    ks = [row[0] for row in rows]
    if not ks or ks != sorted(set(ks)) or ks[0] < 1:
        raise ValueError(f"a curve needs clusterings for ascending k from 1 on, got k = {ks}")
    columns: list[tuple[float, ...]] = list(zip(*rows, strict=True))
    return InformationCurve(tuple(ks), tuple(map(int, columns[1])), columns[2], columns[3])


def crossing(
    xs: Sequence[float], rising: Sequence[float], falling: Sequence[float]
) -> tuple[float, int] | None:
    """Return the first place where the rescaled first curve rises to the rescaled second one.

    ``xs`` are ascending places above 0, ``rising`` and ``falling`` the heights of the curves there. The place
    is interpolated between its two neighbours along straight lines over log x; with it comes the number of
    the neighbour with the smaller distance between the curves (for equal distances, the lower place). None if
    a curve is flat, or the first one does not rise to the second.
    """
    ups, downs = rescaled(rising), rescaled(falling)
    if ups is None or downs is None:
        return None
    gaps = [up - down for up, down in zip(ups, downs, strict=True)]
    for left, (below, above) in enumerate(pairwise(gaps)):
        if below < 0 <= above:
            at = xs[left] * (xs[left + 1] / xs[left]) ** (below / (below - above))
            return at, left if -below <= above else left + 1
    return None


def rescaled(values: Sequence[float]) -> tuple[float, ...] | None:
    """Return the values rescaled to 0..1; None if all are equal."""
    low, high = min(values), max(values)
    return None if low == high else tuple((value - low) / (high - low) for value in values)


def _discrete(values: Tensor | ArrayLike) -> np.ndarray:
    return values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)


def _counted(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a number for each value, and the count of each number."""
    if values.dtype.kind in "iu" and values.min() >= 0 and values.max() < 4 * len(values):
        # Clusters and labels are usually small numbers, which can be counted without sorting.
        numbers = values.astype(np.int64)
        return numbers, np.bincount(numbers)
    _, index, count = np.unique(values, return_inverse=True, return_counts=True)
    return index, count
