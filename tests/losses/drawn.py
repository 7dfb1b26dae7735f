"""Random inputs of losses, of shapes that Hypothesis draws."""

from collections.abc import Callable

import torch
from torch import Tensor

Pair = tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor], Tensor]
"""A loss and its reference, of an embedding."""


class Drawn:
    """Random inputs of one drawn shape."""

    def __init__(self, V: int, B: int, D: int, seed: int) -> None:
        self.V, self.B, self.D = V, B, D
        self.generator = torch.Generator().manual_seed(seed)

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.generator, dtype=torch.float64)

    def numbers(self, high: int) -> Tensor:
        return torch.randint(0, high, (self.B,), generator=self.generator)

    def uniform(self, *shape: int) -> Tensor:
        return torch.rand(*shape, generator=self.generator, dtype=torch.float64)

    def views(self, count: int | None = None) -> Tensor:
        return self.normal(count or self.V, self.B, self.D)
