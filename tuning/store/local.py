"""The entries of a folder of the local disk, of any kind and name.

Arrow raises an error at a name that is not UTF-8, follows circular links, and waits forever at a pipe.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Iterator
from functools import cache
from pathlib import PurePath

from pyarrow import fs

from contrasweep.given_files import FILE, FOLDER, kind_of

log = logging.getLogger(__name__)


def oddity(path: str, belongs: str) -> str | None:
    """Say what is of the wrong kind at a path, or above it; None if nothing is, or nothing is there.

    Args:
        path: an absolute path.
        belongs: what should be there, `FILE` or `FOLDER`; above it, folders should be.
    """
    above = [(str(folder), FOLDER) for folder in reversed(PurePath(path).parents)]
    for one, wanted in (*above, (path, belongs)):
        kind = _kind_at(one)
        if kind is None:
            return None
        if kind != wanted:
            return f"{one} is {kind}, where {wanted} belongs"
    return None


def read(path: str) -> bytes:
    """Return all bytes of a file.

    Raises:
        OSError: there is none, or it cannot be read.
    """
    kind = _kind_at(path)
    if kind not in (FILE, None):
        # Opening a pipe would wait for a writer.
        raise OSError(errno.EINVAL, f"is {kind}", path)
    with open(path, "rb") as file:
        return file.read()


def _kind_at(path: str) -> str | None:
    """Return in words what a path leads to: `FILE`, `FOLDER`, a pipe, a broken link; None for nothing."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "a link that leads nowhere" if os.path.islink(path) else None
    except OSError:
        if not os.path.islink(path):
            raise
        return "a link that leads nowhere"
    return kind_of(mode)


def entries(folder: str, below: bool) -> list[fs.FileInfo]:
    """Return what stands inside a folder, unordered: folders as such, all else as files.

    A name that is not UTF-8 is left out, with a warning: Arrow cannot open it. A link that leads back to a
    folder above it is not followed.

    Args:
        folder: the folder; nothing is returned if it does not exist.
        below: include the contents of the folders inside it.

    Raises:
        OSError: the folder cannot be read, or is none.
    """
    try:
        return list(_entries(folder, below, ()))
    except FileNotFoundError:
        if os.path.islink(folder):
            raise
        return []


def _entries(folder: str, below: bool, above: tuple[tuple[int, int], ...]) -> Iterator[fs.FileInfo]:
    status = os.stat(folder)
    here = (status.st_dev, status.st_ino)
    if here in above:
        return
    with os.scandir(folder) as found:
        for entry in found:
            if not _is_utf8(entry.name):
                _skip(entry.path)
                continue
            info = _info(entry)
            if info is None:
                continue
            yield info
            if below and info.type == fs.FileType.Directory:
                try:
                    yield from _entries(entry.path, below, (*above, here))
                except FileNotFoundError:
                    continue  # deleted since it was listed


def _info(entry: os.DirEntry[str]) -> fs.FileInfo | None:
    """Return what Arrow would tell of an entry; None if it was deleted after the listing."""
    try:
        status = entry.stat()
    except OSError as error:
        if entry.is_symlink():
            # A link that leads nowhere: whoever reads it is told so.
            return fs.FileInfo(entry.path, fs.FileType.File)
        if isinstance(error, FileNotFoundError):
            return None
        raise
    is_folder = stat.S_ISDIR(status.st_mode)
    kind = fs.FileType.Directory if is_folder else fs.FileType.File
    size = None if is_folder else status.st_size
    return fs.FileInfo(entry.path, kind, mtime_ns=status.st_mtime_ns, size=size)


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


@cache
def _skip(path: str) -> None:
    """Warn of a name, once in a process: a command lists the same folder many times."""
    log.warning("Skipped %s: its name is not UTF-8", ascii(path))
