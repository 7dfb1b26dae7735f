"""Refuse training that draws from global generators: its numbers would not follow from the seed.

Their numbers depend on all earlier draws in the process, and so on interruptions, on the trials that the
process trained before, and on the number of workers.

Only the training uses torch's generators. Those of numpy and of Python's `random` also serve other threads of
the process, such as a client of S3 that waits before it tries again, so a draw from them only causes a
warning.
"""

import logging
import pickle
import random
from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from contrasweep.names import few_quoted
from contrasweep.tuning.errors import NotRepeatable

log = logging.getLogger(__name__)

_REMEDY = "contrasweep.data.torch_generator(seed, 'what it is for', epoch, step)"


class GlobalDraws:
    """The states of the global generators at one time: of torch, on the host and on a GPU, and of others."""

    def __init__(self, device: torch.device, *, compiled: bool) -> None:
        # The compiler tries kernels on random numbers of the GPU.
        self._device = device if device.type == "cuda" and not compiled else None
        self._states, self._others = self._now(), _other_generators()

    def refuse(self, objective: nn.Module) -> None:
        """Raise NotRepeatable if torch has drawn numbers since; the message names the layers that drop.

        Of draws by others, warn.
        """
        for name, state in _other_generators().items():
            if state != self._others[name]:
                self._others[name] = state
                # The name is part of the text: warnings of one text are shown once.
                log.warning(
                    f"numbers were drawn from the global generator of {name} in training: if the method "
                    f"draws them, runs of one seed differ; draw with {_REMEDY}"
                )
        if all(map(torch.equal, self._states, self._now())):
            return
        dropping = [
            name for name, layer in objective.named_modules() if "drop" in type(layer).__name__.lower()
        ]
        layers = f". Layers that drop: {few_quoted(dropping)}" if dropping else ""
        raise NotRepeatable(
            "the training draws from torch's global generator, so runs of one seed would differ: let the "
            f"encoder have no dropout, and draw with {_REMEDY}{layers}"
        )

    def _now(self) -> Sequence[torch.Tensor]:
        gpu = [] if self._device is None else [torch.cuda.get_rng_state(self._device)]
        return [torch.random.get_rng_state(), *gpu]


def _other_generators() -> dict[str, object]:
    """Return what changes with every draw from a global generator, by the name of its library."""
    # Whoever draws from numpy's legacy generator is to be found out.
    numpy = np.random.get_state(legacy=False)  # noqa: NPY002
    return {"numpy": pickle.dumps(numpy), "random": random.getstate()}
