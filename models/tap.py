"""`Tap`: what a layer gave in its last pass."""

from typing import Any

from torch import Tensor, nn


class Tap:
    """Keeps the output of a layer each time that the layer runs, with its gradient.

    Attributes:
        output: the output of the last pass.

    Raises:
        AttributeError: on reading `output` before the layer has run.
    """

    output: Tensor

    def __init__(self, layer: nn.Module) -> None:
        layer.register_forward_hook(self._keep)

    def _keep(self, layer: nn.Module, inputs: Any, output: Tensor) -> None:
        self.output = output
