"""Projection heads: layers between the encoder and the loss in training, which are dropped afterwards.

A head maps `(N, inputs)` to `(N, outputs)`; the losses normalise its outputs.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.models.encoders.convnets import fully_connected
from contrasweep.names import unknown


def projection_head(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two bias-free linear layers with batch norm; the last batch norm has no affine part.

    Maps `(N, inputs)` to `(N, outputs)`: Linear - BN - ReLU - Linear - BN(no affine).

    Source: CCL-K's critic as released (there `hidden` = the encoder's width, `outputs` = 128).
    """
    first = fully_connected(inputs, hidden)
    return nn.Sequential(
        *first, nn.Linear(hidden, outputs, bias=False), nn.BatchNorm1d(outputs, affine=False)
    )


def linear_head(inputs: int, outputs: int) -> nn.Linear:
    """One linear layer: weights from N(0, 0.02^2), bias 0.

    Source: the output layer after fc7 of SmallAlexNet in CACR and Align+Uniform (`outputs` = 128).
    """
    layer = nn.Linear(inputs, outputs)
    nn.init.normal_(layer.weight, std=0.02)
    nn.init.zeros_(layer.bias)
    return layer


def mlp_head(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two linear layers with a ReLU between them, without batch norm.

    Source: SimCLR, MoCo v2 (Chen et al. 2020b) and SupCon. The released code of Cl-InfoNCE has
    2048-2048-128: 2,048 features, `hidden` 2,048, `outputs` 128.
    """
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, outputs))


def mlp_bn_head(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two linear layers with batch norm and a ReLU between them; the first layer is bias-free.

    Source: the 2048-512-128 head of Robinson et al. 2021, as released (image/model.py).
    """
    return nn.Sequential(
        nn.Linear(inputs, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, outputs),
    )


def mlp3_head(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Three linear layers; the first two are bias-free, each followed by batch norm and ReLU.

    Source: the 2048-2048-128 head with "batch normalization after each 2048 activation layers" of CCL-K,
    Appendix F (`hidden` 2,048, `outputs` 128).
    """
    layers = (*fully_connected(inputs, hidden), *fully_connected(hidden, hidden))
    return nn.Sequential(*layers, nn.Linear(hidden, outputs))


class CosineOutputs(nn.Module):
    """A last layer whose outputs are cosines: of inputs `(..., inputs)` with each of `outputs` directions.

    Source: the last layer of DINO's head (Caron et al. 2021, appendix C), with weight normalisation of fixed
    length 1, as released (`norm_last_layer`).
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(nn.init.trunc_normal_(torch.empty(outputs, inputs), std=0.02))

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the cosines `(..., outputs)`."""
        directions = functional.normalize(self.weight, dim=1)
        return functional.linear(functional.normalize(inputs, dim=-1), directions)


HEADS: Mapping[str, Callable[[int, int, int], nn.Module]] = {
    "cclk": projection_head,
    "linear": lambda inputs, _, outputs: linear_head(inputs, outputs),
    "mlp": mlp_head,
    "mlp-bn": mlp_bn_head,
    "mlp3": mlp3_head,
    "none": lambda *_: nn.Identity(),
}
"""Builders by name, called with (inputs, hidden, outputs).

`linear` ignores hidden, `none` ignores hidden and outputs.
"""


def build_head(name: str, inputs: int, hidden: int | None = None, outputs: int = 128) -> nn.Module:
    """Build the head `name` for features `(N, inputs)`.

    Args:
        name: one of `HEADS`.
        inputs: the encoder's width.
        hidden: the width of the hidden layers; None means `inputs`. `linear` and `none` have none.
        outputs: the width of the embedding; `none` ignores it, its embedding has the width `inputs`.

    Raises:
        ValueError: the name is unknown, or a width is below 1.
    """
    if name not in HEADS:
        raise ValueError(unknown("head", name, HEADS))
    hidden = inputs if hidden is None else hidden
    if min(inputs, hidden, outputs) < 1:
        given = f"inputs {inputs}, hidden {hidden}, outputs {outputs}"
        raise ValueError(f"widths must be at least 1, got {given}")
    return HEADS[name](inputs, hidden, outputs)
