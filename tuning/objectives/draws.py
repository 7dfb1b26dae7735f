"""Random numbers of a step, which depend on nothing else that is drawn, nor on restarts or ranks."""

import torch
from torch import Tensor

from contrasweep.data import torch_generator


class StepDraws:
    """Draws for the steps of a run. An objective says when an epoch begins and when a step has been taken.

    Attributes:
        stream: the run's seed, and what the numbers are for.
        epoch: the epoch, from 1.
    """

    def __init__(self, *stream: int | str) -> None:
        self.stream = stream
        self.epoch, self._step = 1, 0

    def begin(self, epoch: int) -> None:
        """Begin the epoch (from 1)."""
        self.epoch, self._step = epoch, 0

    def advance(self) -> None:
        """Go on to the next step."""
        self._step += 1

    def normal(self, like: Tensor) -> Tensor:
        """Return standard normal numbers in the shape, type and place of `like`."""
        return torch.randn(like.shape, generator=self._generator()).to(like)

    def kept(self, like: Tensor, share: float) -> Tensor:
        """Return a dropout mask: 1 / `share` with that probability, else 0."""
        chosen = torch.rand(like.shape, generator=self._generator()) < share
        return chosen.to(like) / share

    def order(self, count: int) -> Tensor:
        """Return the numbers 0 to `count` - 1 in random order, on the CPU."""
        return torch.randperm(count, generator=self._generator())

    def _generator(self) -> torch.Generator:
        return torch_generator(*self.stream, self.epoch, self._step)
