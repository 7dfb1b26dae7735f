"""Kernels of the conditioning variable and the weights that CCL-K derives from them.

Tsai et al. 2022, "Conditional contrastive learning with kernel", https://arxiv.org/abs/2202.05458.
Shapes: B images, Z width of the condition.
"""

import math

import torch
from torch import Tensor

KERNELS = ("rbf", "laplacian", "linear", "polynomial", "cosine")

SMALLEST_RELEASED_WEIGHT = 1e-6

ROUNDING = 10.0
"""How far rounding moves an eigenvalue of a kernel matrix, at most, in units of precision times trace."""


@torch.no_grad()
def kernel_matrix(condition: Tensor, kernel: str, sigma2: float) -> Tensor:
    """`K_Z` (B, B) of `condition` (B, Z), in the condition's dtype.

    rbf `exp(-|z-z'|^2 / sigma2)`, laplacian `exp(-|z-z'| / sigma2)`, linear `<z,z'> / sigma2`,
    polynomial `<z,z'>^3 / sigma2`, cosine `<z,z'> / (|z||z'|)`, which is 0 for a zero row.
    """
    if kernel == "rbf":
        return squared_distances(condition).div_(-sigma2).exp_()
    if kernel == "laplacian":
        return squared_distances(condition).sqrt_().div_(-sigma2).exp_()
    factor = _linear_factor(condition, kernel, sigma2)
    if factor is not None:
        return factor @ factor.T
    return (condition @ condition.T).pow_(3).div_(sigma2)


def _linear_factor(condition: Tensor, kernel: str, sigma2: float) -> Tensor | None:
    """The matrix A with `K_Z = A A'`, for the kernels whose features are finite and known."""
    if kernel == "linear":
        return condition / math.sqrt(sigma2)
    if kernel == "cosine":
        return torch.nn.functional.normalize(condition, dim=1)
    return None


def squared_distances(z: Tensor) -> Tensor:
    """Squared distances (B, B) by one matrix product, centred first to keep cancellation errors small.

    What may be a rounding error is 0, so that equal rows have the distance 0 also under a square root.
    """
    z = z - z.mean(0)
    squared_norms = z.square().sum(1)
    largest = squared_norms[:, None] + squared_norms
    distances = torch.addmm(largest, z, z.T, alpha=-2)
    distances.masked_fill_(distances <= 16 * torch.finfo(z.dtype).eps * largest, 0)
    distances.diagonal().zero_()
    return distances


@torch.no_grad()
def conditional_weights(condition: Tensor, kernel: str, sigma2: float, lam: float) -> Tensor:
    """`W = (K_Z + lam I)^-1 K_Z` (B, B), symmetric, in float64.

    It uses float64 for a condition of any dtype. At lam = 0.01 a float32 solve has errors of 1e-4 to 6e-4 of
    the largest weight, moves up to 8 % of the weights across the released clip at 1e-6 where conditions
    repeat, and gives noise for the linear kernel of 8-bit colours. Linear and cosine kernels with Z < B solve
    a Z x Z system. Where lam is below the rounding error of K_Z, that error takes its place: the system is
    then never indefinite, and no step has to ask whether it was. A condition with NaN or Inf gives NaN
    weights.
    """
    condition = condition.to(torch.float64)
    factor = _linear_factor(condition, kernel, sigma2)
    if factor is not None and factor.shape[1] < factor.shape[0]:
        return _low_rank_weights(factor, lam)
    return _regularised_inverse_product(kernel_matrix(condition, kernel, sigma2), lam)


def _low_rank_weights(factor: Tensor, lam: float) -> Tensor:
    """`W = A (A'A + lam I)^-1 A'` as `(L^-1 A')' (L^-1 A')`; L is the Cholesky factor of the small matrix."""
    lower, _, info = _shifted_cholesky(factor.T @ factor, lam)
    half = torch.linalg.solve_triangular(lower, factor.T, upper=False)
    return _if_solved(half.T @ half, info)


def _regularised_inverse_product(K: Tensor, lam: float) -> Tensor:
    """`W = I - lam (K + lam I)^-1`, with the inverse by Cholesky."""
    lower, ridge, info = _shifted_cholesky(K, lam)
    W = torch.cholesky_inverse(lower).mul_(-ridge)
    W.diagonal().add_(1)
    return _if_solved(W, info)


def _shifted_cholesky(K: Tensor, lam: float) -> tuple[Tensor, Tensor, Tensor]:
    """The Cholesky factor of `K + ridge I`, the ridge (at least lam), and a number that is 0 on success.

    Rounding moves the eigenvalues of K by a few units of float64's precision times its trace.
    """
    ridge = (ROUNDING * torch.finfo(K.dtype).eps * K.trace()).clamp_min(lam)
    shifted = K.clone()
    shifted.diagonal().add_(ridge)
    lower, info = torch.linalg.cholesky_ex(shifted)
    return lower, ridge, info


def _if_solved(W: Tensor, info: Tensor) -> Tensor:
    return torch.where(info == 0, W, torch.nan)


def released_weights(W: Tensor) -> Tensor:
    """W as the released code uses it: 0 on the diagonal and wherever an entry is below 1e-6 or negative."""
    kept = torch.where(W < SMALLEST_RELEASED_WEIGHT, torch.zeros_like(W), W)
    kept.diagonal(dim1=-2, dim2=-1).zero_()
    return kept
