"""Scores of one encoder on one dataset: of each probe, for each number of training images."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from contrasweep.data import normal_name
from contrasweep.tuning.errors import told_to_user
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.training.clustered import matched_clusters
from contrasweep.tuning.training.compute import computing
from contrasweep.tuning.training.evaluation import (
    Known,
    Reading,
    extract_features,
    probe_views,
    read_probe,
    view_features,
)
from contrasweep.tuning.transfer.encoders import FrozenEncoder, GivenEncoder
from contrasweep.tuning.transfer.few_shot import shot_rows
from contrasweep.tuning.transfer.fine_tune import fine_tune
from contrasweep.tuning.transfer.plan import FINE_TUNED, TransferPlan
from contrasweep.tuning.transfer.tasks import Task

STARTS = 10
"""Starts of k-means, unless the encoder's experiment says how many."""


@dataclass(frozen=True)
class Measurement:
    """The test scores of one probe.

    Attributes:
        encoder: the name of the encoder.
        seed: the seed of its run.
        trained: whether it was trained; else the same network before training.
        dataset: where it is scored.
        probe: what was fitted on its features, or `FINE_TUNED`.
        shots: training images of each class; None for all.
        draw: the number of the draw of few images; None where all images are there.
        scores: test scores by name, as final runs report them.
        confusion: int64 `(C, C)`: how many test images of each class (row) are taken for which (column).
    """

    encoder: str
    seed: int
    trained: bool
    dataset: str
    probe: str
    shots: int | None
    draw: int | None
    scores: Mapping[str, float]
    confusion: Tensor = field(repr=False, compare=False)


@dataclass(frozen=True)
class Clustering:
    """ACC and NMI of k-means on the features of the test images, one cluster a class."""

    encoder: str
    seed: int
    trained: bool
    dataset: str
    scores: Mapping[str, float]


@dataclass(frozen=True)
class Measured:
    """What was found of one encoder on one dataset; no `clustering` where no detail is asked for."""

    measurements: list[Measurement]
    clustering: Clustering | None


def measure(encoder: GivenEncoder, task: Task, plan: TransferPlan, *, trained: bool) -> Measured:
    """Return the scores of an encoder on a dataset; the images are shown to it as it takes them.

    Raises:
        InputError: its features are not finite, or a probe cannot be fitted on so few images.
        TrainingDiverged: fine-tuning gave NaN or Inf.
    """
    with computing(encoder.experiment.compute, task.data.device):
        return _measured(encoder, task.at_size(encoder.takes.size), plan, trained=trained)


def _measured(encoder: GivenEncoder, task: Task, plan: TransferPlan, *, trained: bool) -> Measured:
    frozen = _Frozen.of(encoder, task, trained=trained)
    found = []
    for shots in plan.shots:
        for draw, rows in _draws(task, shots, plan.draws):
            readings = {probe: frozen.read(probe, rows) for probe in plan.probes}
            if plan.fine_tuning is not None:
                few = task.with_rows(rows)
                readings[FINE_TUNED] = fine_tune(encoder, few, plan.fine_tuning, draw, trained=trained)
            found += [
                Measurement(
                    encoder.name,
                    encoder.seed,
                    trained,
                    task.name,
                    probe,
                    shots,
                    draw,
                    reading.scores,
                    _confusion(reading.outputs, task),
                )
                for probe, reading in readings.items()
            ]
    return Measured(found, frozen.clustering(trained) if plan.detail else None)


def with_probe(experiment: Experiment, probe: str) -> Experiment:
    """Return the experiment with another reported probe, whose own settings are their defaults."""
    own = experiment.probes
    if probe == own.classifier:
        return experiment
    changed = {"classifier": probe, "neighbours": None, "temperature": None}
    if probe in ("logistic", "knn"):
        changed["views"] = "whole"
    return experiment.with_values({f"probes.{name}": value for name, value in changed.items()})


@dataclass(frozen=True)
class _Frozen:
    """An encoder that does not learn, and its features of all images of a task."""

    encoder: GivenEncoder
    objective: FrozenEncoder
    task: Task
    train: Known
    test: Known

    @classmethod
    def of(cls, encoder: GivenEncoder, task: Task, *, trained: bool) -> "_Frozen":
        spec, centre = task.data.spec, encoder.experiment.probes.centre
        objective = encoder.frozen(spec.channels, task.data.device, trained=trained)
        train, test = (
            Known(part, extract_features(objective, part.images, spec.view_size, centre))
            for part in (task.train, task.test)
        )
        return cls(encoder, objective, task, train, test)

    def read(self, probe: str, rows: Tensor | None) -> Reading:
        """Return what a probe reads that is fitted on some rows of the training images, None: on all."""
        experiment, spec, known = with_probe(self.encoder.experiment, probe), self.task.data.spec, self.train
        if rows is not None:
            known = Known(known.images.subset(rows), known.features[rows])
        views = probe_views(experiment, spec.view_size)
        seen = None if views is None else partial(view_features, self.objective, known.images.images, views)
        with told_to_user(f"{self.encoder.place}: probe {probe} on {self.task.name}: "):
            return read_probe(known, self.test, spec, experiment.probes, probe, seen=seen, test=True)

    def clustering(self, trained: bool) -> Clustering:
        """Return the scores of clusters of the test images, found without labels."""
        encoder, name = self.encoder, self.task.name
        starts = encoder.experiment.probes.kmeans_starts or STARTS
        with told_to_user(f"{encoder.place} on {name}: "):
            labels, classes = self.task.test.labels, self.task.data.spec.classes
            scores = matched_clusters(self.test.features, labels, classes, starts)
        return Clustering(encoder.name, encoder.seed, trained, name, scores)


def _draws(task: Task, shots: int | None, draws: int) -> Iterator[tuple[int | None, Tensor | None]]:
    """Yield the number and the training rows of each draw; all images are there once, without a number."""
    if shots is None:
        yield None, None
        return
    labels, classes = task.train.labels, task.data.spec.classes
    for draw in range(draws):
        yield draw, shot_rows(labels, classes, shots, normal_name(task.name), draw)


def _confusion(outputs: Tensor, task: Task) -> Tensor:
    """Return the test images of each class (row) by the predicted class (column): int64 `(C, C)`."""
    classes = task.data.spec.classes
    cells = task.test.labels * classes + outputs.argmax(dim=1)
    return torch.bincount(cells, minlength=classes * classes).view(classes, classes).cpu()
