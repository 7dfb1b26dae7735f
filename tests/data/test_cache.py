"""Folders in the user's cache: written once, whole, and again where they are not whole any more."""

import errno
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from contrasweep.data.cache import CacheUnusable, kept_folder

_KILLED = """
import os
from contrasweep.data.cache import kept_folder

def write(folder):
    (folder / "a.bin").write_bytes(b"half")
    os._exit(9)

kept_folder("made", "abc", write)
"""
"""A process that ends as if it were killed, in the middle of its writing."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of all content of the kind "made" in an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "contrasweep/made"


def _write(folder: Path) -> None:
    (folder / "a.bin").write_bytes(b"whole")
    (folder / "b.bin").write_bytes(b"")


def _refused(folder: Path) -> None:
    raise AssertionError("written again")


def test_a_folder_is_written_once(made: Path) -> None:
    folder = kept_folder("made", "abc", _write)
    assert folder == made / "abc"
    assert (folder / "a.bin").read_bytes() == b"whole"
    assert kept_folder("made", "abc", _refused) == folder
    assert kept_folder("made", "abd", _write) != folder


@pytest.mark.parametrize("lost", ["cut off", "a file", "every file", "an unwritten list"])
def test_a_folder_that_is_not_whole_is_written_again(made: Path, lost: str) -> None:
    folder = kept_folder("made", "abc", _write)
    if lost == "cut off":
        (folder / "a.bin").write_bytes(b"who")
    elif lost == "a file":
        (folder / "b.bin").unlink()
    elif lost == "every file":
        for file in folder.iterdir():
            file.unlink()
    else:
        (folder / "files.json").write_bytes(b"")
    assert (kept_folder("made", "abc", _write) / "a.bin").read_bytes() == b"whole"
    assert (folder / "b.bin").is_file()
    kept_folder("made", "abc", _refused)


def test_what_a_killed_process_has_left_is_removed(made: Path) -> None:
    other = made / "_abc-def-12345678"
    other.mkdir(parents=True)
    killed = subprocess.run([sys.executable, "-c", _KILLED], check=False)
    assert killed.returncode == 9
    assert len([*made.glob("_abc-????????/a.bin")]) == 1
    kept_folder("made", "abc", _write)
    assert [*made.glob("_*")] == [other], "the draft of another name stays"


def test_of_two_that_need_a_folder_one_writes_it(made: Path) -> None:
    begun, go_on, written = threading.Event(), threading.Event(), []

    def slowly(folder: Path) -> None:
        begun.set()
        assert go_on.wait(10)
        written.append(folder)
        _write(folder)

    threads = [threading.Thread(target=kept_folder, args=("made", "abc", slowly)) for _ in range(2)]
    for thread in threads:
        thread.start()
    assert begun.wait(10)
    assert not (made / "abc").exists()
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert len(written) == 1
    kept_folder("made", "abc", _refused)


def test_a_writer_that_fails_leaves_nothing(made: Path) -> None:
    with pytest.raises(AssertionError):
        kept_folder("made", "abc", _refused)
    assert [one for one in made.iterdir() if one.is_dir()] == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_told_with_the_place_of_the_cache(made: Path, number: int) -> None:
    def full(folder: Path) -> None:
        raise OSError(number, "no room")

    with pytest.raises(CacheUnusable, match=rf"cache {made} cannot be written: no room\. .* XDG_CACHE_HOME"):
        kept_folder("made", "abc", full)
    assert [one for one in made.iterdir() if one.is_dir()] == []


def test_an_error_of_what_is_read_is_not_said_of_the_cache(made: Path) -> None:
    def unreadable(folder: Path) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "/images/1.png")

    with pytest.raises(PermissionError, match="/images/1"):
        kept_folder("made", "abc", unreadable)


def test_a_cache_that_cannot_be_made_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CacheUnusable, match="Not a directory"):
        kept_folder("made", "abc", _write)
