"""Functions that the losses share: full precision under autocast, normalisation, scores, log space.

Shapes: V views, B images, D width, N = V * B anchors (view-major: anchor v * B + i is view v of image i).

The autograd functions exist for two reasons. Their gradient is exact where the built-in one is not (logsumexp
over nothing), and they are several times faster on a CPU, where masked fills, log1p and softplus run one
number at a time. They are differentiable once.
"""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from contrasweep.losses.derivatives import first_derivative_only
from contrasweep.losses.synchronisation import reading_synchronises

P = ParamSpec("P")
T = TypeVar("T")


def full_precision(function: Callable[P, T]) -> Callable[P, T]:
    """Run `function` outside autocast, with its half-precision tensors raised to float32.

    Eight bits of mantissa change the score of a cosine over tau = 0.07 by 0.06, so scores and log space are
    never computed in half precision.
    """

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        tensors = [value for value in (*args, *kwargs.values()) if isinstance(value, Tensor)]
        device = tensors[0].device.type if tensors else "cpu"
        available = torch.amp.is_autocast_available(device)
        with torch.autocast(device, enabled=False) if available else nullcontext():
            return function(*map(_raised, args), **{key: _raised(value) for key, value in kwargs.items()})

    return run


def _raised(value: Any) -> Any:
    is_half = isinstance(value, Tensor) and value.dtype in (torch.float16, torch.bfloat16)
    return value.float() if is_half else value


def normalised(x: Tensor) -> Tensor:
    """Return `x` with rows of unit Euclidean length, for rows of any scale; a zero row stays zero."""
    unit: Tensor = _Normalised.apply(x)
    return unit


def flat_views(views: Tensor) -> Tensor:
    """The N anchors (N, D) of views (V, B, D), normalised."""
    return normalised(views).flatten(0, 1)


def cosines(z: Tensor) -> Tensor:
    """Cosines (N, N) of unit rows `z` (N, D) with each other."""
    products: Tensor = _Gram.apply(z, 1.0, False)
    return products


def self_scores(z: Tensor, temperature: float) -> Tensor:
    """Scores (N, N) `<z_a, z_b> / temperature` with -inf on the diagonal, so that no anchor meets itself."""
    scores: Tensor = _Gram.apply(z, temperature, True)
    return scores


def partner_scores(z: Tensor, temperature: float) -> Tensor:
    """Score (2B,) of each anchor of two views with its image's other view, given unit rows `z` (2B, D)."""
    x, y = z.chunk(2)
    return ((x * y).sum(1) / temperature).repeat(2)


def without_self(scores: Tensor) -> Tensor:
    """`scores` (..., N, N) with -inf on the diagonal (a sum, which is faster on a CPU than a masked fill)."""
    diagonal = scores.new_zeros(scores.shape[-2:]).fill_diagonal_(-torch.inf)
    return scores + diagonal


def without_diagonal(matrix: Tensor) -> Tensor:
    """`matrix` (N, N) with 0 on the diagonal."""
    return matrix.clone().fill_diagonal_(0)


def logsumexp(scores: Tensor, dim: int = -1) -> Tensor:
    """`log sum exp` over `dim`; over nothing but -inf it is -inf with a zero gradient."""
    result: Tensor = _LogSumExp.apply(scores, dim)
    return result


def crop_cross_entropies(logits: Tensor, targets: Sequence[Tensor]) -> Tensor:
    """Cross-entropies of crop a's softmax with the targets of view b, for every ordered pair a != b.

    `logits` (V + L, B, K), those of the views first; `targets`, V of (B, K), with rows that sum to 1. The
    result is (V (V + L - 1) B,), pair by pair.
    """
    # The targets sum to 1, so the cross-entropy is the logsumexp minus the expected logit. An index in the
    # loop would cost a gradient of the size of all crops for every pair.
    totals, crops = logsumexp(logits).unbind(0), logits.unbind(0)
    pairs = ((a, b) for a in range(len(crops)) for b in range(len(targets)) if a != b)
    return torch.cat([totals[a] - (targets[b] * crops[a]).sum(1) for a, b in pairs])


def softplus(x: Tensor) -> Tensor:
    """`log(1 + e^x)` for any x, with the gradient `sigmoid(x)` everywhere."""
    result: Tensor = _Softplus.apply(x)
    return result


def softmax_and_logsumexp(scores: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Return softmax and logsumexp at the cost of one, without gradient; a row of -inf has the softmax 0."""
    share = scores.softmax(dim)
    largest = scores.amax(dim)
    result = largest - share.amax(dim).log()
    empty = largest == -torch.inf
    if reading_synchronises(empty) or empty.any():
        share.masked_fill_(empty.unsqueeze(dim), 0)
        result.masked_fill_(empty, -torch.inf)
    return share, result


def gram_gradient(grad: Tensor, z: Tensor, temperature: float) -> Tensor:
    """Return the gradient (N, D) in `z`, given the gradient G (N, N) in `z z' / temperature`.

    `(G + G') z` needs one matrix product; autograd would need two. The diagonal of G moves a row only along
    itself, which changes nothing before the normalisation.
    """
    both_ways = grad.T.contiguous().add_(grad)
    product: Tensor = both_ways @ (z / temperature)
    return product


class _Normalised(torch.autograd.Function):
    """Scale each row to a largest entry of 1 first, because in float32 squares overflow from 2e19 on."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        largest = x.abs().amax(-1, keepdim=True)
        largest.masked_fill_(largest == 0, 1)
        unit = x / largest
        length = torch.linalg.vector_norm(unit, dim=-1, keepdim=True)
        length.masked_fill_(length == 0, 1)
        unit.div_(length)
        ctx.save_for_backward(unit, length.mul_(largest))
        return unit

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        unit, length = ctx.saved_tensors
        radial = (grad * unit).sum(-1, keepdim=True)
        tangent: Tensor = torch.addcmul(grad, unit, radial, value=-1).div_(length)
        return tangent


class _Gram(torch.autograd.Function):
    """`z z' / temperature`."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, temperature: float, mask_self: bool) -> Tensor:
        ctx.save_for_backward(z)
        ctx.temperature = temperature
        products = torch.mm(z / temperature, z.T)
        return products.fill_diagonal_(-torch.inf) if mask_self else products

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (z,) = ctx.saved_tensors
        return gram_gradient(grad, z, ctx.temperature), None, None


class _LogSumExp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, dim: int) -> Tensor:
        share, result = softmax_and_logsumexp(scores, dim)
        ctx.save_for_backward(share)
        ctx.dim = dim
        return result

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (share,) = ctx.saved_tensors
        return share * grad.unsqueeze(ctx.dim), None


class _Softplus(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp_min(0).sub_(x.abs().sigmoid_().log_())

    @staticmethod
    @first_derivative_only
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        slope: Tensor = x.sigmoid().mul_(grad)
        return slope
