"""Normalisation of images by each channel's mean and standard deviation, as the first layer of an encoder.

It is part of the network, so it is there wherever the encoder is: in training, probes and exported files.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from contrasweep.models.encoders.encoder import Encoder


class Normalisation(nn.Module):
    """`(x - mean) / std` for images `(B, C, S, S)` in 0..1, by channel, without trained parameters."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        for name, values in (("mean", mean), ("std", std)):
            self.register_buffer(name, torch.tensor(list(values)).view(1, -1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Return the normalised images, of the same shape."""
        return (images - self.mean) / self.std


def normalised_encoder(
    encoder: Encoder, channels: int, mean: Sequence[float], std: Sequence[float]
) -> Encoder:
    """Return `encoder` with a normalisation in front of it, or `encoder` itself if no mean is given.

    Args:
        encoder: an encoder of images.
        channels: the number of channels of the images.
        mean: one number for each channel, or one for all, in the unit of images in 0..1.
        std: likewise, above 0.

    Raises:
        ValueError: `mean` or `std` has neither one number nor one for each channel.
    """
    if not mean and not std:
        return encoder
    if len(mean) != len(std) or len(mean) not in (1, channels):
        raise ValueError(
            f"mean and std take one number for each of {channels} channels, or one for all: "
            f"given {len(mean)} and {len(std)}"
        )
    return Encoder(nn.Sequential(Normalisation(mean, std), encoder.body), encoder.width)
