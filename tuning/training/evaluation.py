"""Scores of an encoder: probes fitted on training features, read on held-out ones.

Two classifiers: exact ridge regression, cheap enough for every epoch (on part of the training rows), which is
what a scheduler compares; and L-BFGS logistic regression on all of them, which is what is reported. Where the
data has a continuous condition (a background colour), it is regressed from the features too: the larger the
error, the less of the condition the features keep.
"""

from typing import Literal

import torch
from torch import Tensor

from data import DatasetSpec, LabelledImages, whole_image
from models import LinearProbe, accuracy, fit_logistic, fit_ridge, mean_squared_error, one_hot
from tuning.config import ProbeSettings
from tuning.training.objective import Objective

CHUNK = 1024
"""Images whose features are computed at once: bounds memory, does not change the result."""


def extract_features(objective: Objective, images: Tensor, size: int) -> Tensor:
    """Return the encoder's features `(N, D)` of whole `images` (uint8 `(N, C, H, W)`) at `size` pixels."""
    chunks = torch.split(images, CHUNK)
    return torch.cat([objective.features(whole_image(chunk, size)) for chunk in chunks])


def probe_scores(
    objective: Objective,
    train: LabelledImages,
    held_out: LabelledImages,
    spec: DatasetSpec,
    settings: ProbeSettings,
    classifier: Literal["ridge", "logistic"],
) -> dict[str, float]:
    """Return `accuracy` (0..1) and, with a condition, `colour_mse` (squared 8-bit levels) on `held_out`."""
    features = extract_features(objective, train.images, spec.view_size)
    unseen = extract_features(objective, held_out.images, spec.view_size)
    probe = _fit_classifier(features, train.labels, spec.classes, settings, classifier)
    scores = {"accuracy": accuracy(probe, unseen, held_out.labels)}
    if train.condition is not None and held_out.condition is not None:
        colour = fit_ridge(
            features, train.condition, penalty=settings.penalty, standardise=settings.standardise
        )
        scores["colour_mse"] = mean_squared_error(colour, unseen, held_out.condition)
    return scores


def _fit_classifier(
    features: Tensor,
    labels: Tensor,
    classes: int,
    settings: ProbeSettings,
    name: Literal["ridge", "logistic"],
) -> LinearProbe:
    if name == "ridge":
        return fit_ridge(
            features, one_hot(labels, classes), penalty=settings.penalty, standardise=settings.standardise
        )
    return fit_logistic(
        features,
        labels,
        classes,
        penalty=settings.penalty,
        max_steps=settings.max_steps,
        standardise=settings.standardise,
    )
