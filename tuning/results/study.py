"""What a report needs of a study, read once from the store: its trials, curves and final runs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.results.trials import (
    Curve,
    TrialResult,
    epoch_means,
    trial_results,
    untrained_mean,
    untrained_scores,
)
from contrasweep.tuning.store import (
    FINAL_SUFFIX,
    DamagedFile,
    ResultsStore,
    StudyRecord,
    driver_alive,
    read_heartbeat,
    study_names,
)

Floats = NDArray[np.float64]
# Of the seeds of a trial that ended in different ways, the first of these is how the trial is shown.
_WORST_FIRST = ("running", "interrupted", "failed", "stopped", "completed")


@dataclass(frozen=True)
class TrialResult:
    """One trial; of several seeds, scores are the means.

    `score` is the study's metric once the trial completed; `last` is its cheap form after the last epoch,
    `untrained` the metric of the encoder before training. What is not known, or not a number, is None.
    """

    number: int
    seeds: tuple[int, ...]
    status: str
    epoch: int | None
    values: Mapping[str, Scalar]
    metrics: Mapping[str, float]
    score: float | None
    last: float | None
    untrained: float | None
    error: str | None


@dataclass(frozen=True)
class Curve:
    """A trial's scores by the metric that is known after every epoch; epoch 0 is the untrained encoder."""

    trial: int
    epochs: Floats
    scores: Floats


@dataclass(frozen=True)
class StudyData:
    """A study as it stood at `read_at`.

    `rows` and `epochs` are the store's tables, `final_rows` those of the final runs (none: empty).
    """

    record: StudyRecord
    state: Literal["running", "ended", "interrupted"]
    read_at: datetime
    rows: pa.Table
    epochs: pa.Table
    final_record: StudyRecord | None
    final_rows: Sequence[Mapping[str, Any]]
    damaged: Sequence[DamagedFile]

    @property
    def name(self) -> str:
        """The study's name."""
        return self.record.name

    @property
    def metric(self) -> str:
        """What the search maximises; of several metrics, the first."""
        return self.record.metric

    @property
    def rung_metric(self) -> str:
        """Its cheap form, known after every epoch."""
        return self.record.rung_metric

    @property
    def planned(self) -> int:
        """How many trials the sweep was given."""
        return int(self.record.search["trials"])

    @cached_property
    def space(self) -> Space:
        """The search space."""
        return Space.parse(self.record.space, f"the space of study {self.name}")

    @cached_property
    def trials(self) -> Sequence[TrialResult]:
        """The trials, by number."""
        seeds: dict[int, list[dict[str, Any]]] = {}
        for row in self.rows.to_pylist():
            seeds.setdefault(row["trial"], []).append(row)
        return [self._trial(number, rows) for number, rows in sorted(seeds.items())]

    @cached_property
    def counts(self) -> Mapping[str, int]:
        """How many trials ended in which way, or have not."""
        return Counter(trial.status for trial in self.trials)

    @cached_property
    def ranked(self) -> Sequence[TrialResult]:
        """The trials that can be selected, best first; of equal scores, the earlier one."""
        scored = [(trial.score, trial) for trial in self.trials if trial.score is not None]
        return [trial for _, trial in sorted(scored, key=lambda pair: (-pair[0], pair[1].number))]

    @cached_property
    def curves(self) -> Mapping[int, Curve]:
        """The learning curve of each trial that has an epoch, by its number."""
        return self._curves(self.rung_metric)

    @cached_property
    def untrained(self) -> float | None:
        """The untrained encoder's score by the cheap metric: the mean over the trials."""
        first = [c.scores[0] for c in self.curves.values() if c.epochs[0] == 0 and np.isfinite(c.scores[0])]
        return float(np.mean(first)) if first else None

    def untrained_score(self, metric: str) -> float | None:
        """Return the mean over the trials of what the untrained encoder scores by `metric`."""
        found = list(self._untrained(metric).values())
        return float(np.mean(found)) if found else None

    def _trial(self, number: int, rows: Sequence[Mapping[str, Any]]) -> TrialResult:
        first = rows[0]
        status = next(s for s in _WORST_FIRST if s in {row["status"] for row in rows})
        names = [f"metric.{name}" for name in self.record.columns.metrics]
        metrics = {name.removeprefix("metric."): _mean([row[name] for row in rows]) for name in names}
        known = {name: value for name, value in metrics.items() if value is not None}
        curve = self.curves.get(number)
        values = {name: first[f"hp.{name}"] for name in self.record.columns.hyperparameters}
        reached = [row["epoch"] for row in rows if row["epoch"] is not None]
        errors = dict.fromkeys(row["error"] for row in rows if row["error"])
        return TrialResult(
            number=number,
            seeds=tuple(row["seed"] for row in rows),
            status=status,
            epoch=max(reached, default=None),
            values={name: value for name, value in values.items() if value is not None},
            metrics=known,
            score=known.get(self.metric) if status == "completed" else None,
            last=None if curve is None else _last_trained(curve),
            untrained=self._goal_untrained.get(number),
            error="; ".join(errors) or None,
        )

    @cached_property
    def _goal_untrained(self) -> Mapping[int, float]:
        return self._untrained(self.metric)

    def _untrained(self, metric: str) -> Mapping[int, float]:
        curves = self._curves(metric)
        return {
            number: float(curve.scores[0])
            for number, curve in curves.items()
            if curve.epochs[0] == 0 and np.isfinite(curve.scores[0])
        }

    def _curves(self, metric: str) -> Mapping[int, Curve]:
        """The mean over the seeds of `metric` by trial; an epoch without any value is left out."""
        trial = self.epochs["trial"].to_numpy()
        epoch = self.epochs["epoch"].to_numpy()
        column = self.epochs[f"metric.{metric}"]
        given = np.asarray(column.is_valid().to_numpy(), dtype=bool)
        if not given.any():
            return {}
        score = column.to_numpy().astype(np.float64)[given]
        keys, group = np.unique(np.stack([trial[given], epoch[given]], axis=1), axis=0, return_inverse=True)
        group = group.reshape(-1)
        means = np.bincount(group, weights=score) / np.bincount(group)
        starts = np.flatnonzero(np.diff(keys[:, 0], prepend=keys[0, 0] - 1))
        parts = zip(np.split(keys, starts[1:]), np.split(means, starts[1:]), strict=True)
        return {
            int(key[0, 0]): Curve(int(key[0, 0]), key[:, 1].astype(np.float64), values)
            for key, values in parts
        }


def read_study(store: ResultsStore, name: str, now: datetime | None = None) -> StudyData:
    """Read a study, and its final runs if there are any.

    Raises:
        InputError: the study holds final runs, which belong to the report of the searched one.
        StoreError: there is no such study.
    """
    record = store.study(name)
    if "rung_metric" not in record.search:
        searched = name.removesuffix(FINAL_SUFFIX)
        raise InputError(f"study {name} holds final runs; `contrasweep report {searched}` shows them")
    read_at = datetime.now(UTC) if now is None else now
    heartbeat = read_heartbeat(store.location, name)
    ended = heartbeat is not None and heartbeat.state == "ended"
    alive = driver_alive(heartbeat, read_at.timestamp())
    final = name + FINAL_SUFFIX
    has_final = final in study_names(store.location)
    tables = store.tables(name)
    return StudyData(
        record=record,
        state="running" if alive else "ended" if ended else "interrupted",
        read_at=read_at,
        rows=tables.trials,
        epochs=tables.epochs,
        final_record=store.study(final) if has_final else None,
        final_rows=store.trials(final).to_pylist() if has_final else [],
        damaged=tables.damaged,
    )


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean; None unless every value is a number."""
    numbers = [value for value in values if value is not None and np.isfinite(value)]
    return float(np.mean(numbers)) if numbers and len(numbers) == len(values) else None


def _last_trained(curve: Curve) -> float | None:
    """The last score that is a number, of an epoch that trained."""
    usable = (curve.epochs > 0) & np.isfinite(curve.scores)
    return float(curve.scores[usable][-1]) if usable.any() else None
