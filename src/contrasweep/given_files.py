"""Files that a user gives to be read: refused before they are opened if reading them could not end well.

A pipe or a device has no end, and a file of many gigabytes is no list of settings.
"""

import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

FILE: Final = "a file"
FOLDER: Final = "a folder"
_KINDS: Final = (
    (stat.S_ISREG, FILE),
    (stat.S_ISDIR, FOLDER),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)
MIB = 2**20
_CHUNK = 2**16


class FileRefused(ValueError):
    """A file cannot be read; the message names it, and says what it is and what is allowed."""


def kind_of(mode: int) -> str:
    """Return in words what an entry of the disk with this mode is: a file, a folder, a pipe, a socket ..."""
    return next((words for is_kind, words in _KINDS if is_kind(mode)), "a device")


def check_given(path: str | Path, most: int | None = None) -> None:
    """Check that a path leads to a regular file of at most ``most`` bytes (None: any number), by its entry.

    Raises:
        FileRefused: there is no such file, it is a folder, a pipe or a device, or it is larger.
    """
    try:
        state = os.stat(path)
    except FileNotFoundError:
        raise FileRefused(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:  # ValueError: a character that no path has
        raise FileRefused(f"{path}: cannot be read ({_reason(error)})") from None
    if not stat.S_ISREG(state.st_mode):
        raise FileRefused(f"{path}: is {kind_of(state.st_mode)}; allowed: a regular file")
    if most is not None and state.st_size > most:
        raise _too_large(path, f"{state.st_size:,}", most)


def read_given(path: str | Path, most: int | None = None) -> bytes:
    """Return the content of a regular file of at most ``most`` bytes (None: any number).

    Raises:
        FileRefused: see `check_given`, or the file may not be read.
    """
    check_given(path, most)
    try:
        with open(path, "rb") as file:
            content = file.read() if most is None else _up_to(file, most + 1)
    except OSError as error:
        raise FileRefused(f"{path}: cannot be read ({_reason(error)})") from None
    if most is not None and len(content) > most:
        raise _too_large(path, f"more than {most:,}", most)
    return content


def read_given_text(path: str | Path, most: int) -> str:
    """Return the text of a regular file in UTF-8 of at most ``most`` bytes.

    Raises:
        FileRefused: see `read_given`, or the content is not UTF-8.
    """
    try:
        return read_given(path, most).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileRefused(f"{path}: is not UTF-8 text (byte {error.start})") from None


def _up_to(file: BinaryIO, most: int) -> bytes:
    """Return the first `most` bytes of a file, or all; a read takes the memory that it asks for."""
    size = min(most, os.fstat(file.fileno()).st_size + 1)
    chunks = [file.read(size)]
    # The entries of /proc have no size, and a file may grow.
    while chunks[-1] and (left := most - sum(map(len, chunks))):
        chunks.append(file.read(min(left, _CHUNK)))
    return b"".join(chunks)


def _too_large(path: str | Path, size: str, most: int) -> FileRefused:
    return FileRefused(f"{path}: has {size} bytes; allowed: at most {most:,}")


def _reason(error: OSError | ValueError) -> str:
    return str(getattr(error, "strerror", None) or error)
