"""Encoders: images in, feature vectors out.

Shapes: B images, C channels, S pixels a side, D features. Every encoder takes float `(B, C, S, S)` in [0, 1]
and returns `(B, D)` with `D = encoder.width`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from torch import Tensor, nn


class Encoder(nn.Module):
    """A backbone with a stated feature width; `body` maps `(B, C, S, S)` to `(B, width)`."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body = body
        self.width = width

    def forward(self, images: Tensor) -> Tensor:
        """Return the features `(B, width)` of `images` `(B, C, S, S)`."""
        features: Tensor = self.body(images)
        return features


def lenet5(channels: int) -> Encoder:
    """LeNet-5 for 32 x 32 images: 6-16-120 convolutions, tanh, average pooling, 84 features.

    Source: CCL-K, Section 4.3 (ColorMNIST), as in the released code; initialised by torch's defaults.
    """
    body = nn.Sequential(
        nn.Conv2d(channels, 6, kernel_size=5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, kernel_size=5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(16, 120, kernel_size=5),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(120, 84),
        nn.Tanh(),
    )
    return Encoder(body, width=84)


def small_conv(channels: int) -> Encoder:
    """Three 3 x 3 convolutions (32-64-64, batch norm, ReLU) and a global average, for 8 x 8 digits; ours."""
    body = nn.Sequential(
        *_conv_block(channels, 32),
        *_conv_block(32, 64),
        nn.MaxPool2d(2),
        *_conv_block(64, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    return Encoder(body, width=64)


def _conv_block(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


@dataclass(frozen=True)
class EncoderSpec:
    """What a user can choose: a name, the image sizes it takes (`None`: any), and how to build it."""

    name: str
    summary: str
    image_size: int | None
    build: Callable[[int], Encoder]


ENCODERS: Mapping[str, EncoderSpec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            EncoderSpec("lenet5", "LeNet-5, 84 features, 32 x 32 images", 32, lenet5),
            EncoderSpec("small-conv", "three 3 x 3 convolutions, 64 features, any size", None, small_conv),
        )
    }
)


def build_encoder(name: str, channels: int, image_size: int) -> Encoder:
    """Build the encoder `name` for images `(channels, image_size, image_size)`.

    Raises:
        ValueError: the name is unknown, or the encoder does not take images of that size.
    """
    if name not in ENCODERS:
        raise ValueError(f"unknown encoder {name!r}; known: {', '.join(ENCODERS)}")
    spec = ENCODERS[name]
    if spec.image_size not in (None, image_size):
        raise ValueError(
            f"encoder {name!r} takes {spec.image_size} x {spec.image_size} images, "
            f"not {image_size} x {image_size}"
        )
    return spec.build(channels)
