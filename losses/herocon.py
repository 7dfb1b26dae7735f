"""HeroCon: weighted contrastive losses for several views and several labels.

Zheng et al. 2022, "Contrastive learning with complex heterogeneity", https://arxiv.org/abs/2105.09401: L_u in
Eq. 4 (one view) and Eq. 5 (two views), L_s in Eq. 6 (multi-class) and Eq. 7 (multi-label).
Here `f(a, b) = e^{cos(a, b)}` has the temperature 1, so plain exponentials do not overflow.
Shapes: B images, D width, n labelled rows, c labels, p rows that are positive for a label.
"""

import math
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from contrasweep.losses.derivatives import first_derivative_only
from contrasweep.losses.groups import group_index
from contrasweep.losses.scores import cosines, full_precision, normalised
from contrasweep.losses.synchronisation import reading_synchronises
from contrasweep.losses.terms import Loss, LossTerms
from contrasweep.losses.validation import Count, require_views
from contrasweep.rules import OneOf

NEGATIVES = ("both", "cross")
DISTANCES = ("auto", "hamming", "indicator")

_CROSS = ((0, 1), (1, 0))
_BLOCKS = {"both": ((0, 0), (1, 1), *_CROSS), "cross": _CROSS}
"""The (anchor view, key view) pairs that give negatives, by the option `negatives`."""

LARGEST_CHUNK = 1 << 18


class HeroConUnsupervised(Loss):
    """L_u, Eq. 5, with both views as anchors and the learned map `H(a) = sigmoid(weight_net(a))`.

    `-log f(z_i1,z_i2) / ( f(z_i1,z_i2) + sum_{k != i} sum_v g(z_i1,z_kv) f(z_i1,z_kv) )` with the weight
    `g(a, b) = 1/2 (e^{1 - cos(a, H b)} + e^{1 - cos(b, H a)})`. `negatives="cross"` keeps
    only the negatives from the other view.
    """

    dim: Count
    negatives: Annotated[str, OneOf(NEGATIVES)] = "both"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.weight_net = nn.Linear(self.dim, self.dim)

    @full_precision
    def terms(self, views: Tensor) -> LossTerms:
        """2B valid terms for `views` (2, B, dim). Errors: ValueError on shapes."""
        require_views(views, exactly=2)
        if views.shape[2] != self.dim:
            raise ValueError(f"views must have width {self.dim}, got shape {tuple(views.shape)}")
        H = torch.sigmoid(_linear(views, self.weight_net.weight, self.weight_net.bias))
        z = normalised(views)
        # g f = e/2 (e^{cos(a,b) - cos(a,Hb)} + the same with a and b exchanged): one product, one exponential
        keys = z - normalised(H)
        sums = [z.new_zeros(z.shape[1]), z.new_zeros(z.shape[1])]
        for anchor, key in _BLOCKS[self.negatives]:
            by_anchor, by_key = _OffDiagonalSums.apply(z[anchor], keys[key])
            sums[anchor] = sums[anchor] + by_anchor
            sums[key] = sums[key] + by_key
        negative = torch.stack(sums) * (math.e / 2)
        positive = (z[0] * z[1]).sum(1)
        values = (negative * (-positive).exp()).log1p().flatten()
        return LossTerms(values, torch.ones_like(values, dtype=torch.bool))


class HeroConSupervised(Loss):
    """L_s, Eq. 7: one term per label a, a mean over the ordered pairs i != j of rows that are positive for a.

    The mean is taken of

    `-log( sigma_ij f(i,j) / ( sigma_ij f(i,j) + sum_{k negative for a} gamma_ik f(i,k) ) )`,
    `sigma_ij = 1 - dist(Y_i,Y_j) / c`, `gamma_ik = dist(Y_i,Y_k)`.

    A label without a pair or without a negative is invalid. `distance="hamming"` counts the labels that
    differ. `"indicator"` is 1 where label vectors differ at all, which makes sigma = gamma = 1 in the
    multi-class case, Eq. 6. `"auto"` uses the indicator for class numbers and for rows of exactly one label,
    otherwise hamming.
    """

    distance: Annotated[str, OneOf(DISTANCES)] = "auto"

    @full_precision
    def terms(self, features: Tensor, labels: Tensor) -> LossTerms:
        """Terms (c,) for `features` (n, D) and `labels` (n, c) of 0 and 1, or class numbers (n,).

        The features join both views if there are two. Errors: ValueError on shapes, and on other labels; on
        an accelerator, a loss of NaN tells of these.
        """
        Y, is_multiclass = _label_matrix(features, labels)
        apart = _hamming(Y)
        if self.distance == "indicator":
            apart = apart.clamp_max(1)
        elif self.distance == "auto":
            apart = torch.where(is_multiclass, apart.clamp_max(1), apart)
        c, counts = Y.shape[1], Y.sum(0)
        cos = cosines(normalised(features))
        f = cos.exp()
        # Smaller values occur only between rows that share no label; their weight is 0.
        similar = (1 - apart / c).clamp_min(1 / (2 * c))
        negative = (apart * f) @ (1 - Y)
        pairs = counts * (counts - 1)
        valid = (counts >= 2) & (counts < len(Y))
        log_positive = (cos + similar.log()).fill_diagonal_(0)
        numerators = ((log_positive @ Y) * Y).sum(0)
        denominators = _PairLogSums.apply(similar * f, negative, Y, valid)
        return LossTerms((denominators - numerators) / pairs.clamp_min(1), valid)


@full_precision
def _linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.nn.functional.linear(x, weight, bias)


class _OffDiagonalSums(torch.autograd.Function):
    """Sums of `E_ik = exp(<a_i, b_k>)` over k != i, and over i != k: (B,) each, of `a` and `b` (B, D).

    The products take nearly all the time of HeroCon's L_u, so only those blocks of E are computed that are
    summed, and the backward pass goes over each of them once.
    """

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        E = (a @ b.T).exp_().fill_diagonal_(0)
        ctx.save_for_backward(a, b, E)
        return E.sum(1), E.sum(0)

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad_rows: Tensor, grad_columns: Tensor) -> tuple[Tensor, Tensor]:
        a, b, E = ctx.saved_tensors
        slopes = (grad_rows[:, None] + grad_columns).mul_(E)
        return slopes @ b, slopes.T @ a


def _label_matrix(features: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Labels as a 0/1 matrix (n, c) in the features' dtype, and whether every row has exactly one (bool)."""
    if features.dim() != 2 or labels.dim() not in (1, 2) or len(labels) != len(features) or len(labels) == 0:
        shapes = f"{tuple(features.shape)} and {tuple(labels.shape)}"
        raise ValueError(f"features must be (n, D) and labels (n, c) or (n,) of the same n > 0, got {shapes}")
    if labels.dim() == 1:
        number = group_index(labels)
        classes = len(labels) if reading_synchronises(labels) else int(number.max()) + 1
        Y = number[:, None] == torch.arange(classes, device=labels.device)
        return Y.to(features.dtype), Y.new_ones(())
    allowed = (labels == 0) | (labels == 1)
    if not reading_synchronises(labels) and not allowed.all():
        raise ValueError("a label matrix must hold 0 and 1 only; class numbers go in shape (n,)")
    Y = labels.to(features.dtype).masked_fill(~allowed, torch.nan)
    return Y, (Y.sum(1) == 1).all() & (Y.shape[1] > 1)


def _hamming(Y: Tensor) -> Tensor:
    """Number of labels in which two rows differ, (n, n)."""
    shared, own = Y @ Y.T, Y.sum(1)
    return own[:, None] + own - 2 * shared


class _PairLogSums(torch.autograd.Function):
    """For each label a, the sum of `log(u_ij + N_ia)` over ordered pairs i != j of its positive rows: (c,).

    `u` (n, n), `N` (n, c), `Y` (n, c). Labels of similar frequency form a chunk, and the backward pass
    computes each chunk again. So at most LARGEST_CHUNK or n * n numbers exist at a time, never n * n * c.
    """

    @staticmethod
    def forward(ctx: Any, u: Tensor, N: Tensor, Y: Tensor, valid: Tensor) -> Tensor:
        ctx.save_for_backward(u, N)
        ctx.chunks = _label_chunks(Y, valid)
        sums = N.new_zeros(N.shape[1])
        for labels, rows, weight in ctx.chunks:
            logs = _pair_sums(u, N, labels, rows).log_()
            logs.diagonal(dim1=1, dim2=2).zero_()
            sums[labels] = (weight[:, None] @ logs @ weight[:, :, None])[:, 0, 0]
        return sums

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None, None]:
        u, N = ctx.saved_tensors
        grad_u, grad_N = torch.zeros_like(u), torch.zeros_like(N)
        for labels, rows, weight in ctx.chunks:
            slopes = _pair_sums(u, N, labels, rows).reciprocal_()
            slopes.diagonal(dim1=1, dim2=2).zero_()
            slopes.mul_(weight[:, None]).mul_((weight * grad[labels][:, None])[:, :, None])
            grad_u.view(-1).scatter_add_(0, _pair_positions(rows, len(u)).flatten(), slopes.flatten())
            grad_N.index_put_((rows, labels[:, None]), slopes.sum(2), accumulate=True)
        return grad_u, grad_N, None, None


def _label_chunks(Y: Tensor, valid: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Chunks of labels (k,), their positive rows (k, p), and weights (k, p), which are 0 at padding rows."""
    if reading_synchronises(Y):
        return _even_chunks(Y, valid)
    counts = Y.sum(0).long()
    order = torch.argsort(counts, descending=True, stable=True)
    order = order[valid[order]]
    rows = torch.argsort(Y, dim=0, descending=True, stable=True).T
    chunks, start = [], 0
    sizes = counts[order].tolist()
    while start < len(sizes):
        p = sizes[start]
        labels = order[start : start + max(LARGEST_CHUNK // p**2, 1)]
        present = torch.arange(p, device=Y.device) < counts[labels][:, None]
        chunks.append((labels, rows[labels, :p], present.to(Y.dtype)))
        start += len(labels)
    return chunks


def _even_chunks(Y: Tensor, valid: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    """The same where reading the number of positive rows would wait: all rows, most of them with weight 0."""
    n = len(Y)
    rows, weights = torch.arange(n, device=Y.device), Y.T * valid[:, None]
    labels = torch.split(torch.arange(Y.shape[1], device=Y.device), max(LARGEST_CHUNK // n**2, 1))
    return [(chunk, rows.expand(len(chunk), n), weights[chunk]) for chunk in labels]


def _pair_positions(rows: Tensor, n: int) -> Tensor:
    """Positions (k, p, p) of all pairs of `rows` (k, p) in a flattened (n, n) matrix."""
    return rows[:, :, None] * n + rows[:, None, :]


def _pair_sums(u: Tensor, N: Tensor, labels: Tensor, rows: Tensor) -> Tensor:
    """`u_ij + N_ia` (k, p, p) for k labels a and their rows i, j."""
    gathered = u.contiguous().view(-1).index_select(0, _pair_positions(rows, len(u)).flatten())
    k, p = rows.shape
    return gathered.view(k, p, p).add_(N[rows, labels[:, None]][:, :, None])
