"""Scores of an encoder on held-out data: of probes on its features, and of the method's own classifier.

Two probes are fitted on features of the training images. Exact ridge regression on part of them is cheap
enough for every epoch: a scheduler compares it. The one that the experiment names (logistic regression by
L-BFGS, a paper's minibatch recipe, nearest neighbours) is fitted on all of them and reported. A background
colour is regressed from the features too: the larger the error, the less of the colour the features keep. On
biased data, the mean accuracy over the groups of (class, bias) and the accuracy of the worst group are also
reported, because plain accuracy hides small groups. Where the test images are clustered, it is also averaged
over the groups of (class, cluster). Where the experiment asks for it, the held-out images are clustered
without labels, and the clusters matched with the classes.

The ranks of a run share the work of embedding images. The first one fits the probes, and its scores are used
on all ranks; only a probe that uses new views in every epoch is fitted by all ranks, because each of them
computes a part of the features.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from torch import Tensor

from contrasweep.data import (
    DatasetFacts,
    Images,
    LabelledImages,
    MultiView,
    RandomViews,
    torch_generator,
)
from contrasweep.models import (
    PROBE_RECIPES,
    choose_knn,
    choose_ridge,
    fit_knn,
    fit_logistic,
    fit_minibatch,
    group_balanced_accuracy,
    mean_squared_error,
    one_hot,
    probe_recipe,
    top_accuracy,
    unbiased_accuracy,
    worst_group_accuracy,
)
from contrasweep.models.probes.linear import require_samples
from contrasweep.models.probes.minibatch import FeaturesOfEpoch
from contrasweep.models.scores import macro_auc, multi_label_f1
from contrasweep.tuning.experiment import Experiment, ProbeSettings
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.methods.metrics import REPORT, scores_own_classifier
from contrasweep.tuning.objectives.batches import random_views
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import Prepared, PreparedData
from contrasweep.tuning.objectives.ranks import ONE, Ranks
from contrasweep.tuning.training.added_scores import added_scores
from contrasweep.tuning.training.checked_returns import refuse_unusable_scores
from contrasweep.tuning.training.clustered import clustering_scores
from contrasweep.tuning.training.embedding import embed_views, embed_whole, joined
from contrasweep.tuning.training.label_free import label_free_scores

RIDGE = "ridge"
"""The name of the fast probe of every epoch; the other names are those of `probes.classifier`."""

Classifier = Callable[[Tensor], Tensor]
"""Takes features `(N, D)`; returns the scores of the classes `(N, C)`."""


@dataclass(frozen=True)
class Known:
    """Labelled images, and an encoder's features `(N, D)` of them."""

    images: LabelledImages
    features: Tensor


@dataclass(frozen=True)
class Reading:
    """What a classifier says of held-out images: the `outputs` `(N, C)`, and their scores by name."""

    outputs: Tensor
    scores: dict[str, float]


def extract_features(
    objective: Objective, images: Images, size: int, centre: float = 1.0, ranks: Ranks = ONE
) -> Tensor:
    """Return the encoder's features `(N, D)` of whole `images` (uint8 `(N, C, H, W)`) at `size` pixels."""
    return embed_whole(objective.features, images, size, centre, ranks)


def view_features(
    objective: Objective, images: Images, views: RandomViews, epoch: int, ranks: Ranks = ONE
) -> Tensor:
    """Return the encoder's features `(N, D)` of the views of `images` that a probe sees in an epoch (from 0).

    The draws depend on the epoch alone: all encoders are compared on the same views.
    """
    draws = [torch_generator("probe views", epoch)]
    return embed_views(objective.features, images, views, draws, ranks)[0]


def probe_views(experiment: Experiment, size: int) -> RandomViews | None:
    """Return the views of `size` pixels that the reported probe trains on; None: on whole images."""
    probes = experiment.probes
    if probes.views == "whole":
        return None
    if probes.views == "training":
        return random_views(experiment.views, size)
    return RandomViews(size=size, min_crop=probes.min_crop or experiment.views.min_crop)


def embed_training_set(objective: Objective, data: Prepared, centre: float) -> Tensor:
    """Return `embed_images` of every training image, whole or its central share: `(N, D)`."""
    assert isinstance(data, PreparedData), "clusters are of images"
    return embed_whole(objective.embed_images, data.train.images, data.spec.view_size, centre, data.ranks)


def validation_scores(
    objective: Objective, data: Prepared, experiment: Experiment, *, full: bool
) -> dict[str, float]:
    """Return the scores on the validation split by metric name; nothing without a split.

    Always among them are those of the fast probe (`val.ridge_accuracy`), of the method's own classifier
    (`val.classifier_accuracy`), and `unfitted_scores` (`val.cluster_accuracy`, `val.rankme`). `full` adds the
    exact probe's (`val.accuracy`), and `report_scores`. All of `data.ranks`
    must call this together, and get the same.
    """
    held_out = data.validation
    if held_out is None:
        return {}
    scores = prefixed("val.ridge_", fitted_scores(objective, data, held_out, experiment, RIDGE))
    scores |= prefixed("val.", own_scores(objective, data, held_out, experiment))
    scores |= prefixed("val.", unfitted_scores(objective, data, held_out, experiment))
    if full:
        exact = fitted_scores(objective, data, held_out, experiment, experiment.probes.classifier)
        scores |= prefixed("val.", exact) | report_scores(objective, data, experiment)
    return scores


def report_scores(objective: Objective, data: Prepared, experiment: Experiment) -> dict[str, float]:
    """Return the scores on the half of the split that no choice depends on; nothing without halves."""
    if data.report is None:
        return {}
    found = fitted_scores(objective, data, data.report, experiment, experiment.probes.classifier)
    found |= own_scores(objective, data, data.report, experiment)
    found |= unfitted_scores(objective, data, data.report, experiment)
    return prefixed(REPORT, found)


def scores_on_test(
    trained: Objective, untrained: Objective, data: Prepared, test: Any, experiment: Experiment
) -> dict[str, float]:
    """Return the scores on the test data by metric name.

    The untrained encoder is scored by a probe (`test.untrained_accuracy`); where the dataset has none, by the
    method's own classifier.
    """
    exact, control = (
        fitted_scores(objective, data, test, experiment, experiment.probes.classifier, test=True)
        for objective in (trained, untrained)
    )
    return {
        **prefixed("test.", exact),
        **prefixed("test.", own_scores(trained, data, test, experiment, test=True)),
        **prefixed("test.", unfitted_scores(trained, data, test, experiment)),
        **prefixed("test.untrained_", control or own_scores(untrained, data, test, experiment, test=True)),
        **prefixed("test.untrained_", unfitted_scores(untrained, data, test, experiment)),
    }


def prefixed(prefix: str, scores: Mapping[str, float]) -> dict[str, float]:
    """Return the scores under the names of metrics."""
    return {prefix + name: score for name, score in scores.items()}


def fitted_scores(
    objective: Objective,
    data: Prepared,
    held_out: Any,
    experiment: Experiment,
    classifier: str,
    *,
    test: bool = False,
) -> dict[str, float]:
    """Return `probe_scores` of a probe fitted on the training data; nothing where none is fitted."""
    train = data.probe_rows if classifier == RIDGE else data.probed
    if train is None:
        return {}
    views = None if classifier == RIDGE else probe_views(experiment, data.spec.view_size)
    settings = experiment.probes
    return probe_scores(
        objective, train, held_out, data.spec, settings, classifier, views=views, test=test, ranks=data.ranks
    )


def own_scores(
    objective: Objective, data: Prepared, held_out: Any, experiment: Experiment, *, test: bool = False
) -> dict[str, float]:
    """Return the scores of the method's own classifier on held-out data; nothing where it is not scored."""
    if not scores_own_classifier(METHODS[experiment.method], data.spec):
        return {}
    reading = read_own_classifier(objective, data, held_out, experiment.probes, test=test)
    return prefixed(data.spec.classifier_prefix, reading.scores)


def read_own_classifier(
    objective: Objective, data: Prepared, held_out: Any, settings: ProbeSettings, *, test: bool = False
) -> Reading:
    """Return what the method's own classifier says of held-out data, with the scores of the dataset.

    It sees the same part of an image as the probes.
    """
    ranks, names = data.ranks, data.spec.measures(test=test)
    if isinstance(data, PreparedData):
        size, centre = data.spec.view_size, settings.centre
        outputs = embed_whole(objective.predict, held_out.images, size, centre, ranks)
    else:
        outputs = joined(objective.predict, data.inputs(held_out))
    refuse_unusable_scores(objective, outputs, len(held_out), data.spec.classes)
    return Reading(outputs, ranks.once(lambda: label_scores(names, outputs, held_out, settings.threshold)))


def unfitted_scores(
    objective: Objective, data: Prepared, held_out: Any, experiment: Experiment
) -> dict[str, float]:
    """Return the scores of images that fit no classifier; nothing of other data, whose views come with it.

    They are those of a clustering, those that need no label, and those of plug-ins, where asked for.
    """
    if not isinstance(data, PreparedData):
        return {}
    return {
        **clustering_scores(objective, data, held_out, experiment),
        **label_free_scores(objective, data, held_out, experiment),
        **added_scores(objective, data, held_out, experiment),
    }


def probe_scores(
    objective: Objective,
    train: LabelledImages,
    held_out: LabelledImages,
    spec: DatasetFacts,
    settings: ProbeSettings,
    classifier: str,
    *,
    views: RandomViews | None = None,
    test: bool = False,
    ranks: Ranks = ONE,
) -> dict[str, float]:
    """Return the scores of probes fitted on `train` and read on `held_out`.

    `classifier` is `RIDGE` or a name that `probes.classifier` may have. Where `views` are given, a classifier
    that is trained in epochs sees others in each; `held_out` is always whole, or its centre. The scores are
    those that the dataset has, `spec.measures(test=test)`, and with a background colour `colour_mse` (squared
    8-bit levels).
    """
    known, unseen = (
        Known(part, extract_features(objective, part.images, spec.view_size, settings.centre, ranks))
        for part in (train, held_out)
    )

    def scores(seen: FeaturesOfEpoch | None = None) -> dict[str, float]:
        return read_probe(known, unseen, spec, settings, classifier, seen=seen, test=test).scores

    if views is None:
        return ranks.once(scores)
    found = scores(partial(view_features, objective, train.images, views, ranks=ranks))
    return ranks.once(lambda: found)


def read_probe(
    train: Known,
    held_out: Known,
    spec: DatasetFacts,
    settings: ProbeSettings,
    classifier: str,
    *,
    seen: FeaturesOfEpoch | None = None,
    test: bool = False,
) -> Reading:
    """Return what a probe that is fitted on the features of `train` reads in those of `held_out`.

    A classifier that is trained in epochs learns from the features that `seen` gives for each of them, where
    it is given. The other arguments, and the scores, are those of `probe_scores`.
    """
    learnt: Tensor | FeaturesOfEpoch = train.features if seen is None else seen
    probe = _fit_classifier(learnt, train.images.labels, spec.classes, settings, classifier)
    # The largest of some outputs that are NaN is the first: they would score as that class.
    require_samples(held_out.features, len(held_out.features))
    outputs = probe(held_out.features)
    scores = label_scores(spec.measures(test=test), outputs, held_out.images, settings.threshold)
    colours, of_held_out = train.images.condition, held_out.images.condition
    if spec.has_colour and colours is not None and of_held_out is not None:
        colour = choose_ridge(
            train.features, colours, least=settings.penalty, standardise=settings.standardise
        )
        scores["colour_mse"] = mean_squared_error(colour, held_out.features, of_held_out)
    return Reading(outputs, scores)


def label_scores(
    names: Iterable[str], outputs: Tensor, held_out: LabelledImages | MultiView, threshold: float
) -> dict[str, float]:
    """Return the named scores of a classifier's `outputs` `(N, C)` on the objects that they belong to.

    Of several labels an object (columns of 0 and 1) those above `threshold` are predicted, of one label the
    most probable.
    """
    return {name: MEASURES[name](outputs, held_out, threshold) for name in names}


def _weighted_f1(outputs: Tensor, held_out: Any, threshold: float) -> float:
    if held_out.labels.dim() == 1:  # the most probable label is predicted, whatever its probability
        outputs, threshold = one_hot(outputs.argmax(dim=1), outputs.shape[1]), 0.5
    return multi_label_f1(outputs, _columns(held_out.labels, outputs), threshold, "weighted")


def _columns(labels: Tensor, outputs: Tensor) -> Tensor:
    """Return `labels` as columns of 0 and 1, as sets of labels have them from the start."""
    return labels if labels.dim() == 2 else one_hot(labels, outputs.shape[1])


MEASURES: Mapping[str, Callable[[Tensor, Any, float], float]] = MappingProxyType(
    {
        "accuracy": lambda outputs, seen, _: float((outputs.argmax(1) == seen.labels).double().mean()),
        "balanced_accuracy": lambda outputs, seen, _: group_balanced_accuracy(
            outputs.argmax(1), seen.labels, seen.bias
        ),
        "worst_group_accuracy": lambda outputs, seen, _: worst_group_accuracy(
            outputs.argmax(1), seen.labels, seen.bias
        ),
        "top5_accuracy": lambda outputs, seen, _: top_accuracy(outputs, seen.labels, 5),
        "unbiased_accuracy": lambda outputs, seen, _: unbiased_accuracy(
            outputs.argmax(1), seen.labels, seen.groupings
        ),
        "f1": _weighted_f1,
        "auc": lambda outputs, seen, _: macro_auc(outputs, _columns(seen.labels, outputs)).value,
    }
)
"""The scores that a dataset may name, of a classifier's outputs, the held-out data and the threshold."""


def _fit_classifier(
    features: Tensor | FeaturesOfEpoch, labels: Tensor, classes: int, settings: ProbeSettings, name: str
) -> Classifier:
    penalty, standardise = settings.penalty, settings.standardise
    if name in PROBE_RECIPES:
        # The seed is the same for all encoders: they are compared on the same draws.
        return fit_minibatch(features, labels, classes, probe_recipe(name), torch_generator("probe", name))
    assert isinstance(features, Tensor), "checked by ProbeSettings"
    if name == RIDGE:
        return choose_ridge(features, one_hot(labels, classes), least=penalty, standardise=standardise)
    if name == "logistic":
        steps = settings.max_steps
        return fit_logistic(
            features, labels, classes, penalty=penalty, max_steps=steps, standardise=standardise
        )
    if settings.neighbours is None or settings.temperature is None:
        return choose_knn(features, labels, classes, torch_generator("probe", name))
    k, t = settings.neighbours, settings.temperature
    return fit_knn(features, labels, classes, neighbours=k, temperature=t)
