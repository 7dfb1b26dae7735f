"""MMCL: negatives weigh by how much they support the margin between them and the anchor.

Source: Shah et al. 2022, "Max-margin contrastive learning" (AAAI), https://arxiv.org/abs/2112.11450.

Each anchor's support vector machine separates its image from the B - 1 others of the first view. The B dual
problems share one kernel matrix, which differs between them by a row, a column and a term of rank two. So the
unbounded problems have a closed solution from one inverse, at the cost of one B x B system in place of B.

Shapes: B images, D width; row t of a matrix of multipliers belongs to anchor t and is 0 at t.
"""

from typing import Annotated

import torch
from torch import Tensor

from contrasweep.losses.scores import full_precision, normalised, without_diagonal
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Count, Positive, require_views
from contrasweep.rules import OneOf

SOLVERS = ("inv", "pgd")


class MMCL(Loss):
    """`sum_j a_tj (k(x_j, y_t) - k(x_t, y_t))` with the kernel `k(x, y) = exp(-|x - y|^2 / sigma)`.

    x and y are an image's two embeddings on the sphere. The multipliers `a` solve, without gradient, the dual
    `min a' D a / 2 - 2 sum a` with `D_ij = 1 + k_ij - k_ti - k_tj + reg [i = j]`, 0 <= a <= `bound`, over the
    kernel of the first view.

    Attributes:
        sigma: the width of the kernel, in squared distances (0..4).
        bound: the largest multiplier, C of the support vector machine.
        reg: what is added to the diagonal.
        solver: `inv` clips the unbounded solution to the bounds; `pgd` goes on from there by projected
            gradient descent with Nesterov's momentum. The released `pgd` starts at random, takes steps of
            0.001, and stops where the multipliers change by less than 1 % in a step, or after 1,000 steps;
            here the steps are as long as the largest eigenvalue allows, and their number is fixed, so that
            the result depends on the batch alone.
        iterations: the number of steps of `pgd`.
    """

    sigma: Positive
    bound: Positive = 100.0
    reg: Positive = 0.1
    solver: Annotated[str, OneOf(SOLVERS)] = "inv"
    iterations: Count = 200

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """B valid terms for `views` (V, B, D), V = 2 and B at least 2. Errors: ValueError on shapes."""
        require_views(views, exactly=2, images=2)
        x, y = normalised(views)
        across = ((x @ y.T - 1) * (2 / self.sigma)).exp()
        multipliers = self._multipliers(x).to(views.dtype)
        attraction = multipliers.sum(1) * across.diagonal()
        return LossTerms.all_valid((multipliers * across.T).sum(1) - attraction)

    @torch.no_grad()
    def _multipliers(self, x: Tensor) -> Tensor:
        """Return the multipliers (B, B) in float64, of unit rows `x` (B, D)."""
        rows = x.double()
        kernel = ((rows @ rows.T - 1) * (2 / self.sigma)).exp()
        start = unbounded_multipliers(kernel, self.reg).clamp(0, self.bound)
        if self.solver == "inv":
            return start
        return descend(start, kernel, self.reg, self.bound, self.iterations)


def unbounded_multipliers(kernel: Tensor, reg: float) -> Tensor:
    """Solve `D_t a_t = 2` for every anchor t: multipliers (B, B), given the `kernel` (B, B) of unit diagonal.

    Let P be the inverse of kernel + reg I, and A that matrix without row and column t. By the inverse of a
    block, A^-1 1 and A^-1 k_t are columns of P, scaled and shifted. `D_t = A + 1 1' - k_t 1' - 1 k_t'` then
    leaves a system of two unknowns, 1'a and k_t'a.
    """
    identity = torch.eye(len(kernel), dtype=kernel.dtype, device=kernel.device)
    # A NaN in the batch must come out as NaN, not as an error.
    inverse = torch.cholesky_inverse(torch.linalg.cholesky_ex(kernel + reg * identity).L)
    corner, sums = inverse.diagonal()[:, None], inverse.sum(1)
    of_ones = sums - inverse * (sums[:, None] / corner)
    of_column = -(inverse / corner).fill_diagonal_(0)
    others = without_diagonal(kernel)
    ones_ones, ones_column = of_ones.sum(1, keepdim=True), of_column.sum(1, keepdim=True)
    column_column = (others * of_column).sum(1, keepdim=True)
    slack = 1 - ones_column
    scale = 2 / (slack.square() + ones_ones * (1 - column_column))
    return without_diagonal(scale * (slack * of_ones + ones_ones * of_column))


def descend(start: Tensor, kernel: Tensor, reg: float, bound: float, iterations: int) -> Tensor:
    """Return the multipliers after accelerated projected gradient steps on all B duals at once.

    `start` and the result are (B, B), `kernel` (B, B). One step is one product of two matrices.
    """
    others = without_diagonal(kernel)
    # The trace bounds the largest eigenvalue of a Gram matrix; |phi_i - phi_t|^2 is at most 2.
    size = len(kernel)
    rate = 1 / (((2 - 2 * kernel).sum(1, keepdim=True) + reg * size).clamp_min(reg * size))
    current, ahead, momentum = start, start, 1.0
    for _ in range(iterations):
        total = ahead.sum(1, keepdim=True)
        along = (others * ahead).sum(1, keepdim=True)
        slope = ahead @ kernel + reg * ahead + total - others * total - along - 2
        moved = without_diagonal((ahead - rate * slope).clamp(0, bound))
        following = (1 + (1 + 4 * momentum**2) ** 0.5) / 2
        ahead = moved + ((momentum - 1) / following) * (moved - current)
        current, momentum = moved, following
    return current
