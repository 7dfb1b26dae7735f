"""Encoders, projection heads, momentum encoders, probes and scores."""

from contrasweep.models.encoders.encoder import Encoder
from contrasweep.models.encoders.inputs import ImageInput, ViewsInput
from contrasweep.models.encoders.registry import (
    ENCODERS,
    VECTOR_ENCODERS,
    EncoderSpec,
    VectorEncoderSpec,
    build_encoder,
    build_vector_encoder,
    check_images,
    check_two_sizes,
)
from contrasweep.models.export import EncoderFile, encoder_bytes, load_encoder, read_encoder
from contrasweep.models.heads import (
    HEADS,
    CosineOutputs,
    build_head,
    linear_head,
    mlp3_head,
    mlp_bn_head,
    mlp_head,
    projection_head,
)
from contrasweep.models.label_free import (
    alignment,
    direction_std,
    feature_std,
    lidar,
    rankme,
    uniformity,
)
from contrasweep.models.momentum import KeyQueue, MemoryBank, MomentumCopy, rising_momentum
from contrasweep.models.probes.knn import KNNProbe, choose_knn, fit_knn
from contrasweep.models.probes.linear import LinearProbe, NonFiniteFeatures, fit_logistic
from contrasweep.models.probes.minibatch import PROBE_RECIPES, ProbeRecipe, fit_minibatch, probe_recipe
from contrasweep.models.probes.ridge import choose_ridge, fit_ridge, one_hot
from contrasweep.models.scores import (
    MacroAUC,
    accuracy,
    group_balanced_accuracy,
    macro_auc,
    mean_squared_error,
    multi_label_f1,
    top_accuracy,
    unbiased_accuracy,
    worst_group_accuracy,
)
from contrasweep.models.tap import Tap
from contrasweep.models.texture import NeuralGlcm

__all__ = [
    "ENCODERS",
    "HEADS",
    "PROBE_RECIPES",
    "VECTOR_ENCODERS",
    "CosineOutputs",
    "Encoder",
    "EncoderFile",
    "EncoderSpec",
    "ImageInput",
    "KNNProbe",
    "KeyQueue",
    "LinearProbe",
    "MacroAUC",
    "MemoryBank",
    "MomentumCopy",
    "NeuralGlcm",
    "NonFiniteFeatures",
    "ProbeRecipe",
    "Tap",
    "VectorEncoderSpec",
    "ViewsInput",
    "accuracy",
    "alignment",
    "build_encoder",
    "build_head",
    "build_vector_encoder",
    "check_images",
    "check_two_sizes",
    "choose_knn",
    "choose_ridge",
    "direction_std",
    "encoder_bytes",
    "feature_std",
    "fit_knn",
    "fit_logistic",
    "fit_minibatch",
    "fit_ridge",
    "group_balanced_accuracy",
    "lidar",
    "linear_head",
    "load_encoder",
    "macro_auc",
    "mean_squared_error",
    "mlp3_head",
    "mlp_bn_head",
    "mlp_head",
    "multi_label_f1",
    "one_hot",
    "probe_recipe",
    "projection_head",
    "rankme",
    "read_encoder",
    "rising_momentum",
    "top_accuracy",
    "unbiased_accuracy",
    "uniformity",
    "worst_group_accuracy",
]
