"""Where commands write: refused before the work, whole or not at all."""

import os
from pathlib import Path

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import check_file, check_folder, write_whole


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_text("old")
    return path


def test_a_file_may_be_new_in_folders_that_are_made(tmp_path: Path, file: Path) -> None:
    for path in (file, tmp_path / "new.html", tmp_path / "a" / "b" / "new.html"):
        check_file(path, "-o")
    check_file(tmp_path / "new.html", endings=(".html", ".htm"))
    check_folder(tmp_path / "a" / "b")
    assert list(tmp_path.iterdir()) == [file], "checking makes nothing"
    write_whole(tmp_path / "a" / "b" / "new.html", "text")
    assert (tmp_path / "a" / "b" / "new.html").read_text() == "text"


def test_what_cannot_be_written_is_refused_with_the_option_that_gave_it(tmp_path: Path, file: Path) -> None:
    with pytest.raises(InputError, match=r"-o .* is a folder: give a file"):
        check_file(tmp_path, "-o")
    with pytest.raises(InputError, match=r"^x\.gif: give a file that ends in \.png, \.pdf"):
        check_file(Path("x.gif"), endings=(".png", ".pdf"))
    with pytest.raises(InputError, match=r"--save .* is a file: give a folder"):
        check_folder(file, "--save")
    for check in (check_file, check_folder):
        with pytest.raises(InputError, match=f"-o .* cannot be written: {file} is not a folder"):
            check(file / "under" / "it", "-o")


def test_a_folder_without_permission_is_refused(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path)
    for check in (check_file, check_folder):
        with pytest.raises(InputError, match=f"cannot be written: no permission for {tmp_path}"):
            check(tmp_path / "new", "-o")
    with pytest.raises(InputError, match=f"cannot be written: no permission for {tmp_path}"):
        check_file(file, "-o")  # the new one is made beside it
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "page.html")
    with pytest.raises(InputError, match=f"cannot be written: no permission for {tmp_path}"):
        check_file(tmp_path / "link", "-o")


def test_a_writing_that_breaks_leaves_the_old_file_and_nothing_else(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        write_whole(file, b"new")
    assert file.read_text() == "old"
    assert list(file.parent.iterdir()) == [file]


def test_links_stay_links_and_devices_devices(
    tmp_path: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replaced: list[Path] = []
    replace = os.replace
    monkeypatch.setattr(os, "replace", lambda new, old: (replaced.append(old), replace(new, old)))
    link = tmp_path / "link"
    link.symlink_to(file)
    write_whole(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert replaced == [file], "whole or not at all, behind a link too"
    check_file(Path(os.devnull))
    write_whole(Path(os.devnull), "gone")
    assert not Path(os.devnull).is_file()
