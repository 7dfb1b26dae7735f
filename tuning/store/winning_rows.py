"""Which rows count if attempts repeat, overtake each other or resume late: pure functions of tables."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from contrasweep.tuning.store.schema import FINAL_STATUSES

# The columns of a trial table that winning_trials and winning_epochs need.
TRIAL_RULE_COLUMNS: Final = ["trial", "seed", "attempt", "status", "epoch", "finished"]

_NEVER: Final = np.iinfo(np.int64).max


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


def _overtaken_from(
    trial: NDArray[np.int64], seed: NDArray[np.int64], attempt: NDArray[np.int64], epoch: NDArray[np.int64]
) -> NDArray[np.int64]:
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


def _ended_before(trial: NDArray[np.int64], seed: NDArray[np.int64], winners: pa.Table) -> NDArray[np.int64]:
    """Return for each row one past the last epoch of its (trial, seed), if its end is known."""
    ended = pc.is_in(winners["status"], value_set=pa.array(FINAL_STATUSES))
    known = winners.filter(pc.and_(ended, winners["epoch"].is_valid())).select(["trial", "seed", "epoch"])
    ends = {(row["trial"], row["seed"]): row["epoch"] + 1 for row in known.to_pylist()}
    pairs, group = np.unique(np.stack([trial, seed], axis=1), axis=0, return_inverse=True)
    limits = np.array([ends.get((int(t), int(s)), _NEVER) for t, s in pairs], dtype=np.int64)
    return limits[group.reshape(-1)]


def _last_of_each(*sorted_keys: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of the last row of every run of equal keys."""
    change = np.zeros(len(sorted_keys[0]), dtype=bool)
    change[-1:] = True
    for key in sorted_keys:
        change[:-1] |= key[1:] != key[:-1]
    return np.flatnonzero(change)


def _array(column: Any) -> NDArray[np.int64]:
    array: NDArray[np.int64] = column.to_numpy().astype(np.int64, copy=False)
    return array
