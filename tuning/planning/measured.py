"""Which metrics there are, and when each is measured. Only plug-ins import torch here."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from contrasweep.data.facts import DatasetFacts, DatasetSpec
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_METHODS
from contrasweep.tuning.experiment import ProbeSettings
from contrasweep.tuning.methods.added_metrics import ADDED_METRICS, Metric
from contrasweep.tuning.methods.declaration import Declaration
from contrasweep.tuning.methods.metrics import (
    CLUSTERING,
    LABEL_FREE,
    MEASURES,
    USUAL_LABEL_FREE_VIEWS,
    Measure,
    final_metrics,
    goals,
    is_minimised,
)
from contrasweep.tuning.planning.needs import lacking, metric_lacks


@dataclass(frozen=True)
class Measured:
    """A metric, and the names under which runs record it.

    Attributes:
        name: without the split and the probe: `accuracy` of `val.ridge_accuracy`.
        summary: what it measures, in a clause.
        minimised: whether it is better when it is smaller.
        every_epoch: its names on the validation split after every epoch.
        at_ends: its name there that is known only before training and at the end, of images.
        final: its names on the test split, in final runs.
        setting: the setting without which it is not computed; "" where it always is.
        implied: whether a sweep sets this by itself if its `--metric` or `--keep` names the metric.
    """

    name: str
    summary: str
    minimised: bool
    every_epoch: tuple[str, ...]
    at_ends: tuple[str, ...]
    final: tuple[str, ...]
    setting: str
    implied: bool


def measured_metrics(data: DatasetFacts | None = None) -> list[Measured]:
    """Return the metrics that there are on a dataset, or on any; those of plug-ins come last."""
    every = _declared() if data is None else [data]
    pairs = [(method, facts) for facts in every for method in _of_each_kind(facts)]
    forms = [form for pair in pairs for form in goals(*pair, _all_probes(pair[1])).items()]
    tested = [name for pair in pairs for name in final_metrics(*pair, _all_probes(pair[1]))]
    usual = {name for pair in pairs for name in final_metrics(*pair)}
    described: list[Measure | Metric] = [*MEASURES.values(), *ADDED_METRICS.values()]
    found = []
    for one in described:
        ends = _named(one.name, "val.", (name for name, form in forms if form != name))
        final = _named(one.name, "test.", tested)
        after = [form for _, form in forms if form not in ends]
        setting = "" if usual.intersection(final) else _setting(one.name)
        found.append(
            Measured(
                name=one.name,
                summary=one.summary,
                minimised=is_minimised(one.name),
                every_epoch=_named(one.name, "val.", after),
                at_ends=ends,
                final=final,
                setting=setting,
                implied=bool(setting) and one.name not in CLUSTERING,
            )
        )
    return [one for one in found if one.final]


def _declared() -> list[DatasetFacts]:
    """Return the facts of all datasets that are known without files, each with all that options add."""
    known = [one.facts for one in DECLARED_DATASETS.values() if one.facts is not None]
    return [replace(one, groupings=1) if isinstance(one, DatasetSpec) else one for one in known]


def _of_each_kind(data: DatasetFacts) -> Iterable[Declaration]:
    """Return a method with a classifier and one without, of those that run on a dataset."""
    running = [method for method in DECLARED_METHODS.values() if not lacking(method, data)]
    return {method.classifies: method for method in running}.values()


def _all_probes(data: DatasetFacts) -> ProbeSettings:
    """Return the settings with which every metric that a dataset may have is computed."""
    images = "images" in data.offers
    return ProbeSettings(
        kmeans_starts=int(data.probed),
        label_free_views=USUAL_LABEL_FREE_VIEWS if images else 0,
        metrics=tuple(one.name for one in ADDED_METRICS.values() if not metric_lacks(one, data)),
    )


def _named(name: str, split: str, recorded: Iterable[str]) -> tuple[str, ...]:
    """Return those of the recorded metrics that are of this measure, on this split, of a trained encoder."""
    forms = {split + of + name for of in ("", "ridge_", "classifier_")}
    return tuple(dict.fromkeys(one for one in recorded if one in forms))


def _setting(name: str) -> str:
    if name in CLUSTERING:
        return "probes.kmeans_starts"
    return "probes.label_free_views" if name in LABEL_FREE else "probes.metrics"
