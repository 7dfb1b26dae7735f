"""An encoder for images: one convolution and a mean over all positions."""

from torch import nn

from contrasweep.models import Encoder, EncoderSpec


def stripe_net(channels: int, image_size: int) -> Encoder:
    """Return the encoder; its features are `(B, 16)`."""
    body = nn.Sequential(
        nn.Conv2d(channels, 16, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    return Encoder(body, width=16)


ENCODER = EncoderSpec("stripe-net", "one convolution, 16 features, any size", None, stripe_net)
