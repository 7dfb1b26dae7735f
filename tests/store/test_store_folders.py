"""The folders of a large study, and of one that never began."""

from collections.abc import Callable
from typing import Any

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.store import (
    Location,
    ResultsStore,
    StudyRecord,
    TrialInfo,
    TrialOvertaken,
    TrialWriter,
    compact,
    end_trial,
)
from contrasweep.tuning.store import parts as parts_module
from contrasweep.tuning.store.attempts import next_attempt
from contrasweep.tuning.store.unstarted import removed_if_refused


def test_the_listings_of_a_trial_do_not_grow_with_its_study(
    location: Location, record: StudyRecord, info: Callable[..., TrialInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trials lie in folders of limited size. Rows are the same in any folder; a compaction joins them."""
    monkeypatch.setattr(parts_module, "_TRIALS_IN_A_FOLDER", 10)
    seen: list[int] = []
    files = Location.files

    def counted(self: Location, folder: str, *, below: bool = False) -> Any:
        found = files(self, folder, below=below)
        seen.append(len(found))
        return found

    monkeypatch.setattr(Location, "files", counted)
    for trial in range(45):
        writer = TrialWriter(location, record, info(trial, kernel="rbf"))
        writer.start()
        writer.add_epoch(0, {"val.accuracy": trial / 100}, seconds=1.0, train_seconds=0.5)
        writer.flush()
        end_trial(location, record, info(trial, kernel="rbf"), "stopped")
    # Its folder and the study's own, each with a running and an ended row of ten trials.
    assert max(seen) <= 20
    store = ResultsStore(location)
    assert store.trials(record.name)["trial"].to_pylist() == list(range(45))
    accuracy = [trial / 100 for trial in range(45)]
    assert store.trials(record.name)["metric.val.accuracy"].to_pylist() == accuracy
    with pytest.raises(TrialOvertaken):
        TrialWriter(location, record, info(33, kernel="rbf")).start()
    compact(location, record.name)
    assert len(files(location, "trials/study=digits-1", below=True)) == 1
    assert store.epochs(record.name)["metric.val.accuracy"].to_pylist() == accuracy
    with pytest.raises(TrialOvertaken):
        TrialWriter(location, record, info(33, kernel="rbf")).start()


def test_an_attempt_that_a_compaction_moves_while_it_is_looked_for_is_counted(
    location: Location, record: StudyRecord, info: Callable[..., TrialInfo], monkeypatch: pytest.MonkeyPatch
) -> None:
    for trial in (0, 100):
        writer = TrialWriter(location, record, info(trial, kernel="rbf"))
        writer.start()
        writer.finish("failed", {})
    files, pending = Location.files, [True]

    def overtaken(self: Location, folder: str, *, below: bool = False) -> Any:
        found = files(self, folder, below=below)
        if pending:
            pending.clear()
            compact(location, record.name)
        return found

    monkeypatch.setattr(Location, "files", overtaken)
    assert next_attempt(location, record, trial=100, seed=0) == 2


def test_a_new_study_that_is_refused_leaves_nothing(location: Location, record: StudyRecord) -> None:
    location.write("tensorboard/digits-1/00000-0/events", b"a plan")
    with pytest.raises(InputError), removed_if_refused(location, ["digits-1"]):
        raise InputError("no such database")
    left = sorted(info.base_name for info in location.entries("", below=True))
    assert left == ["studies", "tensorboard"]
