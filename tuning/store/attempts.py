"""Attempts at a trial: their numbers, and which rows count if they repeat, overtake or resume late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrasweep.tuning.experiment.statuses import ENDED
from contrasweep.tuning.statistics import Ints
from contrasweep.tuning.store.filesystem import Location
from contrasweep.tuning.store.layout import Kind
from contrasweep.tuning.store.parts import Key, Part, list_parts, read_parts
from contrasweep.tuning.store.record import StudyRecord

# The columns of a trial table that winning_trials and winning_epochs need.
TRIAL_RULE_COLUMNS: Final = ["trial", "seed", "attempt", "status", "epoch", "finished"]

_NEVER: Final = np.iinfo(np.int64).max


class TrialOvertaken(RuntimeError):
    """Another worker has begun or ended this trial in the meantime; results of this attempt do not count."""


def next_attempt(location: Location, record: StudyRecord, *, trial: int, seed: int) -> int:
    """Return the number of the next attempt at a (trial, seed): 1, or one above the highest number in use.

    File names give the numbers, also those of damaged files. Only compacted files are opened.
    """
    parts = list_parts(location, "trials", record.name, trial)
    attempts = [part.key.attempt for part in parts if part.key and part.key[:2] == (trial, seed)]
    if any(part.compacted for part in parts):
        names = list(Key._fields)
        read = read_parts(location, "trials", record, trial=trial, only=lambda _: False, names=names)
        attempts += [key.attempt for key in Key.of_rows(read.table()) if key[:2] == (trial, seed)]
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

    A failed final run may be retried; a failed search trial may not, because the sampler has learned from it
    (`reopen_failed` makes it an interrupted one, before the search reads it).
    """
    row = row_of(location, record, trial, seed)
    if row is None:
        return False
    return row["status"] == "completed" if row["phase"] == "final" else row["status"] in ENDED


def _winner_of(location: Location, record: StudyRecord, trial: int, seed: int) -> pa.Table:
    return winning_trials(_table_of(location, record, "trials", trial, seed))


def _table_of(location: Location, record: StudyRecord, kind: Kind, trial: int, seed: int) -> pa.Table:
    def of_this_trial(part: Part) -> bool:
        return part.key is not None and part.key[:2] == (trial, seed)

    table = read_parts(location, kind, record, trial=trial, only=of_this_trial).table()
    return table.filter((pc.field("trial") == trial) & (pc.field("seed") == seed))


def winning_trials(trials: pa.Table) -> pa.Table:
    """Return one row for each (trial, seed), in their order: the row of the highest attempt.

    Among copies of an attempt, the last to finish wins; a running copy loses.
    """
    if trials.num_rows == 0:
        return trials
    finished = pc.fill_null(trials["finished"].cast(pa.int64()), 0)
    order = np.lexsort(
        [_array(column) for column in (finished, *(trials[k] for k in ("attempt", "seed", "trial")))]
    )
    return trials.take(order[_last_of_each(_array(trials["trial"])[order], _array(trials["seed"])[order])])


def winning_epochs(epochs: pa.Table, winners: pa.Table) -> pa.Table:
    """Return one row for each (trial, seed, epoch), in their order.

    An attempt that resumed from a checkpoint has only later epochs. So the epochs of the older attempt count
    up to the first epoch of the newer one. Epochs beyond the last epoch of an ended trial do not count: a
    worker wrote them that did not know of the end. Those of an attempt after the end count: its row, which
    came before them, is damaged.

    Args:
        epochs: epoch rows, repeats included.
        winners: the result of ``winning_trials`` for the same study.
    """
    if epochs.num_rows == 0:
        return epochs
    columns = [_array(epochs[name]) for name in ("trial", "seed", "epoch", "attempt")]
    columns.append(_array(epochs["time"].cast(pa.int64())))
    order = None if _in_order(columns) else np.lexsort(columns[::-1])
    trial, seed, epoch, attempt, _ = columns if order is None else [column[order] for column in columns]
    starts = np.append(True, _last_of_each(trial, seed)[:-1])
    run = np.cumsum(starts) - 1
    # Runs are numbered upwards, so the newest attempt of a run is above all of the runs before it.
    rank = run * (attempt.max() + 1) + attempt
    is_newest = rank == np.maximum.accumulate(rank)
    last, ended = _ends(trial[starts], seed[starts], winners)
    is_late = (epoch > last[run]) & (attempt <= ended[run])
    counts = _last_of_each(trial, seed, epoch) & is_newest & ~is_late
    if order is not None:
        return epochs.take(order[counts])
    # A merged file is in order and free of repeats: it needs no copy.
    return epochs if counts.all() else epochs.filter(pa.array(counts))


def _ends(trial: Ints, seed: Ints, winners: pa.Table) -> tuple[Ints, Ints]:
    """Return the last epoch of each (trial, seed), and the attempt that ended then, if its end is known."""
    ended = pc.is_in(winners["status"], value_set=pa.array(ENDED))
    known = winners.filter(pc.and_(ended, winners["epoch"].is_valid())).select([*Key._fields, "epoch"])
    ends = {(row["trial"], row["seed"]): (row["epoch"], row["attempt"]) for row in known.to_pylist()}
    pairs = zip(trial.tolist(), seed.tolist(), strict=True)
    found = np.array([ends.get(pair, (_NEVER, 0)) for pair in pairs], dtype=np.int64)
    return found[:, 0], found[:, 1]


def _in_order(keys: Sequence[Ints]) -> bool:
    """Whether rows are sorted by their keys, the first of which counts most."""
    tied = np.ones(len(keys[0]) - 1, dtype=bool)
    for key in keys:
        if np.any(tied & (key[1:] < key[:-1])):
            return False
        tied &= key[1:] == key[:-1]
    return True


def _last_of_each(*sorted_keys: Ints) -> NDArray[np.bool_]:
    """Whether each row is the last of a run of equal keys."""
    last = np.zeros(len(sorted_keys[0]), dtype=bool)
    last[-1:] = True
    for key in sorted_keys:
        last[:-1] |= key[1:] != key[:-1]
    return last


def _array(column: Any) -> Ints:
    array: Ints = column.to_numpy().astype(np.int64, copy=False)
    return array
