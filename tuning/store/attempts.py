"""Attempts at a trial: their numbers, and which rows count if they repeat, overtake or resume late."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
    worker wrote them that did not know of the end.

    Args:
        epochs: epoch rows, repeats included.
        winners: the result of ``winning_trials`` for the same study.
    """
    if epochs.num_rows == 0:
        return epochs
    trial, seed, attempt, epoch = (_array(epochs[k]) for k in ("trial", "seed", "attempt", "epoch"))
    limit = np.minimum(_overtaken_from(trial, seed, attempt, epoch), _ended_before(trial, seed, winners))
    valid = np.flatnonzero(epoch < limit)
    time = _array(epochs["time"].cast(pa.int64()))
    order = valid[np.lexsort((time[valid], epoch[valid], seed[valid], trial[valid]))]
    return epochs.take(order[_last_of_each(trial[order], seed[order], epoch[order])])


def _overtaken_from(trial: Ints, seed: Ints, attempt: Ints, epoch: Ints) -> Ints:
    """Return for each row the first epoch that a newer attempt of its (trial, seed) wrote."""
    keys, group = np.unique(np.stack([trial, seed, attempt], axis=1), axis=0, return_inverse=True)
    group = group.reshape(-1)
    first = np.full(len(keys), _NEVER)
    np.minimum.at(first, group, epoch)
    limit = np.full(len(keys), _NEVER)
    # Keys are sorted by (trial, seed, attempt). Backwards, the next attempt and its limit bound an attempt.
    for i in range(len(keys) - 2, -1, -1):
        if (keys[i, :2] == keys[i + 1, :2]).all():
            limit[i] = min(first[i + 1], limit[i + 1])
    return limit[group]


def _ended_before(trial: Ints, seed: Ints, winners: pa.Table) -> Ints:
    """Return for each row one past the last epoch of its (trial, seed), if its end is known."""
    ended = pc.is_in(winners["status"], value_set=pa.array(ENDED))
    known = winners.filter(pc.and_(ended, winners["epoch"].is_valid())).select(["trial", "seed", "epoch"])
    ends = {(row["trial"], row["seed"]): row["epoch"] + 1 for row in known.to_pylist()}
    pairs, group = np.unique(np.stack([trial, seed], axis=1), axis=0, return_inverse=True)
    limits = np.array([ends.get((int(t), int(s)), _NEVER) for t, s in pairs], dtype=np.int64)
    return limits[group.reshape(-1)]


def _last_of_each(*sorted_keys: Ints) -> Ints:
    """Return the positions of the last row of every run of equal keys."""
    change = np.zeros(len(sorted_keys[0]), dtype=bool)
    change[-1:] = True
    for key in sorted_keys:
        change[:-1] |= key[1:] != key[:-1]
    return np.flatnonzero(change)


def _array(column: Any) -> Ints:
    array: Ints = column.to_numpy().astype(np.int64, copy=False)
    return array
