"""The networks of HeroCon. A method builds one for each view; they share no weights.

All end with ReLU and then batch norm, as in the paper's released code.
"""

from torch import nn

from contrasweep.models.encoders.encoder import Encoder

VECTOR_WIDTH = 200
IMAGE_WIDTH = 512

_VGG_STAGES = ((32, 32), (32, 32), (32, 32, 32), (64, 64, 64), (128, 128, 128))


def herocon_mlp(width_in: int) -> Encoder:
    """Two layers for vectors, d-200-200 (Scene, XRMB).

    Source: HeroCon, Section 4.1, as in the released code.
    """
    body = nn.Sequential(
        *_fully_connected(width_in, VECTOR_WIDTH), *_fully_connected(VECTOR_WIDTH, VECTOR_WIDTH)
    )
    return Encoder(body, width=VECTOR_WIDTH)


def herocon_cnn(channels: int, image_size: int) -> Encoder:
    """Two 3 x 3 convolutions of 32 filters, max-pooling (4, stride 2) and a layer of 512 (N-MNIST).

    Source: HeroCon, Section 4.1, as in the released code.
    """
    pooled = (image_size - 4) // 2 + 1
    body = nn.Sequential(
        *_convolution(channels, 32),
        *_convolution(32, 32),
        nn.MaxPool2d(4, stride=2),
        nn.Flatten(),
        *_fully_connected(32 * pooled * pooled, IMAGE_WIDTH),
    )
    return Encoder(body, width=IMAGE_WIDTH)


def herocon_vgg(channels: int, image_size: int) -> Encoder:
    """VGG-16's thirteen 3 x 3 convolutions, narrowed to 32..128 filters, and a layer of 512 (CelebA).

    Source: HeroCon, Section 4.3, as in the released code (there on 224 x 224 images).
    """
    layers: list[nn.Module] = []
    inputs = channels
    for stage in _VGG_STAGES:
        for outputs in stage:
            layers += _convolution(inputs, outputs)
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    pooled = image_size // 2 ** len(_VGG_STAGES)
    body = nn.Sequential(*layers, nn.Flatten(), *_fully_connected(inputs * pooled * pooled, IMAGE_WIDTH))
    return Encoder(body, width=IMAGE_WIDTH)


def herocon_embedding(width: int) -> nn.Sequential:
    """The embedding that L_u contrasts, `(N, width)` to `(N, width)`: Linear - ReLU - BN.

    Source: HeroCon, e of Eq. 5, as in the released code.
    """
    return nn.Sequential(*_fully_connected(width, width))


def _convolution(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]


def _fully_connected(inputs: int, outputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, outputs), nn.ReLU(), nn.BatchNorm1d(outputs)]
