"""A backward pass that has no derivative itself says so."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import torch

T = TypeVar("T")


def first_derivative_only(backward: Callable[..., T]) -> Callable[..., T]:
    """Let a backward pass raise where its own derivative could be asked for.

    torch's `once_differentiable` raises only where the incoming gradient depends on an input: elsewhere the
    second derivative would lack a part, without an error.

    Raises:
        RuntimeError: on a backward pass with `create_graph=True`.
    """

    @wraps(backward)
    def once(ctx: Any, *grads: Any) -> T:
        # torch enables gradients in a backward pass only to differentiate it again.
        if torch.is_grad_enabled():
            raise RuntimeError(
                "the second derivative of this loss is not available: leave create_graph=True out"
            )
        return backward(ctx, *grads)

    return once
