"""Attempts at a trial: their numbers, their rows in the store, and when one attempt overtakes another."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.tuning.store.filesystem import Location
from contrasweep.tuning.store.parts import Key, Kind, Part, list_parts, read_parts
from contrasweep.tuning.store.schema import FINAL_STATUSES
from contrasweep.tuning.store.study import StudyRecord
from contrasweep.tuning.store.winning_rows import winning_epochs, winning_trials


class TrialOvertaken(RuntimeError):
    """Another worker has begun or ended this trial in the meantime; results of this attempt do not count."""


def next_attempt(location: Location, record: StudyRecord, *, trial: int, seed: int) -> int:
    """Return the number of the next attempt at a (trial, seed): 1, or one above the highest number in use.

    File names give the numbers, also those of damaged files. Only compacted files are opened.
    """
    parts = list_parts(location, "trials", record.name, trial)
    attempts = [part.key.attempt for part in parts if part.key and part.key[:2] == (trial, seed)]
    if any(part.compacted for part in parts):
        read = read_parts(
            location,
            "trials",
            record.name,
            record.columns,
            trial=trial,
            only=lambda _: False,
            names=list(Key._fields),
        )
        keys = (Key(**row) for table in read.tables.values() for row in table.to_pylist())
        attempts += [key.attempt for key in keys if key[:2] == (trial, seed)]
    return max(attempts, default=0) + 1


def is_overtaken(location: Location, record: StudyRecord, key: Key, path: str) -> bool:
    """Whether file names show that another attempt has overtaken the one with its row in the file ``path``.

    Two writers that start at the same moment can have the same number.
    """
    listed = list_parts(location, "trials", record.name, key.trial)
    of_others = (
        part.key.attempt
        for part in listed
        if part.key is not None and part.key[:2] == key[:2] and part.path != path
    )
    # A compaction has merged a missing file, which happens only after its trial has ended.
    return max(of_others, default=0) >= key.attempt or all(part.path != path for part in listed)


def rows_of(
    location: Location, record: StudyRecord, trial: int, seed: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the winning trial row (none or one) and the winning epoch rows of one (trial, seed)."""
    winners = _winner_of(location, record, trial, seed)
    epochs = _table_of(location, record, "epochs", trial, seed)
    return winners.to_pylist(), winning_epochs(epochs, winners).to_pylist()


def row_of(location: Location, record: StudyRecord, trial: int, seed: int) -> dict[str, Any] | None:
    """Return the winning trial row of one (trial, seed); None if there is none."""
    return next(iter(_winner_of(location, record, trial, seed).to_pylist()), None)


def has_ended(location: Location, record: StudyRecord, trial: int, seed: int) -> bool:
    """Whether a (trial, seed) has ended for good, so that no new attempt may begin.

    A failed final run may be retried; a failed search trial may not, because the sampler has learned from it.
    """
    row = row_of(location, record, trial, seed)
    if row is None:
        return False
    return row["status"] == "completed" if row["phase"] == "final" else row["status"] in FINAL_STATUSES


def _winner_of(location: Location, record: StudyRecord, trial: int, seed: int) -> pa.Table:
    return winning_trials(_table_of(location, record, "trials", trial, seed))


def _table_of(location: Location, record: StudyRecord, kind: Kind, trial: int, seed: int) -> pa.Table:
    def of_this_trial(part: Part) -> bool:
        return part.key is not None and part.key[:2] == (trial, seed)

    schema = record.columns.trials if kind == "trials" else record.columns.epochs
    read = read_parts(location, kind, record.name, record.columns, trial=trial, only=of_this_trial)
    table = read.table(schema)
    return table.filter((pc.field("trial") == trial) & (pc.field("seed") == seed))
