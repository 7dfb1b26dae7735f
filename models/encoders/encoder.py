"""What an encoder is: a network whose feature width is known."""

from torch import Tensor, nn


class Encoder(nn.Module):
    """A backbone with a stated feature width; `body` maps images or vectors to `(B, width)`."""

    def __init__(self, body: nn.Module, width: int) -> None:
        super().__init__()
        self.body = body
        self.width = width

    def forward(self, images: Tensor) -> Tensor:
        """Return the features `(B, width)` of `images` `(B, C, S, S)` (or vectors `(B, width_in)`)."""
        features: Tensor = self.body(images)
        return features
