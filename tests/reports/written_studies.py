"""Studies that the tests write themselves: the store is all that a report reads."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from contrasweep.tuning.store import (
    Location,
    StudyRecord,
    StudySchema,
    TrialInfo,
    TrialWriter,
)

CREATED = datetime(2026, 1, 2, 12, 0, tzinfo=UTC)
SPACE = {
    "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
    "sigma2": {"log": [1.0, 1e4], "default": 100.0, "when": {"kernel": ["rbf"]}},
    "optimizer.lr": {"uniform": [0.01, 0.3], "default": 0.1},
}
CATEGORICAL = {
    "kernel": {"choice": ["rbf", "cosine", "linear"], "default": "rbf"},
    "flip": {"choice": [True, False], "default": True},
}
METRICS = ("train.loss", "val.ridge_accuracy", "val.accuracy", "val.colour_mse")


@dataclass
class Written:
    """One trial to write: its scores from epoch 0 on; the last is also the final one if it completed."""

    scores: Sequence[float] = (0.5, 0.6, 0.7)
    status: str = "completed"
    values: Mapping[str, Any] = field(default_factory=lambda: {"kernel": "cosine", "optimizer.lr": 0.1})
    seed: int = 0
    trial: int | None = None
    colour: float | None = None
    error: str | None = None


def make_record(name: str, trials: int, **changes: Any) -> StudyRecord:
    space = changes.get("space", SPACE)
    fields: dict[str, Any] = {
        "name": name,
        "created": CREATED,
        "command": "contrasweep sweep fair-cclk --data colour-digits",
        "method": "fair-cclk",
        "dataset": "colour-digits",
        "experiment": {"epochs": 2},
        "space": space,
        "search": {
            "trials": trials,
            "sampler": "tpe",
            "scheduler": "asha",
            "metric": "val.accuracy",
            "rung_metric": "val.ridge_accuracy",
            "seed": 0,
            "concurrency": 2,
            "given": {"epochs": 2},
        },
        "columns": StudySchema(
            hyperparameters={path: _type(form["default"]) for path, form in space.items()},
            metrics=changes.pop("metrics", METRICS),
        ),
        "versions": {"contrasweep": "0.1.0", "torch": "2.9"},
        "git_revision": "0123abc",
        "host": "here",
    }
    return StudyRecord(**{**fields, **changes})


def _type(default: object) -> str:
    return {bool: "bool", str: "string", float: "float"}[type(default)]


def write_trial(location: Location, record: StudyRecord, number: int, trial: Written) -> None:
    begin = CREATED + timedelta(seconds=10 * number)
    times = iter([begin, *[begin] * len(trial.scores), begin + timedelta(seconds=8)])
    info = TrialInfo(number, trial.seed, "search", f"c{number}", trial.values, epochs=2)
    writer = TrialWriter(location, record, info, 1, clock=lambda: 0.0, now=lambda: next(times))
    writer.start()
    for epoch, score in enumerate(trial.scores):
        full = epoch == 0 or (epoch == len(trial.scores) - 1 and trial.status == "completed")
        metrics: dict[str, float | None] = {
            "val.ridge_accuracy": score,
            "val.accuracy": score if full else None,
        }
        if epoch == 0 and trial.colour is not None:
            metrics["val.colour_mse"] = 10.0
        writer.add_epoch(
            epoch, metrics, seconds=2.0, train_seconds=1.5 if epoch else 0.0, evaluate_seconds=0.5
        )
    writer.flush()
    if trial.status == "running":
        return
    last = trial.scores[-1] if trial.scores else math.nan
    final: dict[str, float | None] = {"val.ridge_accuracy": last}
    if trial.status == "completed":
        final |= {"val.accuracy": last, "val.colour_mse": trial.colour}
    writer.finish(trial.status, final, error=trial.error)
