"""Encoders, projection heads and probes."""

from models.encoders import ENCODERS, Encoder, EncoderSpec, build_encoder
from models.export import encoder_bytes, load_encoder
from models.heads import projection_head
from models.probes import (
    LinearProbe,
    NonFiniteFeatures,
    accuracy,
    fit_logistic,
    fit_ridge,
    mean_squared_error,
    one_hot,
)

__all__ = [
    "ENCODERS",
    "Encoder",
    "EncoderSpec",
    "LinearProbe",
    "NonFiniteFeatures",
    "accuracy",
    "build_encoder",
    "encoder_bytes",
    "fit_logistic",
    "fit_ridge",
    "load_encoder",
    "mean_squared_error",
    "one_hot",
    "projection_head",
]
