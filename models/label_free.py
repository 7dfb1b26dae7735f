"""Scores of features that need no label: of their rank, of their spread, of how alike two views are.

N images, V views of an image, D features. All arithmetic is in float64 and without gradient.
"""

import math

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from contrasweep.models.probes.linear import NonFiniteFeatures

EPSILON = 1e-7
"""What RankMe and LiDAR add to each share before its logarithm is taken, as in both papers."""

RIDGE = 1e-4
"""What LiDAR adds to the diagonal of the covariance within images, as in the paper."""

_ROWS = 1024
"""The rows of a part of the matrix of all distances: bounds memory, does not change the result."""


@torch.no_grad()
def rankme(features: Tensor) -> float:
    """Return the effective rank of `features` `(N, D)`, about 1 to min(N, D): larger is better.

    It is exp of the entropy of the singular values, each over their sum plus `EPSILON` (Garrido et al.,
    ICML 2023). The features are neither centred nor normalised. If all of them are 0, it is 1.

    Raises:
        ValueError: no image, or features of another shape.
        NonFiniteFeatures: the features hold NaN or Inf.
    """
    return _effective_rank(torch.linalg.svdvals(_finite(features, "features", 2)))


@torch.no_grad()
def lidar(views: Tensor) -> float:
    """Return the effective rank of the LDA matrix of `views` `(V, N, D)`, about 1 to D: larger is better.

    Each image is a class of its own, with its views as members. The matrix is the covariance of the means of
    the images, whitened by the covariance within images plus `RIDGE` (Thilak et al., ICLR 2024); its rank is
    computed as in `rankme`, of its eigenvalues. If no image differs from another, it is 1.

    Raises:
        ValueError: no image, fewer than two views, or features of another shape.
        NonFiniteFeatures: the features hold NaN or Inf.
    """
    rows = _several_views(views)
    means = rows.mean(dim=0)
    spread, within = (means - means.mean(dim=0)), (rows - means).flatten(0, 1)
    whitened = _whitened(spread.T, within.T @ within / len(within))
    return _effective_rank(torch.linalg.svdvals(whitened).square() / len(means))


@torch.no_grad()
def alignment(views: Tensor) -> float:
    """Return the mean squared distance of two views of an image, of `views` `(2, N, D)`: smaller is better.

    The features are normalised to length 1 first, so it is in 0..4 (Wang and Isola, ICML 2020, Section 4.1
    with alpha 2). Collapsed features have the best alignment, 0: it is read beside `uniformity`.

    Raises:
        ValueError: no image, other than two views, or features of another shape.
        NonFiniteFeatures: the features hold NaN or Inf.
    """
    rows = _several_views(views)
    if len(rows) != 2:
        raise ValueError(f"alignment is of two views, got {len(rows)}")
    first, second = F.normalize(rows, dim=2)
    return float((first - second).square().sum(dim=1).mean())


@torch.no_grad()
def uniformity(features: Tensor, t: float = 2.0) -> float:
    """Return the log of the mean Gaussian potential of all pairs of `features` `(N, D)`: smaller is better.

    The features are normalised to length 1 first, so it is in -4t..0 (Wang and Isola, ICML 2020, Section
    4.1); 0 means that all features are equal. NaN of a single image, which has no pair.

    Raises:
        ValueError: no image, or features of another shape.
        NonFiniteFeatures: the features hold NaN or Inf.
    """
    rows = F.normalize(_finite(features, "features", 2), dim=1)
    count = len(rows)
    total = torch.zeros((), dtype=rows.dtype, device=rows.device)
    for part in torch.split(rows, _ROWS):
        squares = 2 - 2 * part @ rows.T
        # Features that are all 0 have no direction; they are equal, and count as such.
        squares += (part.square().sum(dim=1)[:, None] - 1) + (rows.square().sum(dim=1) - 1)
        total += squares.clamp_min(0).mul(-t).exp().sum()
    # Each image is at distance 0 of itself, which adds exp(0).
    pairs = float(total) - count
    return math.log(max(pairs, 1e-300) / (count * (count - 1))) if count > 1 else math.nan


@torch.no_grad()
def feature_std(features: Tensor) -> float:
    """Return how spread out the directions of `features` `(N, D)` are: about 1, or 0 where they collapsed.

    It is the standard deviation of each normalised feature over images, averaged over features, times the
    square root of D (Chen and He, CVPR 2021, Section 4.1, where it is not multiplied). Directions that are
    uniform on the sphere have 1.

    Raises:
        ValueError: no image, or features of another shape.
        NonFiniteFeatures: the features hold NaN or Inf.
    """
    return float(direction_std(_finite(features, "features", 2)))


@torch.no_grad()
def direction_std(features: Tensor) -> Tensor:
    """Return the value of `feature_std` as a scalar tensor on the device of `features` `(..., N, D)`.

    It is averaged over the other dimensions. Nothing is checked, so a GPU need not wait.
    """
    directions = F.normalize(features, dim=-1)
    return directions.std(dim=-2, correction=0).mean() * math.sqrt(features.shape[-1])


def _whitened(spread: Tensor, covariance: Tensor) -> Tensor:
    """Return `spread` `(D, N)` after a square root of `covariance` plus `RIDGE` has been divided out."""
    # The eigenvalues of S_w^-1/2 S_b S_w^-1/2 are the squared singular values of the whitened means, whatever
    # square root of S_w whitens them; the factor of Cholesky is the cheapest.
    ridge = RIDGE * torch.eye(len(covariance), dtype=covariance.dtype, device=covariance.device)
    divided: Tensor
    factor, failed = torch.linalg.cholesky_ex(covariance + ridge)
    if not failed:
        divided = torch.linalg.solve_triangular(factor, spread, upper=False)
        return divided
    # Beside very large features the ridge is lost in rounding, and some eigenvalues come out below 0.
    values, vectors = torch.linalg.eigh(covariance)
    divided = (vectors.T @ spread) / (values.clamp_min(0) + RIDGE).sqrt()[:, None]
    return divided


def _effective_rank(values: Tensor) -> float:
    """Return exp of the entropy of `values`, none below 0, as shares of their sum; 1 if all of them are 0."""
    total = values.sum()
    if not float(total):
        return 1.0
    shares = values / total + EPSILON
    return float((-(shares * shares.log()).sum()).exp())


def _several_views(views: Tensor) -> Tensor:
    rows = _finite(views, "views", 3)
    if len(rows) < 2:
        raise ValueError(f"views must be (V, N, D), V >= 2; got {tuple(views.shape)}")
    return rows


def _finite(features: Tensor, name: str, dimensions: int) -> Tensor:
    if features.ndim != dimensions or features.numel() == 0:
        shape = "(N, D), N and D >= 1" if dimensions == 2 else "(V, N, D), all >= 1"
        raise ValueError(f"{name} must be {shape}; got {tuple(features.shape)}")
    if not bool(features.isfinite().all()):
        raise NonFiniteFeatures(f"{name} hold NaN or Inf")
    return features.double()
