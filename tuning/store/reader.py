"""Read a results folder: its studies, and their trials and epochs as Arrow tables."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.tuning.store.attempts import TRIAL_RULE_COLUMNS, winning_epochs, winning_trials
from contrasweep.tuning.store.filesystem import Location, StoreError, open_location
from contrasweep.tuning.store.heartbeat import driver_alive, read_heartbeat
from contrasweep.tuning.store.parts import DamagedFile, Kind, Parts, read_parts
from contrasweep.tuning.store.study import StudyRecord, load_study, study_names

State = Literal["running", "interrupted", "ended"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StudySummary:
    """A line of ``contrasweep studies``.

    Attributes:
        name: of the study.
        method: the method it searches.
        dataset: the data it searches on.
        created: the time of creation.
        state: running, ended, or interrupted: the driver stopped without recording the end.
        counts: the number of (trial, seed) rows of each status that occurs.
    """

    name: str
    method: str
    dataset: str
    created: datetime
    state: State
    counts: Mapping[str, int]


@dataclass(frozen=True)
class StudyTables:
    """All rows of a study, from one reading.

    Attributes:
        trials: as ``ResultsStore.trials`` gives them.
        epochs: as ``ResultsStore.epochs`` gives them.
        damaged: the files that were skipped, and why.
    """

    trials: pa.Table
    epochs: pa.Table
    damaged: tuple[DamagedFile, ...]


class ResultsStore:
    """A results folder, for reading. Reading needs no lock: writers and compaction may run at the same time.

    Args:
        uri: a path or URI as for ``open_location``, or an opened location.
        now: seconds since 1970 UTC, to judge the age of heartbeats.

    Raises:
        StoreError: the location is a file or cannot be opened.
    """

    def __init__(self, uri: str | Path | Location, *, now: Callable[[], float] = time.time) -> None:
        self.location = uri if isinstance(uri, Location) else open_location(uri)
        self._now = now
        self._named: set[str] = set()

    def studies(self) -> list[StudySummary]:
        """Return all studies, oldest first. A study with a damaged record is left out, with a warning."""
        records = []
        for name in study_names(self.location):
            try:
                records.append(load_study(self.location, name))
            except StoreError as error:
                log.warning("Skipped a study: %s", error)
        return [self._summary(record) for record in sorted(records, key=lambda r: (r.created, r.name))]

    def study(self, name: str) -> StudyRecord:
        """Return the record of a study.

        Raises:
            StoreError: there is no such study (the nearest name is given), or its record is damaged.
        """
        return load_study(self.location, name)

    def state(self, study: str) -> State:
        """Return whether the study's driver is running, was cut off, or has recorded the end."""
        heartbeat = read_heartbeat(self.location, study)
        if heartbeat is not None and heartbeat.state == "ended":
            return "ended"
        return "running" if driver_alive(heartbeat, self._now()) else "interrupted"

    def trials(self, study: str) -> pa.Table:
        """Return one row for each (trial, seed), in their order: its highest attempt; first column ``study``.

        A running row of a study whose driver is gone reads as interrupted.

        Raises:
            StoreError: as ``study``.
        """
        record = self.study(study)
        return _with_study(self._shown(record, winning_trials(self._table(record, "trials"))), study)

    def epochs(self, study: str) -> pa.Table:
        """Return one row for each (trial, seed, epoch), in their order; the first column is ``study``.

        Raises:
            StoreError: as ``study``.
        """
        record = self.study(study)
        # Trials first: a trial that ends between the two reads then keeps its newest epochs.
        winners = winning_trials(self._table(record, "trials", TRIAL_RULE_COLUMNS))
        return _with_study(winning_epochs(self._table(record, "epochs"), winners), study)

    def tables(self, study: str) -> StudyTables:
        """Return all rows, reading each file once; calls of ``trials`` and ``epochs`` read the trials twice.

        Raises:
            StoreError: as ``study``.
        """
        record = self.study(study)
        trials, epochs = self._read(record, "trials"), self._read(record, "epochs")
        winners = winning_trials(trials.table())
        kept = winning_epochs(epochs.table(), winners)
        return StudyTables(
            trials=_with_study(self._shown(record, winners), study),
            epochs=_with_study(kept, study),
            damaged=_by_path(trials, epochs),
        )

    def damaged(self, study: str) -> list[DamagedFile]:
        """Return the study's files that every read skips, with the reasons.

        Raises:
            StoreError: as ``study``.
        """
        record = self.study(study)
        return list(_by_path(self._read(record, "trials"), self._read(record, "epochs")))

    def _summary(self, record: StudyRecord) -> StudySummary:
        winners = winning_trials(self._table(record, "trials", TRIAL_RULE_COLUMNS))
        counts = Counter(self._shown(record, winners)["status"].to_pylist())
        return StudySummary(
            name=record.name,
            method=record.method,
            dataset=record.dataset,
            created=record.created,
            state=self.state(record.name),
            counts=dict(counts),
        )

    def _shown(self, record: StudyRecord, winners: pa.Table) -> pa.Table:
        """Return the rows with the status that users see: running rows without a driver are interrupted."""
        running = pc.equal(winners["status"], "running")
        if not pc.any(running).as_py() or self.state(record.name) == "running":
            return winners
        status = pc.if_else(running, pa.scalar("interrupted"), winners["status"])
        return winners.set_column(winners.schema.get_field_index("status"), "status", status)

    def _table(self, record: StudyRecord, kind: Kind, names: list[str] | None = None) -> pa.Table:
        return self._read(record, kind, names).table()

    def _read(self, record: StudyRecord, kind: Kind, names: list[str] | None = None) -> Parts:
        """Read the files; each skipped file is reported once."""
        parts = read_parts(self.location, kind, record, names=names)
        for file in parts.damaged:
            if file.path not in self._named:
                log.warning("Skipped %s: it %s", file.path, file.reason)
                self._named.add(file.path)
        return parts


def _by_path(*parts: Parts) -> tuple[DamagedFile, ...]:
    return tuple(sorted((file for one in parts for file in one.damaged), key=lambda file: file.path))


def _with_study(table: pa.Table, study: str) -> pa.Table:
    return table.add_column(0, "study", pa.repeat(pa.scalar(study), table.num_rows))
