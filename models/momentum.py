"""A momentum encoder: a copy that follows another module slowly and receives no gradient."""

import copy

import torch
from torch import Tensor, nn


class MomentumCopy(nn.Module):
    """An exponential moving average of another module's parameters: `own = m * own + (1 - m) * theirs`.

    It starts as an exact copy. Its parameters need no gradient, and its forward pass records none.

    Buffers are neither averaged nor copied. As in MoCo, the copy runs in the same mode as the original, so in
    training its batch norm normalises by the batch of keys and keeps its own running statistics.

    Attributes:
        module: the copy.
        momentum: m, in [0, 1].

    Source: MoCo (He et al. 2020), Eq. 2, m = 0.999.
    """

    def __init__(self, source: nn.Module, momentum: float = 0.999) -> None:
        super().__init__()
        if not 0 <= momentum <= 1:
            raise ValueError(f"momentum must lie in [0, 1], got {momentum!r}")
        self.module = copy.deepcopy(source).requires_grad_(False)
        self.momentum = momentum

    @torch.no_grad()
    def forward(self, inputs: Tensor) -> Tensor:
        """Return the copy's outputs for `inputs`, without gradient."""
        outputs: Tensor = self.module(inputs)
        return outputs

    @torch.no_grad()
    def follow(self, source: nn.Module) -> None:
        """Move the copy towards the original, `source`. Call it once per step, before computing the keys.

        Raises:
            ValueError: the parameters of `source` are not those of the copy.
        """
        own, theirs = dict(self.module.named_parameters()), dict(source.named_parameters())
        if {n: p.shape for n, p in own.items()} != {n: p.shape for n, p in theirs.items()}:
            raise ValueError("the module to follow has other parameters than the copy was made of")
        for name, parameter in own.items():
            parameter.lerp_(theirs[name], 1 - self.momentum)
