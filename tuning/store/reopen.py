"""Open failed trials of a search again: a resumed sweep then runs them, as it runs interrupted ones."""

from __future__ import annotations

from contrasweep.tuning.store.attempts import next_attempt
from contrasweep.tuning.store.filesystem import Location
from contrasweep.tuning.store.parts import Key, trial_path, write_rows
from contrasweep.tuning.store.reader import ResultsStore
from contrasweep.tuning.store.record import StudyRecord


def reopen_failed(location: Location, record: StudyRecord) -> list[int]:
    """Record every failed run of a study as interrupted, in an attempt of its own; return their trials.

    Only the driver of the study may do so, before it reads the trials: a search that has learned from a
    failure would go on with it. Of a trial with several seeds, those that failed are opened.

    Raises:
        OSError: the store cannot be read or written; what was written is kept, and a repeated call goes on.
    """
    rows = ResultsStore(location).trials(record.name).to_pylist()
    failed = [row for row in rows if row["status"] == "failed"]
    emptied = dict.fromkeys(record.columns.metric_cells({}))
    for row in failed:
        attempt = next_attempt(location, record, trial=row["trial"], seed=row["seed"])
        again = {name: row[name] for name in record.columns.trials.names} | emptied
        # The trial ran until it failed: its times stay, or a budget would count the time since then.
        again |= {"attempt": attempt, "status": "interrupted", "error": None}
        path = trial_path(record.name, Key(row["trial"], row["seed"], attempt))
        write_rows(location, path, [again], record.columns.trials)
    return sorted({row["trial"] for row in failed})
