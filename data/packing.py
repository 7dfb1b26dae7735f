"""From the CPU to a device: what a step draws in one copy, and what never changes once in a process.

A copy from ordinary memory makes the host wait until the accelerator has taken it. So the many small tensors
of a step are packed into one buffer in page-locked memory, from which the accelerator copies while the host
goes on.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")

# A part of the buffer is seen as numbers of up to 8 bytes, which must begin at a multiple of their size.
_ALIGNMENT = 16


def tensors_of(tree: object) -> list[Tensor]:
    """Return the tensors in ``tree``: a tensor, or a dataclass or tuple that holds some at any depth."""
    if isinstance(tree, Tensor):
        return [tree]
    return [tensor for part in _parts(tree) for tensor in tensors_of(part)]


def to_device(tree: T, device: torch.device) -> T:
    """Return ``tree`` with its tensors, all on the CPU, on ``device``; they travel in one copy.

    ``tree`` is as in `tensors_of`; for the CPU, it is returned as it is. The host does not wait for the copy:
    kernels of the current stream see the values, and another stream must wait for the current one first.
    """
    tensors = tensors_of(tree)
    if device.type == "cpu" or not tensors:
        return tree
    # The bytes of each tensor, and those that are left free after them.
    sizes = [size for tensor in tensors for size in (tensor.nbytes, -tensor.nbytes % _ALIGNMENT)]
    buffer = host_bytes(device, sum(sizes))
    for part, tensor in zip(_places(buffer, sizes, tensors), tensors, strict=True):
        part.copy_(tensor)
    there = buffer.to(device, non_blocking=True)
    result: T = _with_tensors(tree, iter(_places(there, sizes, tensors)))
    return result


def host_bytes(device: torch.device, *size: int) -> Tensor:
    """Return uninitialised uint8 memory of the CPU for a copy to ``device`` that the host does not wait for.

    It may be given up once the copy has been asked for: torch reuses page-locked memory after its copies.
    """
    # Only an accelerator needs page-locked memory; "meta" has none at all.
    return torch.empty(size, dtype=torch.uint8, pin_memory=device.type not in ("cpu", "meta"))


def constant(device: torch.device, make: Callable[..., Tensor], *arguments: Any) -> Tensor:
    """Return ``make(*arguments)``, a tensor of the CPU, on ``device``; do not change it.

    It is copied to an accelerator once in a process. The copy is finished then, so all streams may read it.
    """
    return make(*arguments) if device.type == "cpu" else _copied(device, make, *arguments)


@lru_cache(maxsize=256)
def _copied(device: torch.device, make: Callable[..., Tensor], *arguments: Any) -> Tensor:
    # A tensor of inference mode could not take part in training later.
    with torch.inference_mode(False):
        return make(*arguments).to(device)


def _places(buffer: Tensor, sizes: Sequence[int], tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return the part of the buffer for each tensor, of its type and shape."""
    parts = buffer.split_with_sizes(sizes)[::2]
    return [part.view(like.dtype).view_as(like) for part, like in zip(parts, tensors, strict=True)]


def _parts(tree: object) -> Iterator[object]:
    if isinstance(tree, tuple):
        yield from tree
    elif is_dataclass(tree):
        yield from vars(tree).values()


def _with_tensors(tree: Any, moved: Iterator[Tensor]) -> Any:
    """Return ``tree`` with the next of ``moved`` in the place of each of its tensors, see `tensors_of`."""
    if isinstance(tree, Tensor):
        return next(moved)
    if isinstance(tree, tuple):
        return tuple(_with_tensors(part, moved) for part in tree)
    if is_dataclass(tree) and not isinstance(tree, type):
        return replace(tree, **{name: _with_tensors(part, moved) for name, part in vars(tree).items()})
    return tree
