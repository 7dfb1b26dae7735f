"""Scores of an encoder: probes fitted on training features, read on held-out ones.

Two classifiers: exact ridge regression, cheap enough for every epoch (on part of the training rows), which is
what a scheduler compares; and on all of them the one that the experiment names (L-BFGS logistic regression,
a paper's minibatch recipe, nearest neighbours), which is what is reported. A method
with a classifier of its own is scored by that as well. Where the data has a background colour, it is
regressed from the features too: the larger the error, the less of the colour the features keep. Where it has
a bias label, accuracy is also averaged over the groups of (class, bias): the majority hides nothing there;
where its test images are clustered, over those of (class, cluster).
"""

from collections.abc import Callable

import torch
from torch import Tensor

from contrasweep.data import (
    DatasetSpec,
    Images,
    LabelledImages,
    StreamedImages,
    image_chunks,
    shard,
    torch_generator,
    whole_image,
)
from contrasweep.data.spec import TOP_FIVE_FROM
from contrasweep.models import (
    choose_knn,
    fit_knn,
    fit_logistic,
    fit_minibatch,
    fit_ridge,
    group_balanced_accuracy,
    mean_squared_error,
    one_hot,
    probe_recipe,
    top_accuracy,
    unbiased_accuracy,
)
from contrasweep.tuning.experiment import Experiment, ProbeSettings
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import Prepared, PreparedData
from contrasweep.tuning.objectives.ranks import ONE, Ranks
from contrasweep.tuning.objectives.transductive import PreparedTransductive, transductive_scores

CHUNK = 1024
"""Images whose features are computed at once: bounds memory, does not change the result."""

RIDGE = "ridge"
"""The fast classifier of every epoch; the other names are those of `probes.classifier`."""

Classifier = Callable[[Tensor], Tensor]
"""Of features `(N, D)`, the scores of the classes `(N, C)`."""


def extract_features(objective: Objective, images: Images, size: int) -> Tensor:
    """Return the encoder's features `(N, D)` of whole `images` (uint8 `(N, C, H, W)`) at `size` pixels."""
    return _by_chunks(objective.features, images, size)


def embed_training_set(objective: Objective, data: Prepared, ranks: Ranks = ONE) -> Tensor:
    """Return what the objective gives for every training image, whole: `(N, D)`, see `embed_images`.

    Each rank computes some of it, in the chunks of one process: the same bits come out.
    """
    assert isinstance(data, PreparedData), "clusters are of images"
    images, size = data.train.images, data.spec.view_size
    starts = torch.arange(0, len(images), CHUNK)
    if len(starts) < ranks.world:
        return _by_chunks(objective.embed_images, images, size)
    own = shard(starts, ranks.rank, ranks.world)
    rows = torch.arange(int(own[0]), min(int(own[-1]) + CHUNK, len(images)))
    mine = images.subset(rows) if isinstance(images, StreamedImages) else images[rows[0] : rows[-1] + 1]
    return ranks.gather(_by_chunks(objective.embed_images, mine, size), 0)


def validation_scores(
    objective: Objective, data: Prepared, experiment: Experiment, *, full: bool
) -> dict[str, float]:
    """Return the scores on the validation split by metric name, none without one.

    The cheap ones (`val.ridge_accuracy`; of the method's own classifier `val.classifier_accuracy`), and with
    `full` the exact ones (`val.accuracy`).
    """
    if isinstance(data, PreparedTransductive):
        return _transductive_validation(objective, data, experiment.probes)
    if data.validation is None:
        return {}
    fast = probe_scores(objective, data.probe_rows, data.validation, data.spec, experiment.probes, RIDGE)
    scores = {f"val.ridge_{name}": score for name, score in fast.items()}
    if METHODS[experiment.method].classifies:
        own = classifier_scores(objective, data.validation, data.spec)
        scores |= {f"val.classifier_{name}": score for name, score in own.items()}
    if full:
        probes = experiment.probes
        exact = probe_scores(objective, data.labelled, data.validation, data.spec, probes, probes.classifier)
        scores |= {f"val.{name}": score for name, score in exact.items()}
    return scores


def _transductive_validation(
    objective: Objective, data: PreparedTransductive, settings: ProbeSettings
) -> dict[str, float]:
    held_out = data.data.validation
    if held_out is None:
        return {}
    scores = transductive_scores(objective, held_out, data.spec, settings)
    return {f"val.{name}": score for name, score in scores.items()}


def probe_scores(
    objective: Objective,
    train: LabelledImages,
    held_out: LabelledImages,
    spec: DatasetSpec,
    settings: ProbeSettings,
    classifier: str,
) -> dict[str, float]:
    """Return the scores of probes fitted on `train` and read on `held_out`.

    `classifier` is `RIDGE` or a name that `probes.classifier` may have. The scores: `accuracy` (0..1), with
    a bias label `balanced_accuracy`, of many classes `top5_accuracy`, with clusters of the held-out images
    `unbiased_accuracy`, with a background colour `colour_mse` (squared 8-bit levels).
    """
    features = extract_features(objective, train.images, spec.view_size)
    unseen = extract_features(objective, held_out.images, spec.view_size)
    probe = _fit_classifier(features, train.labels, spec.classes, settings, classifier)
    scores = _label_scores(probe(unseen), held_out)
    if spec.has_colour and train.condition is not None and held_out.condition is not None:
        colour = fit_ridge(
            features, train.condition, penalty=settings.penalty, standardise=settings.standardise
        )
        scores["colour_mse"] = mean_squared_error(colour, unseen, held_out.condition)
    return scores


def classifier_scores(objective: Objective, held_out: LabelledImages, spec: DatasetSpec) -> dict[str, float]:
    """Return the scores of `probe_scores` but the colour's, of the method's own classifier."""
    return _label_scores(_by_chunks(objective.predict, held_out.images, spec.view_size), held_out)


def _by_chunks(compute: Callable[[Tensor], Tensor], images: Images, size: int) -> Tensor:
    return torch.cat([compute(whole_image(chunk, size)) for chunk in image_chunks(images, CHUNK)])


def _label_scores(outputs: Tensor, held_out: LabelledImages) -> dict[str, float]:
    predicted = outputs.argmax(dim=1)
    scores = {"accuracy": float((predicted == held_out.labels).double().mean())}
    if held_out.bias is not None:
        scores["balanced_accuracy"] = group_balanced_accuracy(predicted, held_out.labels, held_out.bias)
    if outputs.shape[1] >= TOP_FIVE_FROM:
        scores["top5_accuracy"] = top_accuracy(outputs, held_out.labels, 5)
    if held_out.groupings is not None:
        scores["unbiased_accuracy"] = unbiased_accuracy(predicted, held_out.labels, held_out.groupings)
    return scores


def _fit_classifier(
    features: Tensor, labels: Tensor, classes: int, settings: ProbeSettings, name: str
) -> Classifier:
    penalty, standardise = settings.penalty, settings.standardise
    if name == RIDGE:
        return fit_ridge(features, one_hot(labels, classes), penalty=penalty, standardise=standardise)
    if name == "logistic":
        steps = settings.max_steps
        return fit_logistic(
            features, labels, classes, penalty=penalty, max_steps=steps, standardise=standardise
        )
    # One seed for all, so that two encoders are scored by the same draws.
    generator = torch_generator("probe", name)
    if name != "knn":
        return fit_minibatch(features, labels, classes, probe_recipe(name), generator)
    if settings.neighbours is None or settings.temperature is None:
        return choose_knn(features, labels, classes, generator)
    k, t = settings.neighbours, settings.temperature
    return fit_knn(features, labels, classes, neighbours=k, temperature=t)
