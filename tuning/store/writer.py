"""Write trials: the worker while it runs a trial, and the driver if the worker no longer can."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from contrasweep.tuning.experiment.statuses import ENDED, STATUSES, Status
from contrasweep.tuning.store.attempts import TrialOvertaken, has_ended, is_overtaken, next_attempt, rows_of
from contrasweep.tuning.store.filesystem import Location, StoreError
from contrasweep.tuning.store.parts import Key, epoch_path, trial_path, write_rows
from contrasweep.tuning.store.record import StudyRecord
from contrasweep.tuning.store.schema import METRIC, Phase

FLUSH_SECONDS: Final = 10.0


_utc_now: Final = partial(datetime.now, UTC)


@dataclass(frozen=True)
class TrialInfo:
    """The facts about one seed of a trial before it runs.

    Attributes:
        trial: the number within the study, from 0.
        seed: the seed of this replicate.
        phase: search, or final runs on fresh seeds.
        config: the hash of the experiment without its seed.
        hyperparameters: values by name (without ``hp.``); inactive ones are absent or None.
        epochs: the planned number of epochs.
        device: for example ``cpu`` or ``cuda:0``.
        cpus: the cores reserved for it.
        gpus: the GPUs reserved for it.
    """

    trial: int
    seed: int
    phase: Phase
    config: str
    hyperparameters: Mapping[str, Any]
    epochs: int
    device: str = "cpu"
    cpus: float = 1.0
    gpus: float = 0.0

    def __post_init__(self) -> None:
        if self.trial < 0 or self.seed < 0:
            raise StoreError(f"Trial and seed must not be negative; given {self.trial} and {self.seed}.")


class TrialWriter:
    """Writes one attempt at one seed of a trial, in the process that runs the trial.

    Call ``start``, ``add_epoch`` for every epoch, ``flush`` before every checkpoint, and ``finish`` once.
    ``seconds``, ``train_seconds`` and ``evaluate_seconds`` of the trial's row are those of this attempt, also
    if the driver ends it (`end_trial`).

    Args:
        location: the results folder.
        record: the study.
        info: the trial.
        attempt: its number; by default, ``start`` takes the next one.
        clock: monotonic seconds, for the time since the last flush.
        now: the time of day, for the records.

    Raises:
        StoreError: a hyperparameter that the study does not have, or of another type.
    """

    def __init__(
        self,
        location: Location,
        record: StudyRecord,
        info: TrialInfo,
        attempt: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        self._location = location
        self._record = record
        self._attempt = attempt
        self._key = Key(info.trial, info.seed, attempt or 0)
        self._path = trial_path(record.name, self._key)
        self._row = _new_row(record, info, attempt or 0)
        self._clock = clock
        self._now = now
        self._buffer: list[Mapping[str, Any]] = []
        self._parts = 0
        self._flushed = clock()
        self._train_seconds = 0.0
        self._evaluate_seconds = 0.0

    def start(self, *, epoch: int | None = None) -> None:
        """Write the row as running. This claims the attempt number for this writer.

        Args:
            epoch: the last epoch of the checkpoint that this attempt resumes; None for a fresh start.

        Raises:
            TrialOvertaken: the trial has ended, or another writer claimed it at the same moment.
            OSError: the store cannot be written.
        """
        claiming = self._attempt is None
        if claiming:
            self._number()
        self._flushed = self._clock()
        self._write_row({"status": "running", "epoch": epoch, "started": self._now()})
        if claiming and self.overtaken():
            self._location.delete(self._path)
            raise self._lost()

    def overtaken(self) -> bool:
        """Whether another writer has begun or ended the trial since this one began.

        Raises:
            OSError: the store cannot be read.
        """
        return is_overtaken(self._location, self._record, self._key, self._path)

    def add_epoch(
        self,
        epoch: int,
        metrics: Mapping[str, float | None],
        *,
        seconds: float,
        train_seconds: float,
        evaluate_seconds: float = 0.0,
    ) -> None:
        """Record an epoch. It is written at once if it could otherwise wait longer than ``FLUSH_SECONDS``.

        Args:
            epoch: 0 is the untrained encoder.
            metrics: values by name (without ``metric.``).
            seconds: the duration of the epoch.
            train_seconds: the part spent in training.
            evaluate_seconds: the part spent in probes.

        Raises:
            StoreError: the trial is not running, or has no such metric.
            OSError: the store cannot be written; the rows are kept for the next flush.
        """
        self._require_running()
        self._buffer.append(
            {
                **self._key._asdict(),
                "epoch": epoch,
                "time": self._now(),
                "seconds": float(seconds),
                "train_seconds": float(train_seconds),
                "evaluate_seconds": float(evaluate_seconds),
                **self._record.columns.metric_cells(metrics),
            }
        )
        self._row["epoch"] = epoch
        self._train_seconds += train_seconds
        self._evaluate_seconds += evaluate_seconds
        # The next chance comes with the next epoch, which will take about as long as this one.
        if self._clock() - self._flushed + seconds >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Write the waiting epochs. Call it before saving a checkpoint, whose epochs the store must have."""
        if self._buffer:
            path = epoch_path(self._record.name, self._key, self._parts)
            write_rows(self._location, path, self._buffer, self._record.columns.epochs)
            self._parts += 1
            self._buffer = []
        self._flushed = self._clock()

    def finish(
        self,
        status: Status,
        metrics: Mapping[str, float | None],
        *,
        error: str | None = None,
        rung: int | None = None,
    ) -> None:
        """Flush, then replace the running row by the final one.

        Args:
            status: any status but running.
            metrics: the trial's result.
            error: why it failed.
            rung: the epoch after which the scheduler stopped it.

        Raises:
            StoreError: the trial is not running, the status is running, or there is no such metric.
            OSError: the store cannot be written; the trial has not ended, and can be finished again.
        """
        self._require_running()
        cells = self._record.columns.metric_cells(metrics)
        _require_end(status)
        self.flush()
        ending = cells | {
            **_ending(self._row["started"], self._now(), status, error, rung),
            "train_seconds": self._train_seconds,
            "evaluate_seconds": self._evaluate_seconds,
        }
        self._write_row(ending)

    def _number(self) -> None:
        trial, seed, _ = self._key
        attempt = next_attempt(self._location, self._record, trial=trial, seed=seed)
        self._attempt = attempt
        self._key = Key(trial, seed, attempt)
        self._path = trial_path(self._record.name, self._key)
        self._row["attempt"] = attempt
        if attempt > 1 and has_ended(self._location, self._record, trial, seed):
            raise self._lost()

    def _lost(self) -> TrialOvertaken:
        trial, seed, attempt = self._key
        return TrialOvertaken(
            f"trial {trial} (seed {seed}) of study {self._record.name} was taken over or ended by another "
            f"worker while this one began attempt {attempt}"
        )

    def _require_running(self) -> None:
        if self._row["status"] != "running" or self._row["started"] is None:
            state = "has ended" if self._row["started"] else "has not started"
            raise StoreError(f"Trial {self._key.trial}, seed {self._key.seed}, {state}: it takes no results.")

    def _write_row(self, changes: Mapping[str, Any]) -> None:
        row = {**self._row, **changes}
        write_rows(self._location, self._path, [row], self._record.columns.trials)
        self._row = row


def end_trial(
    location: Location,
    record: StudyRecord,
    info: TrialInfo,
    status: Status,
    *,
    error: str | None = None,
    rung: int | None = None,
    epoch: int | None = None,
    metrics: Mapping[str, float | None] | None = None,
    since: datetime | None = None,
    now: Callable[[], datetime] = _utc_now,
) -> Status:
    """Record the end of a trial from the driver, after its worker was stopped or died.

    The end is a new attempt, so later rows of the worker lose. A trial that has already ended keeps that end.

    Args:
        location: the results folder.
        record: the study.
        info: the trial; it fills the row if the worker wrote none.
        status, error, rung: as `TrialWriter.finish` takes them.
        epoch: the last epoch that the trial has reported. It counts if the store's last one is earlier: a
            network share may list the files of another machine late, and epochs beyond the row's are dropped.
        metrics: those of `epoch`; None if they are unknown.
        since: when this driver began. A trial whose row was started before ran under an earlier driver: it
            ended with its last sign of life, not now. By default no row is of an earlier driver.
        now: the time of day.

    Returns:
        The status that the store now holds.

    Raises:
        StoreError: the status is running, or the study does not have these names or values.
    """
    _require_end(status)
    rows, epochs = rows_of(location, record, info.trial, info.seed)
    last = rows[-1] if rows else None
    if last is not None and last["status"] in ENDED:
        ended: Status = last["status"]
        return ended
    attempt = next_attempt(location, record, trial=info.trial, seed=info.seed)
    row = _new_row(record, info, attempt) if last is None else last | {"attempt": attempt}
    finished = now()
    row["started"] = row["started"] or finished
    if since is not None and row["started"] < since:
        finished = _last_sign_of_life(row, epochs)
    if epochs:
        row |= {name: cell for name, cell in epochs[-1].items() if name.startswith(METRIC)}
        row["epoch"] = epochs[-1]["epoch"]
    if epoch is not None and (row["epoch"] is None or row["epoch"] < epoch):
        row |= {"epoch": epoch, **record.columns.metric_cells(metrics or {})}
    row |= _ending(row["started"], finished, status, error, rung)
    row |= {name: _seconds_of(last, epochs, name) for name in ("train_seconds", "evaluate_seconds")}
    key = Key(info.trial, info.seed, attempt)
    write_rows(location, trial_path(record.name, key), [row], record.columns.trials)
    return status


def _seconds_of(last: Mapping[str, Any] | None, epochs: Sequence[Mapping[str, Any]], name: str) -> float:
    """Return the seconds of the last attempt at a trial, as its worker would have recorded them.

    Args:
        last: its row, which has them if it has ended once, and was opened again.
        epochs: those of all attempts that count.
        name: of the column.
    """
    if last is None:
        return 0.0
    if last[name] is not None:
        return float(last[name])
    return math.fsum(one[name] or 0.0 for one in epochs if one["attempt"] == last["attempt"])


def _last_sign_of_life(row: Mapping[str, Any], epochs: Sequence[Mapping[str, Any]]) -> datetime:
    """Return the last time that the store knows of a trial: of its epochs, its end, or its start."""
    seen: list[datetime] = [row["finished"] or row["started"], *(epoch["time"] for epoch in epochs[-1:])]
    return max(seen)


def _ending(
    started: datetime, finished: datetime, status: Status, error: str | None, rung: int | None
) -> dict[str, Any]:
    """Return the cells of a trial row that its end fills."""
    return {
        "status": status,
        "error": None if error is None else _encodable(error),
        "rung": rung,
        "finished": finished,
        "seconds": (finished - started).total_seconds(),
    }


def _encodable(text: str) -> str:
    """Return a text without what UTF-8 cannot encode, such as the bytes of a file name that is not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def _require_end(status: Status) -> None:
    ends = [name for name in STATUSES if name != "running"]
    if status not in ends:
        raise StoreError(f"A trial cannot end as {status!r}; allowed: {', '.join(ends)}.")


def _new_row(record: StudyRecord, info: TrialInfo, attempt: int) -> dict[str, Any]:
    """Return a trial row with all that is known before the start, and null elsewhere."""
    known = {**vars(info), **record.columns.hyperparameter_cells(info.hyperparameters)}
    del known["hyperparameters"]
    return {
        **dict.fromkeys(record.columns.trials.names),
        **known,
        "attempt": attempt,
        "method": record.method,
        "dataset": record.dataset,
        "status": "running",
        "host": socket.gethostname(),
    }
