"""The metrics that runs record, known before a study starts, and which of them a search can select by."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from contrasweep.data.facts import DatasetFacts
from contrasweep.plugin_packages import plugin_names
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.experiment import ProbeSettings
from contrasweep.tuning.experiment.conditions import Condition, parse_condition
from contrasweep.tuning.methods.declaration import ALWAYS_REPORTED, Declaration

VALIDATION = "val."
CHEAP = "val.ridge_"
"""Scores of the fast probe, which is fitted after every epoch; the exact probe is fitted at the end only."""

REPORT = "val.report_"
"""Scores on the half of the validation split that no choice depends on, see `validation.halves`."""

ALWAYS = tuple(f"train.{name}" for name in ALWAYS_REPORTED)


@dataclass(frozen=True)
class Measure:
    """A score of an encoder, whatever the images that it is taken on.

    Attributes:
        name: without the split: `alignment` of `val.alignment`.
        summary: what it measures, in a clause; `contrasweep metrics` and the documents take it from here.
        minimised: whether it is better when it is smaller.
        of_views: whether it compares random views of an image, and so depends on what makes views differ.
        bounds: the smallest and the largest value that it can have.
    """

    name: str
    summary: str
    minimised: bool = False
    of_views: bool = False
    bounds: tuple[float, float] = (-math.inf, math.inf)


FRACTION = (0.0, 1.0)
FROM_0 = (0.0, math.inf)

LABEL_MEASURES = (
    Measure("accuracy", "share of the images whose class is predicted", bounds=FRACTION),
    Measure(
        "balanced_accuracy",
        "accuracy within each group of (class, bias), averaged over the groups",
        bounds=FRACTION,
    ),
    Measure("worst_group_accuracy", "lowest accuracy of a group of (class, bias)", bounds=FRACTION),
    Measure(
        "top5_accuracy",
        "share of the images whose class is among the five most probable ones",
        bounds=FRACTION,
    ),
    Measure(
        "unbiased_accuracy",
        "accuracy within each group of (class, texture), averaged over groups and over clusterings",
        bounds=FRACTION,
    ),
    Measure("f1", "F1 of the predicted labels, weighted by how often each is true", bounds=FRACTION),
    Measure("auc", "area under the ROC curve of a label, averaged over the labels", bounds=FRACTION),
)
"""Scores of predicted labels; which of them a dataset has, its `measures` say."""

CLUSTERING_MEASURES = (
    Measure(
        "cluster_accuracy",
        "ACC: share of the images whose k-means cluster matches their class, in the best one-to-one matching",
        bounds=FRACTION,
    ),
    Measure(
        "cluster_nmi",
        "NMI: mutual information of k-means clusters and classes, divided by the mean of both entropies",
        bounds=FRACTION,
    ),
)
"""ACC and NMI of a clustering of the held-out images, where `probes.kmeans_starts` asks for one."""

LABEL_FREE_MEASURES = (
    Measure(
        "rankme",
        "effective rank of the features of whole images: exp of the entropy of their singular values",
        bounds=FROM_0,
    ),
    Measure(
        "lidar",
        "effective rank of the differences between images, relative to the differences between views of one "
        "image",
        of_views=True,
        bounds=FROM_0,
    ),
    Measure(
        "alignment",
        "mean squared distance of two views of an image, on the unit sphere",
        minimised=True,
        of_views=True,
        bounds=FROM_0,
    ),
    Measure(
        "uniformity",
        "log of the mean Gaussian potential of all pairs of whole images, on the unit sphere",
        minimised=True,
    ),
    Measure(
        "feature_std",
        "standard deviation of the normalised features over images, times the square root of the number of "
        "features: 1 is spread out, 0 is collapsed",
        bounds=FROM_0,
    ),
)
"""The scores of features that need no label, where `label_free_views` says that they are computed."""

COLOUR = Measure(
    "colour_mse",
    "mean squared error of the background colour predicted from the features, in squared 8-bit levels: the "
    "larger, the less colour they keep",
    bounds=FROM_0,
)

MEASURES = {one.name: one for one in (*LABEL_MEASURES, COLOUR, *CLUSTERING_MEASURES, *LABEL_FREE_MEASURES)}
"""All scores of contrasweep's own by their names, without the split and the probe."""

CLUSTERING = tuple(one.name for one in CLUSTERING_MEASURES)
LABEL_FREE = tuple(one.name for one in LABEL_FREE_MEASURES)
OF_VIEWS = frozenset(one.name for one in LABEL_FREE_MEASURES if one.of_views)

NEED_LABELS = (*(one.name for one in LABEL_MEASURES), COLOUR.name, *CLUSTERING)
"""Measures that only images with labels have; the colour error is read by the side of an accuracy."""

USUAL_LABEL_FREE_VIEWS = 4
"""The views of an image that label-free scores compare where the number is not given."""

USUAL_PROBES = ProbeSettings()


def is_minimised(metric: str) -> bool:
    """Return whether a metric (`val.alignment`, `test.untrained_alignment`) is better when it is smaller."""
    found = _measure_of(metric)
    return found is not None and found.minimised


def is_fraction(metric: str) -> bool:
    """Return whether a metric (`val.ridge_accuracy`, `test.classifier_f1`) lies between 0 and 1."""
    return bounds_of(metric) == FRACTION


def bounds_of(metric: str) -> tuple[float, float]:
    """Return the smallest and the largest value that a metric can have; infinite ones for a plug-in's.

    What a plug-in reports of the training (`train.accuracy`) may be in per cent.
    """
    found = None if metric.startswith("train.") else _measure_of(metric)
    return (-math.inf, math.inf) if found is None else found.bounds


def condition_on(text: str, metrics: Iterable[str], option: str = "--where") -> Condition:
    """Return the condition that `text` states on one of `metrics`, as users write it after `option`.

    Raises:
        InputError: it cannot be read, names another metric (with the nearest), or bounds a fraction by a
            number that is none.
    """
    found = parse_condition(text, metrics, option)
    if is_fraction(found.metric) and not 0 <= found.bound <= 1:
        raise InputError(
            f"{option} {found}: {found.metric} lies between 0 and 1; allowed: a bound between them"
            + (f", such as {found.bound / 100:g}" if 1 < found.bound <= 100 else "")
        )
    return found


def _measure_of(metric: str) -> Measure | None:
    """Return what a metric measures, whatever the split, the probe and the encoder; None of a plug-in's."""
    name = metric.rpartition(".")[2]
    for prefix in ("untrained_", "report_", "ridge_", "classifier_"):
        name = name.removeprefix(prefix)
    return MEASURES.get(name)


def search_metrics(
    method: Declaration, spec: DatasetFacts, probes: ProbeSettings = USUAL_PROBES, *, halves: bool = False
) -> tuple[str, ...]:
    """Return the metrics of a search trial: training, and scores on the validation split or its `halves`."""
    reported = [report_form(name) for name in goals(method, spec, probes)] if halves else []
    return (
        *_training(method),
        *_probed(CHEAP, spec),
        *_classified("val.", method, spec),
        *_clustered("val.", probes),
        *_probed("val.", spec),
        *_label_free("val.", spec, probes),
        *_added("val.", probes),
        *reported,
    )


def final_metrics(
    method: Declaration, spec: DatasetFacts, probes: ProbeSettings = USUAL_PROBES
) -> tuple[str, ...]:
    """Return the metrics of a final run: training, and test scores of the trained and untrained encoder.

    The untrained encoder is scored by a probe; where the dataset has none, by the method's own classifier.
    """
    return (
        *_training(method),
        *_probed("test.", spec),
        *_classified("test.", method, spec),
        *_clustered("test.", probes),
        *(_probed("test.untrained_", spec) or _classified("test.untrained_", method, spec)),
        *_clustered("test.untrained_", probes),
        *_label_free("test.", spec, probes),
        *_label_free("test.untrained_", spec, probes),
        *_added("test.", probes),
        *_added("test.untrained_", probes),
    )


def goals(method: Declaration, spec: DatasetFacts, probes: ProbeSettings = USUAL_PROBES) -> dict[str, str]:
    """Return the metrics that a search can select by, each with its form that is known after every epoch.

    Which of them are better when they are smaller, `is_minimised` says.
    """
    probed = zip(_probed("val.", spec), _probed(CHEAP, spec), strict=True)
    known_at_once = (
        *_classified("val.", method, spec),
        *_clustered("val.", probes),
        *_label_free("val.", spec, probes),
        *_added("val.", probes),
    )
    return {**dict(probed), **{name: name for name in known_at_once}}


def cheap_form(metric: str, reported: Collection[str]) -> str:
    """Return the form of a metric that is known after every epoch, of those that a search has `reported`."""
    cheap = CHEAP + metric.removeprefix(VALIDATION)
    return cheap if metric.startswith(VALIDATION) and cheap in reported else metric


def tracked_metrics(epoch: int, metrics: Mapping[str, float]) -> dict[str, float]:
    """Return the metrics after an epoch under the names that they have in TensorBoard and other trackers.

    Before training, a score of the full probe is `val.untrained_...`. Trackers list the last value of a
    metric, and a stopped trial has no later one: it would be listed with the score of the untrained encoder.
    """
    if epoch > 0:
        return dict(metrics)
    probed = {name for name in metrics if cheap_form(name, metrics) != name}
    return {
        f"{VALIDATION}untrained_{name.removeprefix(VALIDATION)}" if name in probed else name: score
        for name, score in metrics.items()
    }


def is_cheap(metric: str) -> bool:
    """Return whether a metric is the cheap form of another."""
    return metric.startswith(CHEAP)


def report_form(metric: str) -> str:
    """Return the form of a search's metric on the half of the split that no choice depends on."""
    return REPORT + metric.removeprefix(VALIDATION)


def default_goal(method: Declaration, spec: DatasetFacts) -> str:
    """Return what decides unless the user says otherwise: the same for every method on a dataset."""
    return VALIDATION + spec.headline


def chosen_goals(
    given: str | None, method: Declaration, spec: DatasetFacts, probes: ProbeSettings = USUAL_PROBES
) -> tuple[str, ...]:
    """Return the metrics named in `given` (commas between them, `val.` may be left out), or the default one.

    Raises:
        InputError: a metric that this method is not scored on (with the nearest), or one named twice.
    """
    if given is None:
        return (default_goal(method, spec),)
    chosen = tuple(full_name(name.strip(), method, spec, probes) for name in given.split(","))
    if len(set(chosen)) < len(chosen):
        raise InputError(f"metric: given {given}; allowed: each once")
    return chosen


def full_name(
    given: str, method: Declaration, spec: DatasetFacts, probes: ProbeSettings = USUAL_PROBES
) -> str:
    """Return the name of a goal as the store spells it.

    Raises:
        InputError: this method is not scored on it here (with the nearest name).
    """
    known = goals(method, spec, probes)
    for name in (given, VALIDATION + given):
        if name in known:
            return name
    if not spec.has_labels and (given in NEED_LABELS or given.removeprefix(VALIDATION) in NEED_LABELS):
        raise InputError(
            f"metric: given {given}, which needs labels, and {spec.name} has none; "
            f"allowed: {', '.join(known)}"
        )
    error = unknown_name("metric", given, [*known, *plugin_names("metric")])
    raise InputError(
        f"{error} These are the metrics of {method.name} on {spec.name}; `contrasweep metrics` describes all."
    )


def scores_own_classifier(method: Declaration, spec: DatasetFacts) -> bool:
    """Return whether the method's own classifier is scored, beside the probe or in its place."""
    return spec.has_labels and (method.classifies or not spec.probed)


def label_free_views(spec: DatasetFacts, probes: ProbeSettings) -> int:
    """Return how many views of an image the label-free scores compare; 0: these scores are not computed.

    Images without labels have no other scores, so they always have these.
    """
    return probes.label_free_views or (0 if spec.has_labels else USUAL_LABEL_FREE_VIEWS)


def implied_settings(metrics: Iterable[str | None], asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings without which the named metrics (commas between them) are not computed.

    `asked` are the user's own settings: metrics of plug-ins that they name are kept.
    """
    told = [name.strip().removeprefix(VALIDATION) for one in metrics if one for name in one.split(",")]
    implied: dict[str, Any] = {}
    if not set(told).isdisjoint(LABEL_FREE):
        implied["probes.label_free_views"] = asked.get("probes.label_free_views", USUAL_LABEL_FREE_VIEWS)
    others = [name for name in told if name not in MEASURES]
    # To find the names of plug-ins, Python reads a file of every installed distribution.
    added = plugin_names("metric") if others else []
    named = [name for name in others if name in added]
    already = asked.get("probes.metrics", ())
    if named and isinstance(already, list | tuple):
        implied["probes.metrics"] = list(dict.fromkeys([*already, *named]))
    return implied


def _training(method: Declaration) -> tuple[str, ...]:
    return (*ALWAYS, *(f"train.{name}" for name in method.train_metrics))


def _probed(prefix: str, spec: DatasetFacts) -> tuple[str, ...]:
    if not spec.probed:
        return ()
    colour = (COLOUR.name,) if spec.has_colour else ()
    measures = spec.measures(test=prefix.startswith("test."))
    return tuple(prefix + name for name in (*measures, *colour))


def _classified(prefix: str, method: Declaration, spec: DatasetFacts) -> tuple[str, ...]:
    if not scores_own_classifier(method, spec):
        return ()
    measures = spec.measures(test=prefix.startswith("test."))
    return tuple(prefix + spec.classifier_prefix + name for name in measures)


def _clustered(prefix: str, probes: ProbeSettings) -> tuple[str, ...]:
    return tuple(prefix + name for name in CLUSTERING) if probes.kmeans_starts else ()


def _label_free(prefix: str, spec: DatasetFacts, probes: ProbeSettings) -> tuple[str, ...]:
    return tuple(prefix + name for name in LABEL_FREE) if label_free_views(spec, probes) else ()


def _added(prefix: str, probes: ProbeSettings) -> tuple[str, ...]:
    return tuple(prefix + name for name in probes.metrics)
