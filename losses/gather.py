"""Gathering the global batch across ranks, with gradient.

Every rank computes the loss of the whole batch from the gathered tensors. The rows of one rank enter the loss
of each of the W ranks, so the backward pass sums their gradients over the ranks. After averaging over ranks,
parameter gradients equal those of one process on the whole batch. With the local gradient alone they would be
W times too small.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class RanksLost(RuntimeError):
    """The ranks could not exchange data, because one of them has ended or does not answer."""


@contextmanager
def collective() -> Iterator[None]:
    """Turn the errors that torch raises while ranks exchange data into `RanksLost`."""
    try:
        yield
    except (torch.OutOfMemoryError, torch.AcceleratorError):
        raise
    except RuntimeError as error:
        raise RanksLost(f"another rank is gone: {error}") from error


def gather(tensor: Tensor, dim: int = 0, lengths: Sequence[int] | None = None) -> Tensor:
    """Concatenate `tensor` of every rank along `dim`, in the order of ranks, keeping the gradient.

    Without an initialised process group, or with one process, it returns `tensor` itself. Integer and boolean
    tensors (labels, biases) are gathered without gradient.

    `lengths` are those along `dim` on every rank, in the order of ranks, where all ranks know them. Without
    them the ranks tell each other the shapes first, and an accelerator is waited for.

    Shapes: equal on every rank, except for the length along `dim`.
    Errors: ValueError on every rank if other dimensions differ (of given lengths that is not checked), on
    this rank if `lengths` are not those of this many ranks, or not its own; RanksLost if a rank has ended.
    """
    if not dist.is_available() or not dist.is_initialized() or dist.get_world_size() == 1:
        return tensor
    axis = dim % max(tensor.dim(), 1)
    if lengths is None:
        lengths = _exchanged_lengths(tensor, axis)
    elif len(lengths) != dist.get_world_size() or lengths[dist.get_rank()] != tensor.shape[axis]:
        given = f"{list(lengths)} and a tensor of shape {tuple(tensor.shape)} on rank {dist.get_rank()}"
        raise ValueError(
            f"lengths along {dim} must be those of all {dist.get_world_size()} ranks, got {given}"
        )
    gathered: Tensor = _Gather.apply(tensor, axis, list(lengths))
    return gathered


def _exchanged_lengths(tensor: Tensor, dim: int) -> list[int]:
    """Return every rank's length along `dim`.

    Raises ValueError if other dimensions differ, because the exchange would hang or give wrong data.
    """
    own = torch.tensor([tensor.dim(), *tensor.shape, *[0] * (8 - tensor.dim())], device=tensor.device)
    found = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    with collective():
        dist.all_gather(found, own)
    # One read for all ranks: each makes the host wait for the device.
    shapes = [tuple(shape[1 : 1 + shape[0]]) for shape in torch.stack(found).tolist()]
    if len({(*shape[:dim], *shape[dim + 1 :], len(shape)) for shape in shapes}) > 1:
        raise ValueError(
            f"gather along {dim} needs shards of otherwise equal shape on every rank, got {shapes} "
            "(rank 0, 1, ...)"
        )
    return [shape[dim] for shape in shapes]


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor, dim: int, lengths: list[int]) -> Tensor:
        rank = dist.get_rank()
        ctx.dim, ctx.first, ctx.length = dim, sum(lengths[:rank]), lengths[rank]
        # The exchange needs shards of equal size: shorter ones are padded here and cut afterwards.
        shape = list(tensor.shape)
        shape[dim] = max(lengths)
        own = tensor.contiguous()
        if lengths[rank] < shape[dim]:
            own = tensor.new_zeros(shape)
            own.narrow(dim, 0, lengths[rank]).copy_(tensor)
        shards = [tensor.new_empty(shape) for _ in lengths]
        with collective():
            dist.all_gather(shards, own)
        return torch.cat([one.narrow(dim, 0, n) for one, n in zip(shards, lengths, strict=True)], dim)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        # A clone, because the collective writes in place and autograd may hand this tensor to other nodes.
        total = grads[0].clone(memory_format=torch.contiguous_format)
        with collective():
            dist.all_reduce(total)
        return total.narrow(ctx.dim, ctx.first, ctx.length), None, None
