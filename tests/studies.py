"""Write studies for tests: the rows that trials leave in a store, without any training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.store import (
    Location,
    ResultsStore,
    StudyRecord,
    StudySchema,
    TrialInfo,
    TrialWriter,
    open_location,
    save_study,
    study_names,
)

CREATED = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
SPACE: Mapping[str, Any] = {
    "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
    "sigma2": {"log": [1.0, 1e4], "default": 100.0, "when": {"kernel": ["rbf"]}},
    "optimizer.lr": {"uniform": [0.01, 0.3], "default": 0.1},
}
STUDY = "study-1"
"""The name of the small plan's study."""
METRICS = ("train.loss", "val.ridge_accuracy", "val.accuracy", "val.colour_mse")

Metrics = Mapping[str, float | None]


@dataclass(frozen=True)
class Run:
    """One run: a seed of a trial, or a final run.

    Attributes:
        trial: the trial's number; None for the run's place among those that are written together.
        seed: the seed.
        values: hyperparameters.
        curve: metrics by epoch; epoch 0 is the untrained encoder.
        status: how the run ended; a running one is left without an end.
        final: metrics at the end.
        rung: the last rung that the scheduler saw.
        error: why it failed.
        phase: search or final.
        config: hash of its experiment; None for one that only this trial has.
        epoch_seconds: wall-clock of an epoch: three quarters train (none in epoch 0), a quarter scores.
        attempt: how often the run had begun.
    """

    trial: int | None = None
    seed: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)
    curve: Mapping[int, Metrics] = field(default_factory=dict)
    status: str = "completed"
    final: Metrics = field(default_factory=dict)
    rung: int | None = None
    error: str | None = None
    phase: Literal["search", "final"] = "search"
    config: str | None = None
    epoch_seconds: float = 2.0
    attempt: int = 1


def scored(
    scores: Sequence[float] = (0.5, 0.6, 0.7),
    status: str = "completed",
    *,
    values: Mapping[str, Any] | None = None,
    colour: float | None = None,
    **fields: Any,
) -> Run:
    """Return a run with these scores by the rung metric from epoch 0 on.

    The study's metric is known at epoch 0 and, for a completed run, at the end. `colour` is the colour error
    at the end; before training it is 10.
    """
    curve: dict[int, Metrics] = {}
    for epoch, score in enumerate(scores):
        probed = epoch == 0 or (epoch == len(scores) - 1 and status == "completed")
        curve[epoch] = {"val.ridge_accuracy": score, "val.accuracy": score if probed else None}
    if scores and colour is not None:
        curve[0] = {**curve[0], "val.colour_mse": 10.0}
    last = scores[-1] if scores else math.nan
    final: dict[str, float | None] = {"val.ridge_accuracy": last}
    if status == "completed":
        final |= {"val.accuracy": last, "val.colour_mse": colour}
    given = {"kernel": "cosine", "optimizer.lr": 0.1} if values is None else values
    return Run(values=given, curve=curve, status=status, final=final, **fields)


def make_record(
    name: str = "demo",
    *,
    space: Mapping[str, Any] = SPACE,
    metrics: Sequence[str] = METRICS,
    search: Mapping[str, Any] | None = None,
    **fields: Any,
) -> StudyRecord:
    """Return the record of an invented search; `search` and `fields` change single entries."""
    settings = {
        "trials": 4,
        "sampler": "tpe",
        "scheduler": "asha",
        "metric": "val.accuracy",
        "rung_metric": "val.ridge_accuracy",
        "seed": 0,
        "concurrency": 2,
        "given": {"epochs": 2},
    }
    return _record(name, space, metrics, {**settings, **(search or {})}, fields)


def make_final_record(
    name: str = "demo-final", *, metrics: Sequence[str] = ("test.accuracy",), **fields: Any
) -> StudyRecord:
    """Return the record of final runs."""
    return _record(name, {}, metrics, {"metric": "test.accuracy", **fields.pop("search", {})}, fields)


def _record(
    name: str, space: Mapping[str, Any], metrics: Sequence[str], search: Mapping[str, Any], fields: Any
) -> StudyRecord:
    types = {path: _type(form["default"]) for path, form in space.items()}
    usual = {
        "method": "fair-cclk",
        "dataset": "colour-digits",
        "created": CREATED,
        "command": "contrasweep sweep fair-cclk --data colour-digits",
        "columns": StudySchema(hyperparameters=types, metrics=tuple(metrics)),
        "versions": {"contrasweep": "0.1.0", "torch": "2.9"},
        "git_revision": "0123abc",
        "host": "here",
    }
    content = {"name": name, "space": space, "search": search, **usual, **fields}
    what = {key: content[key] for key in ("method", "dataset")}
    return StudyRecord(**{**content, "experiment": {**what, **fields.get("experiment", {"epochs": 2})}})


def _type(default: object) -> Any:
    return {bool: "bool", str: "string", int: "int", float: "float"}[type(default)]


def write_run(location: Location, record: StudyRecord, run: Run, place: int = 0) -> None:
    """Write the rows of a run: it starts 10 s after the trial with the number before it, and takes 8 s."""
    trial = place if run.trial is None else run.trial
    started = record.created + timedelta(seconds=10 * trial)
    ended = started + timedelta(seconds=8)
    epochs = record.experiment.epochs
    config = f"c{trial}" if run.config is None else run.config
    now = iter([started, *[started] * len(run.curve), ended])
    writer = TrialWriter(
        location,
        record,
        TrialInfo(trial, run.seed, run.phase, config, run.values, epochs),
        attempt=run.attempt,
        clock=lambda: 0.0,
        now=lambda: next(now),
    )
    writer.start()
    seconds = run.epoch_seconds
    for epoch, metrics in run.curve.items():
        trained = 0.75 * seconds if epoch else 0.0
        writer.add_epoch(
            epoch, metrics, seconds=seconds, train_seconds=trained, evaluate_seconds=0.25 * seconds
        )
    writer.flush()
    if run.status != "running":
        writer.finish(run.status, run.final, rung=run.rung, error=run.error)  # type: ignore[arg-type]


class WrittenStudy:
    """A study in a results folder whose runs a test writes."""

    def __init__(self, results: str | Path | Location, record: StudyRecord) -> None:
        if not isinstance(results, Location):
            results = open_location(results, writable=True)
        self.location, self.record = results, record
        if record.name not in study_names(results):
            save_study(results, record)
        self.store = ResultsStore(results)

    def write(self, *runs: Run) -> None:
        """Write these runs; those without a trial's number get their place in this order."""
        for place, run in enumerate(runs):
            write_run(self.location, self.record, run, place)


def small_plan(results: Path, **options: Any) -> SweepPlan:
    """Return a plan of Fair-CCLK on small digits, two epochs a trial, with `options` of `plan_sweep`."""
    return plan_sweep("fair-cclk", "colour-digits", epochs=2, results=results, name=STUDY, **options)


class PlannedStudy(WrittenStudy):
    """A study with a real plan: values that a run is not given are the defaults of the space."""

    def __init__(self, plan: SweepPlan) -> None:
        super().__init__(plan.results, plan.record())
        self.plan = plan

    def write(self, *runs: Run) -> None:
        """Write these runs with all active values, each with the hash of its experiment."""
        super().write(*(self._complete(run) for run in runs))

    def _complete(self, run: Run) -> Run:
        values = self.plan.space.complete({**self.plan.space.defaults(), **run.values})
        return replace(run, values=values, config=self.plan.experiment_of(values).identity())
