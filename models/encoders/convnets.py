"""Plain convolutional networks: LeNet-5, SimpleConvNet and a network of ours for digits, and SmallAlexNet.

A builder takes `(channels, image_size)`: the number of channels and the pixels per side.
"""

from itertools import pairwise

from torch import nn

from contrasweep.models.encoders.encoder import Encoder


def lenet5(channels: int, image_size: int = 32) -> Encoder:
    """LeNet-5 for 32 x 32 images with a tanh after its last layer: 84 features in [-1, 1].

    `lenet5_linear` has the same layers without that tanh; torch's default initialisation.
    """
    return Encoder(nn.Sequential(*_lenet5_layers(channels), nn.Tanh()), width=84, middle="5")


def lenet5_linear(channels: int, image_size: int = 32) -> Encoder:
    """LeNet-5 for 32 x 32 images, as released: 84 linear features.

    Source: CCL-K, Section 4.3 (ColorMNIST), and models/lenet.py of its released code.
    """
    return Encoder(nn.Sequential(*_lenet5_layers(channels)), width=84, middle="5")


def _lenet5_layers(channels: int) -> list[nn.Module]:
    """Return 6-16-120 convolutions with tanh and average pooling, and a linear layer to 84."""
    return [
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
    ]


def small_conv(channels: int, image_size: int = 8) -> Encoder:
    """Three 3 x 3 convolutions (32-64-64, batch norm, ReLU) and a global average, for 8 x 8 digits; ours."""
    body = nn.Sequential(
        *_conv_block(channels, 32),
        *_conv_block(32, 64),
        nn.MaxPool2d(2),
        *_conv_block(64, 64),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    return Encoder(body, width=64, middle="5")


def simple_conv(channels: int, image_size: int = 28) -> Encoder:
    """Four 7 x 7 convolutions (16-32-64-128), batch norm, ReLU, tanh after the last, and a global average.

    128 features in [-1, 1]. There is no pooling before the average, so every layer works at full resolution.

    Source: SimpleConvNet (Bahng et al. 2020) as FairKL trains it (Section B.2.1 and the released code). The
    released code replaces the last ReLU by tanh where there is no projection head. He initialisation by
    fan-out.
    """
    return _simple_conv(channels, nn.Tanh())


def simple_conv_relu(channels: int, image_size: int = 28) -> Encoder:
    """`simple_conv` with a ReLU after the last convolution too: 128 features of 0 or more.

    Source: Hong and Yang 2021, networks/simple_conv.py of the released code; FairKL's plain cross-entropy.
    """
    return _simple_conv(channels, nn.ReLU())


def simple_conv_1x1(channels: int, image_size: int = 28) -> Encoder:
    """`simple_conv_relu` with 1 x 1 convolutions: a feature knows which colours an image has, not where.

    Source: the biased network of ReBias (Bahng et al. 2020) on Biased-MNIST, models/mnist_models.py of its
    released code.
    """
    return _simple_conv(channels, nn.ReLU(), kernel_size=1)


def _simple_conv(channels: int, last: nn.Module, kernel_size: int = 7) -> Encoder:
    widths = (channels, 16, 32, 64, 128)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        convolution = nn.Conv2d(inputs, outputs, kernel_size, padding=kernel_size // 2)
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
        layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]
    body = nn.Sequential(*layers[:-1], last, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Encoder(body, width=128, middle="5")


def small_alexnet(channels: int, image_size: int) -> Encoder:
    """Convolutions 96-192-384-384-192, max-pooling (3, stride 2) after the 1st, 2nd and 5th, fc6 and fc7.

    Every layer is bias-free and followed by batch norm and ReLU. The features are the 4,096 outputs of fc7,
    on which the papers fit the probe. The papers' 128-d output layer, whose L2-normalised output the loss
    sees, is the head `linear` (128 outputs). All weights start from N(0, 0.02^2), those of the head too.
    With fewer than 15 pixels per side, none is left after the third pooling.

    Source: CACR, Section B.1, and Align+Uniform (Wang and Isola 2020), as in their released code.
    """
    pooled = image_size
    for _ in range(3):
        pooled = (pooled - 3) // 2 + 1
    body = nn.Sequential(
        *_conv_block(channels, 96),
        nn.MaxPool2d(3, stride=2),
        *_conv_block(96, 192),
        nn.MaxPool2d(3, stride=2),
        *_conv_block(192, 384),
        *_conv_block(384, 384),
        *_conv_block(384, 192),
        nn.MaxPool2d(3, stride=2),
        nn.Flatten(),
        *fully_connected(192 * pooled * pooled, 4096),
        *fully_connected(4096, 4096),
    )
    for layer in body:
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)
    return Encoder(body, width=4096)


def _conv_block(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]


def fully_connected(inputs: int, outputs: int) -> list[nn.Module]:
    """Return a bias-free linear layer, batch norm and ReLU: `(N, inputs)` to `(N, outputs)`."""
    return [nn.Linear(inputs, outputs, bias=False), nn.BatchNorm1d(outputs), nn.ReLU()]
