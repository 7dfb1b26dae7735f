"""Compaction: merge the many small files of a study into one file of trials and one of epochs."""

from __future__ import annotations

import time
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from contrasweep.tuning.experiment.statuses import ENDED
from contrasweep.tuning.store.attempts import winning_epochs, winning_trials
from contrasweep.tuning.store.filesystem import Location, StoreError
from contrasweep.tuning.store.heartbeat import living_driver
from contrasweep.tuning.store.layout import Kind
from contrasweep.tuning.store.parts import (
    DamagedFile,
    Key,
    Parts,
    compacted_path,
    read_parts,
    write_table,
)
from contrasweep.tuning.store.study import load_study
from contrasweep.tuning.store.unfinished import clear_abandoned


@dataclass(frozen=True)
class Compaction:
    """The result of a compaction.

    Attributes:
        trials: rows in the merged trials file.
        epochs: rows in the merged epochs file.
        removed: files whose rows the merged ones hold, or that no longer count; they are deleted.
        damaged: files that could not be read and were left alone.
    """

    trials: int
    epochs: int
    removed: int
    damaged: tuple[DamagedFile, ...]


def compact(
    location: Location, study: str, *, by_driver: bool = False, now: float | None = None
) -> Compaction:
    """Merge a study's files. A compaction that is killed loses nothing and can be run again.

    Each merged file is complete and visible before its first source is deleted. Between these moments rows
    exist twice, and readers keep one of them. A trial that has not ended keeps its own file, because its
    row will still be replaced. Rows of overtaken attempts are dropped. Unfinished files that killed writers
    left long ago are deleted, also those of checkpoints and encoders.

    Args:
        location: the results folder.
        study: its name.
        by_driver: the caller is the driver of the study, and no trial is running.
        now: seconds since 1970 UTC; the present by default.

    Raises:
        StoreError: there is no such study, or another process drives it.
    """
    now = time.time() if now is None else now
    record = load_study(location, study)
    if not by_driver and living_driver(location, study) is not None:
        raise StoreError(f"Study {study!r} is being run: its driver compacts it when it ends.")
    trials = read_parts(location, "trials", record)
    epochs = read_parts(location, "epochs", record)
    winners = winning_trials(trials.table())
    ended = pc.is_in(winners["status"], value_set=pa.array(ENDED))
    settled, unsettled = winners.filter(ended), winners.filter(pc.invert(ended))
    kept = winning_epochs(epochs.table(), winners)
    removed = _merge(location, "trials", study, settled, trials, keep=Key.of_rows(unsettled))
    removed += _merge(location, "epochs", study, kept, epochs, keep=set())
    clear_abandoned(location, study, now)
    return Compaction(settled.num_rows, kept.num_rows, removed, (*trials.damaged, *epochs.damaged))


def _merge(
    location: Location, kind: Kind, study: str, rows: pa.Table, sources: Parts, *, keep: set[Key]
) -> int:
    """Write the merged file, then delete its sources, except those with a row in ``keep``; count them."""
    # Without rows to keep, no row is looked at: a merged file of epochs may hold millions.
    replaced = [
        part for part, table in sources.tables.items() if not keep or keep.isdisjoint(Key.of_rows(table))
    ]
    if not replaced or (len(replaced) == 1 and replaced[0].compacted):
        return 0
    if rows.num_rows:
        write_table(location, compacted_path(kind, study), rows)
    for part in replaced:
        location.delete(part.path)
    return len(replaced)
