"""ResNet-18 and ResNet-50 (He et al. 2016) from torchvision's modules, with one of two stems.

The ImageNet stem is a 7 x 7 convolution with stride 2 and a max-pooling; it divides the pixels per side by
four. The CIFAR stem is a single 3 x 3 convolution, for images of 32 to 64 pixels (CCL-K, Cl-InfoNCE, SupCon,
SimCLR). The name of the encoder states the stem. The image size does not decide it, because both stems are
used on small images.

Parameters have torchvision's names, so that published weights load into `encoder.body`.
"""

from typing import Literal

from torch import nn

from contrasweep.models.encoders.encoder import Encoder


def resnet(
    depth: Literal[18, 50], stem: Literal["imagenet", "cifar"], channels: int, image_size: int
) -> Encoder:
    """ResNet-18 (512 features) or ResNet-50 (2,048 features) for images of any size.

    Source of ResNet-50 with the CIFAR stem: Cl-InfoNCE, Section E.1; CCL-K, Sections F.1 and F.3.
    """
    # The import takes seconds, and only these networks need it.
    from torchvision.models import resnet18, resnet50

    body = (resnet18 if depth == 18 else resnet50)(num_classes=1)
    width = body.fc.in_features
    body.fc = nn.Identity()
    if channels != 3:
        body.conv1 = _first_convolution(channels, kernel_size=7, stride=2)
    if stem == "cifar":
        body.conv1 = _first_convolution(channels, kernel_size=3, stride=1)
        body.maxpool = nn.Identity()
    return Encoder(body, width, middle="layer2")


def _first_convolution(channels: int, kernel_size: int, stride: int) -> nn.Conv2d:
    convolution = nn.Conv2d(channels, 64, kernel_size, stride, padding=kernel_size // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return convolution
