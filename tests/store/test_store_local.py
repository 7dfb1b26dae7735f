"""Paths of the wrong kind and odd names on the local disk: final, told in words, and never waited for."""

import errno
import os
import shutil
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from pyarrow.fs import FileSystem

from contrasweep.tuning.store import Location, ResultsStore, StoreError, StudyRecord, local, open_location
from contrasweep.tuning.store import filesystem as filesystem_module
from contrasweep.tuning.store.filesystem import Retry, WrongKind


@pytest.fixture
def location(tmp_path: Path) -> Location:
    """A results folder in which nothing is tried again: that would be a failure of the test."""
    return replace(open_location(tmp_path / "results", writable=True), retry=Retry(wait=_no_second_try))


def _no_second_try(seconds: float) -> None:
    raise AssertionError("tried again")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(path))


KINDS: list[tuple[str, Callable[[Path], object]]] = [
    ("a folder", Path.mkdir),
    ("a pipe", os.mkfifo),
    ("a socket", _socket),
    ("a device", lambda path: path.symlink_to("/dev/zero")),
    ("a link that leads nowhere", lambda path: path.symlink_to("nowhere")),
    ("a link that leads nowhere", lambda path: path.symlink_to(path.name)),
]


@pytest.mark.parametrize(("words", "make"), KINDS)
def test_what_is_no_file_is_not_read(
    location: Location, words: str, make: Callable[[Path], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(location.root)  # the path of a socket has at most 107 bytes
    make(Path("x"))
    with pytest.raises(WrongKind, match=f"results/x is {words}, where a file belongs"):
        location.read("x")


@pytest.mark.parametrize("below", [False, True])
def test_what_is_no_folder_is_not_listed(location: Location, below: bool) -> None:
    location.write("studies", b"")
    Path(location.root, "trials").symlink_to("nowhere")
    with pytest.raises(WrongKind, match="studies is a file, where a folder belongs"):
        location.files("studies", below=below)
    with pytest.raises(WrongKind, match="studies is a file, where a folder belongs"):
        location.files("studies/below", below=below)
    with pytest.raises(WrongKind, match="trials is a link that leads nowhere, where a folder belongs"):
        location.files("trials", below=below)
    assert location.files("nothing", below=below) == []


def test_nothing_is_written_in_place_of_a_folder_or_below_a_file(location: Location) -> None:
    Path(location.root, "a").mkdir()
    location.write("b", b"")
    with pytest.raises(WrongKind, match="a is a folder, where a file belongs"):
        location.write("a", b"")
    with pytest.raises(WrongKind, match="b is a file, where a folder belongs"):
        location.write("b/c/d", b"")
    with pytest.raises(WrongKind, match="a is a folder, where a file belongs"):
        location.delete("a")
    with pytest.raises(WrongKind, match="b is a file, where a folder belongs"):
        location.delete_folder("b")


def test_a_folder_that_cannot_be_deleted_yet_is_tried_again(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that does not know of the deletion may write into the folder meanwhile."""
    location.write("trials/study=a/x.parquet", b"")
    delete, answers = filesystem_module._delete_folder_if_there, [errno.ENOTEMPTY]

    def busy(filesystem: FileSystem, path: str) -> None:
        if answers:
            raise OSError(answers.pop(), "Directory not empty")
        delete(filesystem, path)

    monkeypatch.setattr(filesystem_module, "_delete_folder_if_there", busy)
    waits: list[float] = []
    replace(location, retry=Retry(waits=(1.0,), wait=waits.append)).delete_folder("trials/study=a")
    assert waits == [1.0]
    assert location.entries("trials") == []


def test_names_that_are_not_utf8_are_skipped_and_told_once(
    location: Location, caplog: pytest.LogCaptureFixture
) -> None:
    location.write("studies/a.json", b"")
    Path(location.root, "studies", os.fsdecode(b"\xff.json")).touch()
    for _ in range(2):
        assert [info.base_name for info in location.files("studies")] == ["a.json"]
    assert caplog.text.count("udcff.json': its name is not UTF-8") == 1


def test_folders_are_listed_through_links_but_not_in_circles(location: Location) -> None:
    location.write("a/b/x", b"")
    Path(location.root, "a/b/up").symlink_to("../../a")
    Path(location.root, "other").mkdir()
    Path(location.root, "other/to").symlink_to("../a/b")
    assert [location.within(info) for info in location.files("a", below=True)] == ["a/b/x"]
    assert "other/to/x" in [location.within(info) for info in location.files("other", below=True)]


def test_a_listing_tells_what_arrow_tells(location: Location) -> None:
    location.write("a/x.parquet", b"123")
    location.write("a/b/y", b"")
    ours = {info.path: info for info in location.entries("a", below=True)}
    os.utime(ours[f"{location.root}/a/x.parquet"].path, ns=(0, 1_700_000_000_123_456_789))
    (found,) = (info for info in location.entries("a") if info.base_name == "x.parquet")
    (arrows,) = location.filesystem.get_file_info([found.path])
    assert (found.type, found.mtime_ns, found.extension) == (arrows.type, arrows.mtime_ns, "parquet")
    assert set(ours) == {f"{location.root}/a/{name}" for name in ("x.parquet", "b", "b/y")}


def test_other_studies_are_listed_beside_one_of_the_wrong_kind(
    location: Location, record: StudyRecord, caplog: pytest.LogCaptureFixture
) -> None:
    Path(location.root, "studies/folder.json").mkdir()
    Path(location.root, "studies/link.json").symlink_to("nowhere")
    store = ResultsStore(location)
    assert [study.name for study in store.studies()] == ["digits-1"]
    assert "Skipped the study folder" in caplog.text
    assert "Skipped the study link" in caplog.text
    with pytest.raises(StoreError, match=r"folder\.json is a folder, where a file belongs"):
        store.study("folder")


def test_a_part_of_the_wrong_kind_is_skipped_and_named(
    location: Location, record: StudyRecord, attempt: Callable[..., object]
) -> None:
    attempt(1, range(1), end="completed")
    Path(location.root, "trials/study=digits-1/x.parquet").symlink_to("nowhere")
    store = ResultsStore(location)
    assert store.trials("digits-1").num_rows == 1
    (damaged,) = store.damaged("digits-1")
    assert damaged.reason.endswith("is a link that leads nowhere, where a file belongs")


def test_rows_of_a_study_of_the_wrong_kind_leave_the_list_whole(
    location: Location, record: StudyRecord, caplog: pytest.LogCaptureFixture
) -> None:
    location.write("trials/study=digits-1", b"")
    assert ResultsStore(location).studies() == []
    assert "Skipped the study digits-1" in caplog.text


def test_a_file_of_which_nothing_may_be_known_is_not_left_out() -> None:
    """In a folder with the right to list but not to enter (mode 0o644), only root would see more."""

    class Locked:
        name = "row.parquet"

        def stat(self) -> os.stat_result:
            raise PermissionError(errno.EACCES, "Permission denied", self.name)

        def is_symlink(self) -> bool:
            return False

    with pytest.raises(PermissionError):
        local._info(cast("os.DirEntry[str]", Locked()))


def test_what_is_deleted_after_it_was_listed_is_left_out(
    location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process merges or deletes a study at this moment."""
    for path in ("a/x", "gone/y", "z"):
        location.write(path, b"")
    tell = local._info

    def deleted(entry: "os.DirEntry[str]") -> object:
        if entry.name == "z":
            os.unlink(entry.path)
        info = tell(entry)
        if entry.name == "gone":
            shutil.rmtree(entry.path)
        return info

    monkeypatch.setattr(local, "_info", deleted)
    assert [location.within(info) for info in location.files("", below=True)] == ["a/x"]
