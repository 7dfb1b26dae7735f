"""Where a results folder keeps what belongs to a study, and that nothing of it outlives the study."""

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.store import (
    Location,
    StoreError,
    StudyBusy,
    StudyRecord,
    layout,
    save_study,
    study_names,
)
from contrasweep.tuning.store.parts import Key, compacted_path, epoch_path, trial_path
from contrasweep.tuning.store.removal import delete_study, held_by
from contrasweep.tuning.store.unstarted import removed_if_refused


def _files_of(study: str) -> list[str]:
    """Return the path of one file of each kind that a study may have, but its record and heartbeat."""
    return [
        trial_path(study, Key(0, 0, 1)),
        epoch_path(study, Key(250, 0, 1), 0),
        compacted_path("trials", study),
        *_files_without_a_row(study),
    ]


def _files_without_a_row(study: str) -> list[str]:
    return [
        layout.checkpoint_path(study, 0, 7),
        layout.encoder_path(study, 0, 7),
        layout.snapshot_path(study, 0, 7, 10),
        f"{layout.run_events_folder(study, 0, 7)}/events",
        f"{layout.events_folder(study)}/experiment",
    ]


def _files(location: Location) -> list[str]:
    return sorted(location.within(info) for info in location.files("", below=True))


def test_a_deleted_study_leaves_no_file_and_takes_no_other(location: Location, record: StudyRecord) -> None:
    others = sorted([*_files_of("digits-10"), layout.heartbeat_path("digits-10")])
    unfinished = [f"studies/_digits-1.{what}.0123abcd" for what in ("heartbeat", "json")]
    for path in [*_files_of(record.name), *unfinished, *others]:
        location.write(path, b"1234")
    assert sum(one.files for one in held_by(location, record.name)) == len(_files_of(record.name))
    delete_study(location, record.name)
    assert _files(location) == others


@pytest.mark.parametrize("deleted", range(5))
def test_a_study_that_is_half_deleted_mixes_no_trials(
    location: Location, record: StudyRecord, deleted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial that lost its row begins again as attempt 1: nothing else of its number is left."""
    for path in _files_of(record.name):
        location.write(path, b"1234")
    steps, delete = iter(range(deleted)), Location.delete_folder

    def dying(self: Location, place: str) -> None:
        if next(steps, None) is None:
            raise SystemExit("killed")
        delete(self, place)

    monkeypatch.setattr(Location, "delete_folder", dying)
    with pytest.raises(SystemExit):
        delete_study(location, record.name)
    left = {path.split("/")[0] for path in _files(location)} - {"studies"}
    assert len(left) == 5 - deleted
    assert "trials" in left


@pytest.mark.parametrize("path", ["epochs/study=digits-1/x.parquet", *_files_without_a_row("digits-1")])
def test_a_new_study_does_not_inherit_files(location: Location, record: StudyRecord, path: str) -> None:
    """Such as those of a worker that did not know that its study was deleted."""
    location.delete(layout.record_path(record.name))
    location.write(path, b"1234")
    with pytest.raises(StoreError, match="files of a study named 'digits-1' without its record"):
        save_study(location, record)
    assert study_names(location) == []
    delete_study(location, record.name)
    save_study(location, record)


def test_a_study_that_another_command_creates_at_this_moment_is_not_taken_for_remains(
    location: Location, record: StudyRecord
) -> None:
    location.write(f"{layout.events_folder(record.name)}/experiment", b"1234")
    with pytest.raises(StoreError, match="A study named 'digits-1' exists"):
        save_study(location, record)


def test_a_refused_study_leaves_no_file(location: Location, record: StudyRecord) -> None:
    for path in _files_without_a_row(record.name):
        location.write(path, b"a plan")
    with pytest.raises(InputError), removed_if_refused(location, [record.name]):
        raise InputError("no such database")
    assert _files(location) == []


def test_a_study_that_another_driver_may_run_stays_whole(location: Location, record: StudyRecord) -> None:
    with pytest.raises(StudyBusy), removed_if_refused(location, [record.name]):
        raise StudyBusy("it is being run")
    assert study_names(location) == [record.name]


def test_a_refused_study_with_a_row_stays_whole(location: Location, record: StudyRecord) -> None:
    files = _files_of(record.name)
    for path in files:
        location.write(path, b"1234")
    with pytest.raises(InputError), removed_if_refused(location, [record.name]):
        raise InputError("no such database")
    assert study_names(location) == [record.name]
    assert set(files) <= set(_files(location))


@pytest.mark.parametrize(("path", "epoch"), [("a/epoch-00010.safetensors", 10), ("a/epoch-x", None)])
def test_a_snapshot_tells_its_epoch(path: str, epoch: int | None) -> None:
    assert layout.snapshot_epoch(path) == epoch


def test_the_folder_of_an_encoder_tells_its_trial() -> None:
    _, _, run, _ = layout.encoder_path("digits-1", 123_456, 7).split("/")
    assert layout.trial_of(run) == 123_456
    assert layout.trial_of("notes") is None
