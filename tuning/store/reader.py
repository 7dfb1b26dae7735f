"""Read a results folder: its studies, and their trials and epochs as Arrow tables."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.notebook_tables import MOST_ROWS, html_table
from contrasweep.tuning.experiment.statuses import Status, StudyState, counts_in_words, trial_status
from contrasweep.tuning.store.attempts import TRIAL_RULE_COLUMNS, winning_epochs, winning_trials
from contrasweep.tuning.store.filesystem import Location, StoreError, StoreRefuses, open_location
from contrasweep.tuning.store.heartbeat import read_heartbeat, seems_alive
from contrasweep.tuning.store.layout import Kind
from contrasweep.tuning.store.parts import DamagedFile, Parts, read_parts
from contrasweep.tuning.store.record import StudyRecord
from contrasweep.tuning.store.schema import StudySchema
from contrasweep.tuning.store.study import load_study, study_names
from contrasweep.tuning.store.union import stacked

Read = TypeVar("Read")
# What a folder without studies holds: no rows of the columns that every study has.
_NO_STUDY: Final = StudySchema(hyperparameters={}, metrics=())

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
        counts: how many trials have each status that occurs; of final runs, how many runs.
    """

    name: str
    method: str
    dataset: str
    created: datetime
    state: StudyState
    counts: Mapping[str, int]

    def age(self) -> tuple[datetime, str]:
        """Return the key that sorts studies, oldest first."""
        return self.created, self.name

    def columns(self) -> dict[str, str | int]:
        """Return the line as the cells of a table; the time is in UTC."""
        return {
            "study": self.name,
            "method": self.method,
            "dataset": self.dataset,
            "state": self.state,
            "trials": sum(self.counts.values()),
            "endings": counts_in_words(self.counts),
            "created": f"{self.created.astimezone(UTC):%Y-%m-%d %H:%M}",
        }


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

    def __repr__(self) -> str:
        """Return the folder."""
        return f"ResultsStore({self.location.uri})"

    def _repr_html_(self) -> str:
        """Return the latest studies as a table, for notebooks."""
        found = sorted(self.studies(), key=StudySummary.age, reverse=True)
        rows = [_as_text(one.columns()) for one in found[:MOST_ROWS]]
        title = f"Studies in {self.location.uri}, the latest first"
        return html_table(title, rows, rest=len(found) - len(rows))

    def studies(self) -> list[StudySummary]:
        """Return all studies, oldest first; one that cannot or may not be read is left out with a warning."""
        found = self.of_all(lambda record: self.summary(record, self._trials(record, TRIAL_RULE_COLUMNS)))
        return sorted(found, key=StudySummary.age)

    def summary(self, record: StudyRecord, trials: pa.Table) -> StudySummary:
        """Return the line of a study, from its record and its rows as ``trials`` gives them."""
        return StudySummary(
            name=record.name,
            method=record.method,
            dataset=record.dataset,
            created=record.created,
            state=self.state(record.name),
            counts=_counts(record, trials),
        )

    def of_all(
        self, read: Callable[[StudyRecord], Read], where: Callable[[str], bool] = lambda name: True
    ) -> list[Read]:
        """Return what `read` gives for each study, by name.

        A study that cannot or may not be read is left out, with one warning for each reason.

        Args:
            read: called with the record of a study.
            where: takes a name, and says whether its study counts; without it all do.
        """
        found = []
        for name in filter(where, study_names(self.location)):
            try:
                found.append(read(load_study(self.location, name)))
            except (StoreError, StoreRefuses) as error:
                told = f"the study {name}: {error}"
                if told not in self._named:
                    log.warning("Skipped %s", told)
                    self._named.add(told)
        return found

    def study(self, name: str) -> StudyRecord:
        """Return the record of a study.

        Raises:
            StoreError: there is no such study (the nearest name is given), or its record is damaged.
        """
        return load_study(self.location, name)

    def state(self, study: str) -> StudyState:
        """Return whether the study's driver is running, was cut off, or has recorded the end.

        A driver of another machine is judged by both clocks: do not change a study because of the answer.
        """
        heartbeat = read_heartbeat(self.location, study)
        if heartbeat is not None and heartbeat.state == "ended":
            return "ended"
        return "running" if seems_alive(heartbeat, self._now()) else "interrupted"

    def trials(self, *studies: str) -> pa.Table:
        """Return one row for each (trial, seed), in their order: its highest attempt; first column ``study``.

        A running row of a study whose driver is gone reads as interrupted. Several studies stand one below
        the other under the columns of all, as ``union.stacked`` says.

        Args:
            studies: names; a repeated one counts once. Without any, all studies by name, and one that cannot
                be read is left out with a warning.

        Raises:
            StoreError: as ``study``.
        """
        return self._tables(studies, self._trials, _NO_STUDY.trials)

    def epochs(self, *studies: str) -> pa.Table:
        """Return one row for each (trial, seed, epoch), in their order; the first column is ``study``.

        Args:
            studies: as for ``trials``.

        Raises:
            StoreError: as ``study``.
        """
        return self._tables(studies, self._epochs, _NO_STUDY.epochs)

    def _tables(
        self, names: Sequence[str], read: Callable[[StudyRecord], pa.Table], columns: pa.Schema
    ) -> pa.Table:
        """Return the rows that `read` gives for each study; `columns` are those where there is no study."""

        def named(record: StudyRecord) -> pa.Table:
            return _with_study(read(record), record.name)

        found = [named(self.study(name)) for name in dict.fromkeys(names)] if names else self.of_all(named)
        return stacked(found or [_with_study(columns.empty_table(), "")])

    def _trials(self, record: StudyRecord, names: list[str] | None = None) -> pa.Table:
        return self._shown(record, winning_trials(self._table(record, "trials", names)))

    def _epochs(self, record: StudyRecord) -> pa.Table:
        # Trials first: a trial that ends between the two reads then keeps its newest epochs.
        winners = winning_trials(self._table(record, "trials", TRIAL_RULE_COLUMNS))
        return winning_epochs(self._table(record, "epochs"), winners)

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


def _counts(record: StudyRecord, trials: pa.Table) -> dict[str, int]:
    """Return how many trials have each status; of final runs, each run counts."""
    statuses: list[Status] = trials["status"].to_pylist()
    if record.is_final:
        return dict(Counter(statuses))
    by_trial: dict[int, list[Status]] = {}
    for trial, status in zip(trials["trial"].to_pylist(), statuses, strict=True):
        by_trial.setdefault(trial, []).append(status)
    return dict(Counter(trial_status(own, record.seeds) for own in by_trial.values()))


def _as_text(cells: Mapping[str, str | int]) -> dict[str, str]:
    return {name: f"{cell:,}" if isinstance(cell, int) else cell for name, cell in cells.items()}


def _by_path(*parts: Parts) -> tuple[DamagedFile, ...]:
    return tuple(sorted((file for one in parts for file in one.damaged), key=lambda file: file.path))


def _with_study(table: pa.Table, study: str) -> pa.Table:
    return table.add_column(0, "study", pa.repeat(pa.scalar(study), table.num_rows))
