"""Refuse training that draws from torch's global generators: its numbers would not follow from the seed.

What they give depends on all that was drawn in the process before, so on interruptions, on the trials that
the process trained earlier, and on the number of workers.
"""

from collections.abc import Sequence

import torch
from torch import nn

from contrasweep.names import few_quoted
from contrasweep.tuning.errors import NotRepeatable


class GlobalDraws:
    """The states of torch's global generators at one time, of the host and of a GPU that trains."""

    def __init__(self, device: torch.device, *, compiled: bool) -> None:
        # The compiler tries kernels on random numbers of the GPU.
        self._device = device if device.type == "cuda" and not compiled else None
        self._states = self._now()

    def refuse(self, objective: nn.Module) -> None:
        """Raise NotRepeatable if numbers have been drawn since; the message names the layers that drop."""
        if all(map(torch.equal, self._states, self._now())):
            return
        dropping = [
            name for name, layer in objective.named_modules() if "drop" in type(layer).__name__.lower()
        ]
        layers = f". Layers that drop: {few_quoted(dropping)}" if dropping else ""
        raise NotRepeatable(
            "the training draws from torch's global generator, so runs of one seed would differ: let the "
            "encoder have no dropout, and draw with contrasweep.data.torch_generator(seed, 'what it is for', "
            f"epoch, step){layers}"
        )

    def _now(self) -> Sequence[torch.Tensor]:
        gpu = [] if self._device is None else [torch.cuda.get_rng_state(self._device)]
        return [torch.random.get_rng_state(), *gpu]
