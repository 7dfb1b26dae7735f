"""Faults of the store: a full disk, a share that is away, two writers of one trial."""

import errno
import json
import logging
from collections.abc import Callable
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from faulty_disk import faulty_location

from contrasweep.tuning.experiment.statuses import Status
from contrasweep.tuning.store import (
    Heartbeat,
    Location,
    ResultsStore,
    StoreUnavailable,
    StudyRecord,
    TrialInfo,
    TrialOvertaken,
    TrialWriter,
    compact,
    end_trial,
)
from contrasweep.tuning.store.filesystem import Retry, StoreRefuses
from contrasweep.tuning.store.heartbeat import read_heartbeat
from contrasweep.tuning.store.tensorboard import TrialEvents

Info = Callable[..., TrialInfo]
WAITS = Retry().waits


@pytest.fixture
def faulty(tmp_path: Path, location: Location, record: StudyRecord) -> Location:
    """The results folder of `record`, on a disk that a test can break."""
    return faulty_location(tmp_path, Path(location.root))


def switch(location: Location) -> Path:
    file: Path = location.filesystem.handler.switch
    return file


def waited(location: Location) -> list[float]:
    seconds: list[float] = location.retry.wait.noted  # type: ignore[attr-defined]
    return seconds


def test_a_full_disk_is_tried_until_there_is_room(
    faulty: Location, location: Location, record: StudyRecord, info: Info
) -> None:
    waits = replace(faulty.retry.wait, repaired_after=3)  # type: ignore[type-var]
    faulty = replace(faulty, retry=Retry(wait=waits))
    writer = TrialWriter(faulty, record, info(), clock=lambda: 0.0)
    writer.start()
    writer.add_epoch(0, {"loss": 1.0}, seconds=0.0, train_seconds=0.0)
    switch(faulty).write_text("full")
    writer.finish("completed", {"loss": 1.0})
    assert waited(faulty) == list(WAITS[:3])
    store = ResultsStore(location)
    assert store.trials("digits-1")["status"].to_pylist() == ["completed"]
    assert store.epochs("digits-1")["metric.loss"].to_pylist() == [1.0]
    names = [i.base_name for kind in ("trials", "epochs") for i in location.files(f"{kind}/study=digits-1")]
    assert not [name for name in names if name.startswith("_")]


def test_a_disk_that_stays_full_ends_the_work_and_keeps_the_results(
    faulty: Location, location: Location, record: StudyRecord, info: Info
) -> None:
    writer = TrialWriter(faulty, record, info(), clock=lambda: 0.0)
    writer.start()
    switch(faulty).write_text("full")
    with pytest.raises(StoreUnavailable, match=r"writing .* tried 9 times in 60\.5 s.*No space left"):
        writer.finish("completed", {"loss": 1.0})
    assert waited(faulty) == list(WAITS)
    store = ResultsStore(location)
    assert store.trials("digits-1")["status"].to_pylist() == ["interrupted"]
    assert store.damaged("digits-1") == []


def test_a_store_that_is_away_is_not_taken_for_one_of_damaged_files(
    faulty: Location, location: Location, record: StudyRecord, attempt: Callable[..., TrialWriter]
) -> None:
    attempt(1, range(2), end="completed")
    disk = faulty.filesystem.handler
    opened, listed = disk.open_input_stream, disk.get_file_info_selector

    def goes_away(path: str) -> object:
        if "trials" in path:
            switch(faulty).write_text("away")
        return opened(path)

    def comes_back(selector: object) -> object:
        switch(faulty).unlink(missing_ok=True)
        return listed(selector)

    disk.open_input_stream, disk.get_file_info_selector = goes_away, comes_back
    with pytest.raises(StoreUnavailable, match="Input/output error"):
        ResultsStore(faulty).trials("digits-1")
    disk.open_input_stream, disk.get_file_info_selector = opened, listed
    switch(faulty).unlink()
    assert ResultsStore(faulty).trials("digits-1").equals(ResultsStore(location).trials("digits-1"))


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_read(
    faulty: Location, location: Location, record: StudyRecord, attempt: Callable[..., TrialWriter]
) -> None:
    attempt(1, range(1), end="completed", trial=0)
    bad = location.files("trials/study=digits-1")[0].path
    attempt(1, range(1), end="completed", trial=1)
    switch(faulty).write_text(bad)
    store = ResultsStore(faulty)
    assert store.trials("digits-1")["trial"].to_pylist() == [1]
    assert [file.path for file in store.damaged("digits-1")] == [bad]


REFUSALS = [
    (PermissionError(errno.EACCES, "Permission denied"), "Permission denied"),
    (OSError(errno.EROFS, "Read-only file system"), "Read-only file system"),
    (OSError("AWS Error ACCESS_DENIED during GetObject operation: x"), r"credentials .* lack a right.*x\)"),
    (OSError("AWS Error UNKNOWN: Unable to parse ExceptionName: ExpiredToken"), "credentials have expired"),
]


@pytest.mark.parametrize(("answer", "told"), REFUSALS)
def test_a_file_that_may_not_be_read_is_neither_damaged_nor_absent(
    faulty: Location,
    attempt: Callable[..., TrialWriter],
    answer: OSError,
    told: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    attempt(1, range(1), end="completed")
    disk = faulty.filesystem.handler
    opened = disk.open_input_stream

    def refuses(path: str) -> object:
        if "trials" in path:
            raise answer
        return opened(path)

    disk.open_input_stream = refuses
    with pytest.raises(StoreRefuses, match=f"permits no reading .*: .*{told}"):
        ResultsStore(faulty).trials("digits-1")
    assert ResultsStore(faulty).studies() == []
    assert "Skipped the study digits-1: the results store permits no reading" in caplog.text
    assert waited(faulty) == []


@pytest.mark.parametrize(("answer", "told"), REFUSALS)
def test_a_lost_right_to_write_is_told_at_once(faulty: Location, answer: OSError, told: str) -> None:
    def refuses(*_: object) -> None:
        raise answer

    faulty.filesystem.handler.open_output_stream = refuses
    with pytest.raises(StoreRefuses, match=f"permits no writing .*: .*{told}"):
        faulty.write("trials/row", b"")
    assert waited(faulty) == []


@pytest.mark.parametrize("content", [b"ours", b"another's"])
def test_a_new_file_that_was_written_before_the_answer_was_lost_is_ours(
    faulty: Location, location: Location, content: bytes
) -> None:
    def loses_the_answer(source: str, target: str) -> None:
        location.write("studies/new.json", content)
        raise OSError(errno.EIO, "no answer")

    faulty.filesystem.handler.move = loses_the_answer
    faulty = replace(faulty, retry=Retry(wait=lambda _: None))
    with nullcontext() if content == b"ours" else pytest.raises(FileExistsError):
        faulty.create("studies/new.json", b"ours")
    with pytest.raises(FileExistsError):
        faulty.create("studies/new.json", b"ours")


def test_an_answer_is_not_asked_for_again(faulty: Location) -> None:
    with pytest.raises(FileNotFoundError):
        faulty.read("studies/nothing.json")
    assert waited(faulty) == []


def test_a_heartbeat_that_is_late_is_not_written(
    faulty: Location, record: StudyRecord, caplog: pytest.LogCaptureFixture
) -> None:
    with Heartbeat(faulty, "digits-1", interval=3600) as heartbeat:
        switch(faulty).write_text("away")
        with pytest.raises(StoreUnavailable):
            heartbeat.beat()
        assert waited(faulty) == []
    assert waited(faulty) == list(WAITS[:4])
    assert "The driver of study digits-1 could not record its end" in caplog.text
    switch(faulty).unlink()
    left = read_heartbeat(faulty, "digits-1")
    assert left is not None
    assert left.state == "running"
    with Heartbeat(faulty, "digits-1", interval=3600):
        pass


def test_the_end_of_a_driver_is_recorded_when_the_store_is_back(
    faulty: Location, record: StudyRecord, caplog: pytest.LogCaptureFixture
) -> None:
    back = replace(faulty.retry.wait, repaired_after=2)  # type: ignore[type-var]
    faulty = replace(faulty, retry=Retry(wait=back))
    with Heartbeat(faulty, "digits-1", interval=3600):
        switch(faulty).write_text("away")
    assert ResultsStore(faulty).state("digits-1") == "ended"
    assert waited(faulty) == list(WAITS[:2])
    assert caplog.text == ""


def test_the_end_of_a_driver_is_tried_once_without_the_right_to_write(
    faulty: Location, record: StudyRecord, caplog: pytest.LogCaptureFixture
) -> None:
    with Heartbeat(faulty, "digits-1", interval=3600):
        switch(faulty).write_text("refuses")
    assert waited(faulty) == []
    assert "could not record its end: the results store permits no writing" in caplog.text


def test_the_end_is_not_recorded_over_a_driver_that_took_over_during_the_waits(
    faulty: Location, location: Location, record: StudyRecord
) -> None:
    def another_takes_over(seconds: float) -> None:
        switch(faulty).unlink()
        beat = {"driver": "another", "host": "h", "machine": None, "pid": 1, "time": 0.0, "state": "running"}
        location.write("studies/digits-1.heartbeat", json.dumps(beat).encode())

    with Heartbeat(replace(faulty, retry=Retry(wait=another_takes_over)), "digits-1", interval=3600):
        switch(faulty).write_text("full")
    assert read_heartbeat(location, "digits-1").driver == "another"  # type: ignore[union-attr]


def test_events_are_given_up_and_the_trial_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with closing(TrialEvents(tmp_path / "t")) as events:
        monkeypatch.setattr(events._writer, "add_event", full)
        with caplog.at_level(logging.WARNING):
            events.scalars(0, {"loss": 1.0})
            events.scalars(1, {"loss": 1.0})
            events.session_end("completed")
    assert caplog.text.count("No space left on device") == 1


def test_two_writers_that_take_one_number_do_not_both_go_on(
    faulty: Location, location: Location, record: StudyRecord, info: Info
) -> None:
    second = TrialWriter(location, record, info(kernel="rbf"))
    faulty.filesystem.handler.before_write = second.start
    first = TrialWriter(faulty, record, info(kernel="rbf"))
    with pytest.raises(TrialOvertaken, match=r"trial 0.* attempt 1"):
        first.start()
    assert not second.overtaken()
    second.finish("completed", {})
    (row,) = ResultsStore(location).trials("digits-1").to_pylist()
    assert (row["attempt"], row["status"]) == (1, "completed")
    assert len(location.files("trials/study=digits-1")) == 1


def test_a_worker_that_wakes_after_the_end_does_not_begin_again(
    location: Location, record: StudyRecord, info: Info
) -> None:
    end_trial(location, record, info(), "failed", error="timed out")
    with pytest.raises(TrialOvertaken):
        TrialWriter(location, record, info()).start()
    assert len(location.files("trials/study=digits-1")) == 1


@pytest.mark.parametrize(("end", "attempts"), [("failed", 2), ("completed", 1)])
def test_a_failed_final_run_begins_again_and_a_completed_one_does_not(
    location: Location, record: StudyRecord, info: Info, end: Status, attempts: int
) -> None:
    run = replace(info(), phase="final")
    end_trial(location, record, run, end)
    with nullcontext() if end == "failed" else pytest.raises(TrialOvertaken):
        TrialWriter(location, record, run).start()
    assert ResultsStore(location).trials("digits-1")["attempt"].to_pylist() == [attempts]


def test_a_worker_learns_that_it_was_overtaken(location: Location, record: StudyRecord, info: Info) -> None:
    writer = TrialWriter(location, record, info())
    writer.start()
    assert not writer.overtaken()
    TrialWriter(location, record, info(trial=1)).start()
    assert not writer.overtaken()
    end_trial(location, record, info(), "stopped")
    assert writer.overtaken()
    compact(location, "digits-1")
    assert writer.overtaken(), "its row was merged away"
