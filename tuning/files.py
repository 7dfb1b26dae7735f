"""Files that a command writes: check them before the work starts, and write them whole or not at all."""

import errno
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final

from contrasweep.tuning.errors import InputError

_NO_LINKS: Final = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""How a filesystem says that it has no hard links, such as FAT and some network shares."""


def check_file(path: Path, option: str = "", endings: Sequence[str] = ()) -> None:
    """Raise InputError unless the file `path` can be written. Writing creates missing folders.

    Args:
        path: the file.
        option: the option that gave the path, for the message.
        endings: the allowed endings; empty allows any.
    """
    given = f"{option} {path}".strip()
    if endings and path.suffix not in endings:
        raise InputError(f"{given}: give a file that ends in {', '.join(endings)}")
    if os.path.isdir(path):
        raise InputError(f"{given} is a folder: give a file")
    target = _target(path)
    _refuse_unwritable(target, given)
    if os.path.isfile(target):
        _refuse_unwritable(target.parent, given)  # `replace_file` creates its unfinished file there


def check_page(path: Path) -> None:
    """Raise InputError unless the HTML page `path` can be written."""
    check_file(path, "-o", (".html", ".htm"))


def check_folder(path: Path, option: str = "") -> None:
    """Raise InputError unless files can be written into the folder `path`. Writing creates the folder."""
    given = f"{option} {path}".strip()
    if os.path.exists(path) and not os.path.isdir(path):
        raise InputError(f"{given} is a file: give a folder")
    _refuse_unwritable(path.absolute(), given)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically: a concurrent reader sees the old file or the new one, whole.

    A link stays a link and leads to the new file. A device (`/dev/stdout`) is written to directly.
    """
    with written_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextmanager
def written_whole(path: Path) -> Iterator[BinaryIO]:
    """Open a file for a `with` block that writes it part by part; otherwise as `write_whole`."""
    target = _target(path)
    if target.exists() and not target.is_file():
        with target.open("wb") as device:
            yield device
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with _replaced(target) as file:
        yield file


def replace_file(target: Path, content: bytes) -> None:
    """Replace the file `target`, whose folder exists. A killed process leaves the old file or the new one."""
    with _replaced(target) as file:
        file.write(content)


def create_file(target: Path, content: bytes) -> None:
    """Write the new file `target`, whose folder exists, whole or not at all.

    Of several processes that create it at the same moment, one succeeds; also on a network share.

    Raises:
        FileExistsError: it exists.
    """
    with _replaced(target, is_new=True) as file:
        file.write(content)


def unfinished_name(name: str) -> str:
    """Return what the file `name` is called until it is complete; each call gives another name."""
    # A leading underscore hides the unfinished file from every Parquet dataset reader, ours included.
    return f"_{name}.{uuid.uuid4().hex[:8]}"


def finished_name(unfinished: str) -> str | None:
    """Return what a file of an `unfinished_name` would have been called; None of any other file."""
    found = re.fullmatch(r"_(.+)\.[0-9a-f]{8}", unfinished)
    return None if found is None else found[1]


def _place_new(unfinished: Path, target: Path) -> None:
    """Give a complete file its name, unless another file has it."""
    try:
        os.link(unfinished, target)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(target):
            raise FileExistsError(target) from error
        os.replace(unfinished, target)
    else:
        with suppress(OSError):
            unfinished.unlink()


@contextmanager
def _replaced(target: Path, *, is_new: bool = False) -> Iterator[BinaryIO]:
    unfinished = target.with_name(unfinished_name(target.name))
    try:
        with unfinished.open("wb") as file:
            yield file
            file.flush()
            # Without this a power cut may leave the new name on an empty file.
            os.fsync(file.fileno())
        if is_new:
            _place_new(unfinished, target)
        else:
            os.replace(unfinished, target)
    except BaseException as error:
        # An error during the cleanup must not hide the first error.
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.errno is not None:
            # A full disk does not say which file it had no room for.
            error.filename = str(target)
        raise


def _target(path: Path) -> Path:
    """Return the file that a path leads to. A device stays as given: it may be a pipe, which has no path."""
    device = os.path.exists(path) and not os.path.isfile(path)
    return path.absolute() if device else Path(os.path.realpath(path))


def _refuse_unwritable(path: Path, given: str) -> None:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except (OSError, ValueError) as error:  # a name too long; a character that no path has
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{given} cannot be written: {why}") from None
    # os.path, because pathlib raises where a folder may not be searched.
    there = next(one for one in (path, *path.parents) if os.path.exists(one))
    if there != path and not os.path.isdir(there):
        raise InputError(f"{given} cannot be written: {there} is not a folder")
    if not os.access(there, os.W_OK):
        raise InputError(f"{given} cannot be written: no permission for {there}")
