"""An exponential moving average of a run's weights, which is evaluated and exported in their place."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from contrasweep.models import MomentumCopy


class WeightAverage:
    """The average `m = d m + (1 - d) w` of the weights w of a module, and their exchange for the weights.

    Weights are the parameters that learn and the running statistics of batch norm. Other parameters and
    buffers (momentum copies, queues) stay the training's. In step t, counted from 1, d is the smaller of
    `decay` and `(1 + t) / (10 + t)`, so that the average of a short run is not that of its random start.

    The module has one of two sets of weights, the trained ones or the average, and this object the other.
    At first both are the same, and the module counts as having the average.

    Source of the rule for d: TensorFlow, `ExponentialMovingAverage(num_updates=...)`.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self._decay = decay
        self._weights = _weights(module)
        self._other = {name: weight.clone() for name, weight in self._weights.items()}

    @torch.no_grad()
    def swap(self) -> None:
        """Give the module the set of weights that it does not have."""
        for name, weight in self._weights.items():
            held = weight.clone()
            weight.copy_(self._other[name])
            self._other[name].copy_(held)

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Move the average towards the module's weights, the trained ones, after the step `step` (from 1)."""
        decay = min(self._decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self._other.values()), list(self._weights.values()), 1 - decay)

    def state_dict(self) -> dict[str, Tensor]:
        """Return the set of weights that the module does not have, by name."""
        return dict(self._other)

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load what `state_dict` returned.

        Raises:
            ValueError: it belongs to another module.
        """
        if state.keys() != self._other.keys():
            raise ValueError("the average in it is of other weights")
        for name, weight in self._other.items():
            if state[name].shape != weight.shape:
                raise ValueError(f"the average of {name} has another shape")
            weight.copy_(state[name])


def _weights(module: nn.Module) -> dict[str, Tensor]:
    """Return, by name, the parameters that learn and the running statistics beside them."""
    found = {name: weight.detach() for name, weight in module.named_parameters() if weight.requires_grad}
    copies = tuple(f"{name}." for name, one in module.named_modules() if isinstance(one, MomentumCopy))
    for name, buffer in module.named_buffers():
        if name.endswith((".running_mean", ".running_var")) and not name.startswith(copies):
            found[name] = buffer
    return found
