"""BagNet-18: a residual network whose features see only small patches, so textures but no shapes."""

from torch import Tensor, nn

from contrasweep.models.encoders.encoder import Encoder


def bagnet18(channels: int, image_size: int = 224) -> Encoder:
    """Eight residual blocks of two convolutions and a global average; 512 features.

    All convolutions of the blocks are 1 x 1 except the very first. A 1 x 1 and a 3 x 3 convolution come
    before the blocks. Nothing is padded, so that one position of the last layer sees 5 x 5 pixels. The 18
    counts layers; in the names BagNet-9, -17, -33 the number is the size of the patch.

    Source: the bias-capturing network of FairKL, Section B.2.4, as ReBias (Bahng et al. 2020) released it
    after Brendel and Bethge (2019). The batch norm of the stem has torch's momentum: with ReBias's 0.001 the
    running statistics lag by thousands of steps.
    """
    body = nn.Sequential(
        nn.Conv2d(channels, 64, kernel_size=1, bias=False),
        nn.Conv2d(64, 64, kernel_size=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        PatchBlock(64, 64, kernel_size=3, stride=2),
        PatchBlock(64, 64),
        PatchBlock(64, 128, stride=2),
        PatchBlock(128, 128),
        PatchBlock(128, 256, stride=2),
        PatchBlock(256, 256),
        PatchBlock(256, 512),
        PatchBlock(512, 512),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )
    for layer in body.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return Encoder(body, width=512)


class PatchBlock(nn.Module):
    """An unpadded residual block: a convolution, then a 1 x 1 convolution, plus the input cropped to fit."""

    def __init__(self, inputs: int, outputs: int, kernel_size: int = 1, stride: int = 1) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(inputs, outputs, kernel_size, stride, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, kernel_size=1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, kernel_size=1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, features: Tensor) -> Tensor:
        """Return `(B, outputs, S', S')` for `features` `(B, inputs, S, S)`."""
        residual = self.residual(features)
        height, width = residual.shape[2:]
        # The unpadded 3 x 3 convolution drops a margin; both paths start at the same corner.
        return nn.functional.relu(residual + self.shortcut(features)[:, :, :height, :width])
