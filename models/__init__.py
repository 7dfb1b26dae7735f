"""Encoders, projection heads, momentum encoders, probes and scores."""

from models.encoders import (
    ENCODERS,
    VECTOR_ENCODERS,
    Encoder,
    EncoderSpec,
    VectorEncoderSpec,
    build_encoder,
    build_vector_encoder,
)
from models.export import encoder_bytes, load_encoder, vector_encoder_bytes
from models.heads import HEADS, build_head, linear_head, mlp3_head, mlp_head, projection_head
from models.key_queue import KeyQueue
from models.momentum import MomentumCopy
from models.probes import (
    PROBE_RECIPES,
    KNNProbe,
    LinearProbe,
    NonFiniteFeatures,
    ProbeRecipe,
    choose_knn,
    fit_knn,
    fit_logistic,
    fit_minibatch,
    fit_one_vs_rest,
    fit_ridge,
    one_hot,
    probe_recipe,
)
from models.scores import (
    MacroAUC,
    accuracy,
    group_balanced_accuracy,
    macro_auc,
    mean_squared_error,
    multi_label_f1,
)

__all__ = [
    "ENCODERS",
    "HEADS",
    "PROBE_RECIPES",
    "VECTOR_ENCODERS",
    "Encoder",
    "EncoderSpec",
    "KNNProbe",
    "KeyQueue",
    "LinearProbe",
    "MacroAUC",
    "MomentumCopy",
    "NonFiniteFeatures",
    "ProbeRecipe",
    "VectorEncoderSpec",
    "accuracy",
    "build_encoder",
    "build_head",
    "build_vector_encoder",
    "choose_knn",
    "encoder_bytes",
    "fit_knn",
    "fit_logistic",
    "fit_minibatch",
    "fit_one_vs_rest",
    "fit_ridge",
    "group_balanced_accuracy",
    "linear_head",
    "load_encoder",
    "macro_auc",
    "mean_squared_error",
    "mlp3_head",
    "mlp_head",
    "multi_label_f1",
    "one_hot",
    "probe_recipe",
    "projection_head",
    "vector_encoder_bytes",
]
