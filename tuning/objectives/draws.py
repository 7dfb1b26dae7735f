"""Random numbers of a step, independent of all other draws, of restarts and of the number of ranks."""

import torch
from torch import Tensor

from contrasweep.data import torch_generator
from contrasweep.data.packing import to_device


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
        return to_device(torch.randn(like.shape, generator=self._generator()).to(like.dtype), like.device)

    def kept(self, like: Tensor, share: float) -> Tensor:
        """Return a dropout mask: 1 / `share` with that probability, else 0."""
        chosen = torch.rand(like.shape, generator=self._generator()) < share
        return to_device(chosen.to(like.dtype), like.device) / share

    def order(self, like: Tensor) -> Tensor:
        """Return the rows of `like` in random order, int64 `(N,)`, in the place of `like`."""
        return to_device(torch.randperm(len(like), generator=self._generator()), like.device)

    def _generator(self) -> torch.Generator:
        return torch_generator(*self.stream, self.epoch, self._step)
