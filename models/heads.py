"""Projection heads: what stands between the encoder and the loss in training, and is dropped afterwards."""

from torch import nn


def projection_head(features: int, hidden: int, width: int) -> nn.Sequential:
    """Two bias-free linear layers with batch norm, the last one without an affine part.

    Maps `(N, features)` to `(N, width)`: Linear - BN - ReLU - Linear - BN(no affine).

    Source: CCL-K's critic as released (there `hidden` = the encoder's width, `width` = 128).
    """
    return nn.Sequential(
        nn.Linear(features, hidden, bias=False),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Linear(hidden, width, bias=False),
        nn.BatchNorm1d(width, affine=False),
    )
