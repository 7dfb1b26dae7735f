"""SmallAlexNet: AlexNet with 3 x 3 convolutions, for images of 32 to 64 pixels."""

from torch import nn

from contrasweep.models.encoders.encoder import Encoder

WIDTH = 4096
INITIAL_DEVIATION = 0.02
"""Standard deviation of every initial weight, including those of the output layer."""

SMALLEST_IMAGE = 15
"""The smallest image, in pixels per side: with fewer, no pixel is left after the third pooling."""


def small_alexnet(channels: int, image_size: int) -> Encoder:
    """Convolutions 96-192-384-384-192, max-pooling (3, stride 2) after the 1st, 2nd and 5th, fc6 and fc7.

    Every layer is bias-free and followed by batch norm and ReLU. The features are the 4,096 outputs of fc7,
    on which the papers fit the probe. The papers' 128-d output layer, whose L2-normalised output the loss
    sees, is the head `linear` (128 outputs). All weights start from N(0, 0.02^2), those of the head too.

    Source: CACR, Section B.1, and Align+Uniform (Wang and Isola 2020), as in their released code.
    """
    pooled = _pooled(_pooled(_pooled(image_size)))
    body = nn.Sequential(
        *_convolution(channels, 96),
        nn.MaxPool2d(3, stride=2),
        *_convolution(96, 192),
        nn.MaxPool2d(3, stride=2),
        *_convolution(192, 384),
        *_convolution(384, 384),
        *_convolution(384, 192),
        nn.MaxPool2d(3, stride=2),
        nn.Flatten(),
        *_fully_connected(192 * pooled * pooled, WIDTH),
        *_fully_connected(WIDTH, WIDTH),
    )
    for layer in body:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.normal_(layer.weight, std=INITIAL_DEVIATION)
    return Encoder(body, width=WIDTH)


def _pooled(size: int) -> int:
    return (size - 3) // 2 + 1


def _convolution(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


def _fully_connected(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
