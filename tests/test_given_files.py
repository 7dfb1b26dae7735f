"""A user's file is refused before it is opened if reading it could not end well."""

import os
from pathlib import Path

import pytest

from contrasweep.given_files import FileRefused, check_given, read_given, read_given_text


def test_a_regular_file_is_read_up_to_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "mine"
    file.write_bytes(b"four")
    assert read_given(file, 4) == b"four"
    with pytest.raises(FileRefused, match=r"mine: has 4 bytes; allowed: at most 3"):
        read_given(file, 3)


def test_what_is_no_file_is_refused_without_opening_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for a writer
    for path, kind in (
        (tmp_path / "pipe", "a pipe"),
        (tmp_path, "a folder"),
        (Path("/dev/zero"), "a device"),
    ):
        with pytest.raises(FileRefused, match=f"is {kind}; allowed: a regular file"):
            check_given(path)
    with pytest.raises(FileRefused, match="there is no such file"):
        check_given(tmp_path / "absent")
    with pytest.raises(FileRefused, match=r"cannot be read \(.*embedded null"):
        check_given("a\0b")


def test_a_file_without_a_size_is_read_up_to_its_limit() -> None:
    with pytest.raises(FileRefused, match="has more than 5 bytes"):
        read_given("/proc/self/status", 5)


def test_text_is_utf_8(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"ab\xff")
    with pytest.raises(FileRefused, match=r"mine: is not UTF-8 text \(byte 2\)"):
        read_given_text(tmp_path / "mine", 10)
