"""Gathering the global batch across ranks, with gradient.

Every rank computes the loss of the whole batch from the gathered tensors. A rank's own rows then enter the
loss of each of the W ranks, so the backward pass sums the gradients over ranks; after DDP's averaging,
parameter gradients equal those of one process on the whole batch. Slicing the local gradient alone would
leave them W times too small.
"""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def gather(tensor: Tensor, dim: int = 0) -> Tensor:
    """Concatenate `tensor` of every rank along `dim`, in the order of ranks, keeping the gradient.

    Without an initialised process group, or with one process, `tensor` itself comes back. Integer and boolean
    tensors (labels, biases) are gathered without gradient.

    Shapes: equal on every rank; the result is W times as long along `dim`.
    Errors: ValueError on every rank if the shapes differ between ranks.
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return tensor
    _require_equal_shapes(tensor)
    gathered: Tensor = _Gather.apply(tensor, dim % max(tensor.dim(), 1))
    return gathered


def _require_equal_shapes(tensor: Tensor) -> None:
    """Shards of unequal length would hang or corrupt the collective; every rank checks, all fail alike."""
    own = torch.tensor([tensor.dim(), *tensor.shape, *[0] * (8 - tensor.dim())], device=tensor.device)
    shapes = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(shapes, own)
    listed = [tuple(shape[1 : 1 + int(shape[0])].tolist()) for shape in shapes]
    if len(set(listed)) > 1:
        raise ValueError(f"gather needs shards of equal shape on every rank, got {listed} (rank 0, 1, ...)")


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dim: int) -> Tensor:
        ctx.dim, ctx.length = dim, tensor.shape[dim]
        shards = [
            torch.empty_like(tensor, memory_format=torch.contiguous_format)
            for _ in range(dist.get_world_size())
        ]
        dist.all_gather(shards, tensor.contiguous())
        return torch.cat(shards, dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        # A clone, because the collective writes in place and autograd may hand this tensor to other nodes.
        total = grads[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total.narrow(ctx.dim, dist.get_rank() * ctx.length, ctx.length), None
