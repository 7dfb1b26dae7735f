"""`Encoder`: a network with a known feature width, and the normalisation of its images."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from contrasweep.models.encoders.inputs import ImageInput, ViewsInput


class Encoder(nn.Module):
    """A backbone with a stated feature width; `body` maps images or vectors to `(B, width)`.

    Attributes:
        middle: the name of the module of `body` that ends the first half of the network; None where none is
            stated.
        trains_in_bf16: whether training computes in bfloat16 the operations that torch's autocast considers
            safe; features and weights stay float32.
        takes: what an encoder that was read from a file takes; None for one that was just built.
    """

    trains_in_bf16: bool = False
    takes: ImageInput | ViewsInput | None = None

    def __init__(self, body: nn.Module, width: int, middle: str | None = None) -> None:
        super().__init__()
        self.body = body
        self.width = width
        self.middle = middle

    def checking(self, takes: ImageInput | ViewsInput) -> "Encoder":
        """Return this encoder, which from now on refuses other input than it `takes`."""
        self.takes = takes
        self.register_forward_pre_hook(_check)
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Return the features `(B, width)` of `images` `(B, C, S, S)` (or vectors `(B, width_in)`)."""
        if not (self.trains_in_bf16 and self.training):
            features: Tensor = self.body(images)
            return features
        with torch.autocast(images.device.type, torch.bfloat16):
            features = self.body(images)
        return features.float()


def _check(encoder: nn.Module, given: tuple[object, ...]) -> None:
    if isinstance(encoder, Encoder) and encoder.takes is not None:
        encoder.takes.check(*given)


class Normalisation(nn.Module):
    """`(x - mean) / std` for images `(B, C, S, S)` in 0..1, by channel, without trained parameters.

    As the first layer of an encoder it is there wherever the encoder is: in training, probes, exported files.
    """

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

    `mean` and `std` (above 0) are one number for each channel, or one for all, in the unit of images in 0..1.

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
    middle = None if encoder.middle is None else f"1.{encoder.middle}"
    return Encoder(nn.Sequential(Normalisation(mean, std), encoder.body), encoder.width, middle)
