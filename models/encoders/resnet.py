"""ResNet-18 and ResNet-50 (He et al. 2016) from torchvision's modules, with one of two stems.

The ImageNet stem is a 7 x 7 convolution with stride 2 and a max-pooling; it divides the pixels per side by
four. The CIFAR stem is a single 3 x 3 convolution, for images of 32 to 64 pixels (CCL-K, Cl-InfoNCE, SupCon,
SimCLR). The name of the encoder states the stem. The image size does not decide it, because both stems are
used on small images.

Parameters have torchvision's names, so that published weights load into `encoder.body`.
"""

from torch import nn

from contrasweep.models.encoders.encoder import Encoder


def resnet18(channels: int, image_size: int = 224) -> Encoder:
    """ResNet-18 with the ImageNet stem, 512 features."""
    return _resnet(18, channels)


def resnet50(channels: int, image_size: int = 224) -> Encoder:
    """ResNet-50 with the ImageNet stem, 2,048 features."""
    return _resnet(50, channels)


def resnet18_cifar(channels: int, image_size: int = 32) -> Encoder:
    """ResNet-18 with the CIFAR stem, 512 features."""
    return _with_cifar_stem(_resnet(18, channels), channels)


def resnet50_cifar(channels: int, image_size: int = 32) -> Encoder:
    """ResNet-50 with the CIFAR stem, 2,048 features.

    Source: Cl-InfoNCE, Section E.1; CCL-K, Sections F.1 and F.3.
    """
    return _with_cifar_stem(_resnet(50, channels), channels)


def _resnet(depth: int, channels: int) -> Encoder:
    # The import takes seconds, and only these networks need it.
    from torchvision.models import resnet

    body = resnet.resnet18(num_classes=1) if depth == 18 else resnet.resnet50(num_classes=1)
    width = body.fc.in_features
    body.fc = nn.Identity()
    if channels != 3:
        body.conv1 = _first_convolution(channels, kernel_size=7, stride=2)
    return Encoder(body, width)


def _with_cifar_stem(encoder: Encoder, channels: int) -> Encoder:
    encoder.body.conv1 = _first_convolution(channels, kernel_size=3, stride=1)
    encoder.body.maxpool = nn.Identity()
    return encoder


def _first_convolution(channels: int, kernel_size: int, stride: int) -> nn.Conv2d:
    convolution = nn.Conv2d(channels, 64, kernel_size, stride, padding=kernel_size // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return convolution
