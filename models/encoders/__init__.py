"""Encoders: images or vectors in, feature vectors out.

Shapes: B images, C channels, S pixels per side, D features. An encoder of images takes float `(B, C, S, S)`
in [0, 1], an encoder of vectors float `(B, width_in)`; both return `(B, D)` with `D = encoder.width`.
"""

from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.registry import (
    ENCODERS,
    VECTOR_ENCODERS,
    EncoderSpec,
    VectorEncoderSpec,
    build_encoder,
    build_vector_encoder,
)

__all__ = [
    "ENCODERS",
    "VECTOR_ENCODERS",
    "Encoder",
    "EncoderSpec",
    "VectorEncoderSpec",
    "build_encoder",
    "build_vector_encoder",
]
