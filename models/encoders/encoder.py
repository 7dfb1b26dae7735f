"""`Encoder`: a network with a known feature width."""

import torch
from torch import Tensor, nn


class Encoder(nn.Module):
    """A backbone with a stated feature width; `body` maps images or vectors to `(B, width)`.

    Attributes:
        trains_in_bf16: whether training computes in bfloat16 the operations that torch's autocast considers
            safe; features and weights stay float32.
    """

    trains_in_bf16: bool = False

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body = body
        self.width = width

    def forward(self, images: Tensor) -> Tensor:
        """Return the features `(B, width)` of `images` `(B, C, S, S)` (or vectors `(B, width_in)`)."""
        if not (self.trains_in_bf16 and self.training):
            features: Tensor = self.body(images)
            return features
        with torch.autocast(images.device.type, torch.bfloat16):
            features = self.body(images)
        return features.float()
