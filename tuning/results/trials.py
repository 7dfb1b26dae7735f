"""The outcome of each trial of a search: the rows of its seeds, taken together.

Only this module decides a trial's score, and its encoder's score before training.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.durations import Span, covered
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.experiment.statuses import ENDED, Status, trial_status
from contrasweep.tuning.provenance import same_series
from contrasweep.tuning.results.best import merit
from contrasweep.tuning.statistics import Floats, Summary, summarise
from contrasweep.tuning.store import StudyRecord
from contrasweep.tuning.store.parts import Key
from contrasweep.tuning.store.reader import StudyTables
from contrasweep.tuning.store.schema import METRIC, cells_under, hyperparameter_column, metric_column
from contrasweep.version import __version__


@dataclass(frozen=True)
class TrialOutcome:
    """One configuration over its seeds.

    Attributes:
        trial: its number within the study.
        seeds: the seeds that have a row, in the order of the rows.
        status: how the trial ended, or that it has not; see `trial_status`.
        epoch: the last epoch that any seed reached; None before the first.
        values: its active hyperparameters.
        metrics: each metric over the seeds, where every seed of the trial has it as a number.
        error: the errors of its seeds, each once.
        open_seeds: the seeds whose rows do not say that they ended, although the trial did.
    """

    trial: int
    seeds: tuple[int, ...]
    status: Status
    epoch: int | None
    values: Mapping[str, Scalar]
    metrics: Mapping[str, Summary]
    error: str | None
    open_seeds: tuple[int, ...] = ()

    def mean(self, metric: str) -> float | None:
        """Return the mean of a metric over the seeds; None unless every seed has it."""
        return self.metrics[metric].mean if metric in self.metrics else None


@dataclass(frozen=True)
class Curve:
    """A trial's scores by epoch, each the mean over its seeds; epoch 0 is the untrained encoder."""

    trial: int
    epochs: Floats
    scores: Floats

    def after(self, epoch: int) -> dict[int, float]:
        """Return the scores by epoch, of the epochs after `epoch`."""
        pairs = zip(self.epochs.tolist(), self.scores.tolist(), strict=True)
        return {int(number): score for number, score in pairs if number > epoch}

    @property
    def trained(self) -> Floats:
        """The scores after training epochs that are numbers, in their order."""
        return self.scores[(self.epochs > 0) & np.isfinite(self.scores)]

    @property
    def untrained(self) -> float | None:
        """The score of epoch 0; None if it is missing or not a number."""
        there = len(self.epochs) > 0 and self.epochs[0] == 0 and bool(np.isfinite(self.scores[0]))
        return float(self.scores[0]) if there else None


def trial_outcomes(trials: pa.Table, record: StudyRecord) -> list[TrialOutcome]:
    """Return the result of every trial among the rows of a study's table of trials, by number."""
    by_trial: dict[int, list[dict[str, Any]]] = {}
    for row in trials.to_pylist():
        by_trial.setdefault(row["trial"], []).append(row)
    return [_result(record, rows) for _, rows in sorted(by_trial.items())]


def epoch_means(epochs: pa.Table, record: StudyRecord, metric: str) -> dict[int, Curve]:
    """Return the curve of each trial in a study's table of epochs: the mean over all of its seeds."""
    trial, epoch = epochs["trial"].to_numpy(), epochs["epoch"].to_numpy()
    column = epochs[metric_column(metric)]
    given = np.asarray(column.is_valid().to_numpy(), dtype=bool)
    if not given.any():
        return {}
    score = column.to_numpy().astype(np.float64)[given]
    # One number for each (trial, epoch): pairs of numbers take five times as long to sort.
    beyond = epoch.max() + 1
    numbers, group = np.unique(trial[given] * beyond + epoch[given], return_inverse=True)
    keys = np.stack(np.divmod(numbers, beyond), axis=1)
    whole = np.bincount(group) == record.seeds
    in_order = np.argsort(group, kind="stable")
    of_whole = score[in_order][whole[group[in_order]]].reshape(-1, record.seeds)
    means = of_whole[:, 0] if record.seeds == 1 else _means(of_whole)
    keys = keys[whole]
    starts = np.flatnonzero(np.diff(keys[:, 0])) + 1
    parts = zip(np.split(keys, starts), np.split(means, starts), strict=True)
    return {
        int(key[0, 0]): Curve(int(key[0, 0]), key[:, 1].astype(np.float64), scores)
        for key, scores in parts
        if len(key)
    }


def _means(scores: Floats) -> Floats:
    """Return the mean of each row, to the last bit what a sweep reports for its seeds.

    So a resumed search finds the ties of one that was never stopped.
    """
    finite = [row if all(map(math.isfinite, row)) else [math.nan] for row in scores.tolist()]
    return np.array([statistics.fmean(row) for row in finite])


def merit_of(one: TrialOutcome, metric: str) -> float | None:
    """Return the merit (`results.best`) of a trial's mean over its seeds; None unless every seed has it."""
    mean = one.mean(metric)
    return None if mean is None else merit(metric, mean)


def merits(metric: str, scores: Mapping[int, float]) -> dict[int, float]:
    """Return the merits of scores by epoch."""
    return {epoch: merit(metric, score) for epoch, score in scores.items()}


def untrained_scores(epochs: pa.Table, record: StudyRecord, metric: str) -> dict[int, float]:
    """Return by trial what its encoder scored before training (epoch 0): the mean over its seeds."""
    at_start = epochs.filter(pc.equal(epochs["epoch"], 0))
    found = {trial: curve.untrained for trial, curve in epoch_means(at_start, record, metric).items()}
    return {trial: score for trial, score in found.items() if score is not None}


def rows_so_far(tables: StudyTables) -> list[dict[str, Any]]:
    """Return the rows of a study's trials; one that has not ended has the scores of its last epoch.

    The store fills in epoch and scores when a run ends, so an interrupted or running one has them among its
    epochs alone. Scores of epoch 0 are those of the untrained encoder, and are left out.
    """
    last = {(row["trial"], row["seed"]): row for row in _last_epochs(tables.epochs)}
    rows = []
    for row in tables.trials.to_pylist():
        found = last.get((row["trial"], row["seed"]))
        if row["status"] in ENDED or found is None:
            rows.append(row)
            continue
        scores = {name: value for name, value in found.items() if name.startswith(METRIC)}
        rows.append({**row, "epoch": found["epoch"], **(scores if found["epoch"] > 0 else {})})
    return rows


def _last_epochs(epochs: pa.Table) -> list[dict[str, Any]]:
    """Return the last row of each run in a study's table of epochs, which is in the order of the epochs."""
    keys = np.stack([epochs["trial"].to_numpy(), epochs["seed"].to_numpy()], axis=1)
    ends = np.append(np.any(keys[1:] != keys[:-1], axis=1), len(keys) > 0)[: len(keys)]
    rows: list[dict[str, Any]] = epochs.filter(pa.array(ends, type=pa.bool_())).to_pylist()
    return rows


def untrained_mean(scores: Mapping[int, float]) -> float | None:
    """Return the mean over the trials of `untrained_scores`: one number for a study."""
    found = summarise(scores.values())
    return None if found is None else found.mean


def experiment_of(record: StudyRecord, values: Mapping[str, Any]) -> Experiment:
    """Return the complete experiment of a trial with these active values, from the study's record alone.

    Raises:
        InputError: another version made the study, or a value is not allowed.
    """
    refuse_other_version(record)
    return record.experiment.with_searched(record.space.names, values)


def other_version(record: StudyRecord) -> str | None:
    """Return the version that made a study, if it is of another series than this; else None."""
    there = record.versions.get("contrasweep", "unknown")
    return None if same_series(there, __version__) else there


def refuse_other_version(record: StudyRecord) -> None:
    """Refuse a study whose experiments this version may read differently.

    Raises:
        InputError: a version of another series made it.
    """
    there = other_version(record)
    if there is not None:
        raise InputError(
            f"study {record.name} was made by contrasweep {there}; this is {__version__}, "
            "which may read it differently"
        )


def _result(record: StudyRecord, rows: Sequence[Mapping[str, Any]]) -> TrialOutcome:
    first = rows[0]
    # A final study does not plan its number of seeds: every seed that was run counts.
    seeds = len(rows) if record.is_final else record.seeds
    status = trial_status([row["status"] for row in rows], seeds)
    over = {name: summarise(row[metric_column(name)] for row in rows) for name in cells_under(METRIC, first)}
    whole = {name: found for name, found in over.items() if found is not None and found.n == seeds}
    values = {name: first[hyperparameter_column(name)] for name in record.columns.hyperparameters}
    errors = dict.fromkeys(row["error"] for row in rows if row["error"])
    ended = status in ENDED
    return TrialOutcome(
        trial=first["trial"],
        seeds=tuple(row["seed"] for row in rows),
        status=status,
        epoch=max((row["epoch"] for row in rows if row["epoch"] is not None), default=None),
        values={name: value for name, value in values.items() if value is not None},
        metrics=whole,
        error="; ".join(errors) or None,
        open_seeds=tuple(row["seed"] for row in rows if ended and row["status"] not in ENDED),
    )


def time_spent(tables: StudyTables) -> float:
    """Return the seconds by the clock in which trials of a study ran, over all of their attempts."""
    return covered(attempt_spans(tables.trials, tables.epochs).values())


def attempt_spans(trials: pa.Table, epochs: pa.Table, now: datetime | None = None) -> dict[Key, Span]:
    """Return the time in which each attempt of a seed of a trial ran.

    The store keeps the row of the last attempt alone. An earlier attempt counts by those of its epochs that
    no later one repeated: from the start of the first to the end of the last. An attempt whose driver was
    killed counts up to its last epoch in the store.

    Args:
        trials: the rows of a study's trials, as the store returns them.
        epochs: the rows of its epochs.
        now: where it is given, running trials count until then; else up to their last epoch.
    """
    spans = _spans_of_epochs(epochs)
    for row in trials.select([*Key._fields, "status", "started", "finished"]).to_pylist():
        key = Key(*(row[name] for name in Key._fields))
        began, ended = row["started"], row["finished"]
        if ended is None and row["status"] == "running" and now is not None:
            ended = now
        elif ended is None and key in spans:
            _, ended = spans[key]
        if began is not None and ended is not None:
            spans[key] = began, max(began, ended)
    return spans


def _spans_of_epochs(epochs: pa.Table) -> dict[Key, Span]:
    """Return by attempt the time from the start of its first epoch to the end of its last one."""
    ended = epochs["time"].cast(pa.int64())
    lasted = pc.multiply(pc.fill_null(epochs["seconds"], 0.0), 1e6).cast(pa.int64(), safe=False)
    # Between 1970 and its end, however long a damaged row says that an epoch took: Python has no other dates.
    began = pc.min_element_wise(pc.max_element_wise(pc.subtract(ended, lasted), 0), ended)
    started = began.cast(epochs["time"].type)
    rows = epochs.select([*Key._fields, "time"]).append_column("start", started)
    by_attempt = rows.group_by(Key._fields).aggregate([("start", "min"), ("time", "max")]).to_pylist()
    return {
        Key(row["trial"], row["seed"], row["attempt"]): (row["start_min"], row["time_max"])
        for row in by_attempt
    }
