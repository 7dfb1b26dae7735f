"""Caches of datasets: derived files in the user's cache folder, and contents of files in memory."""

import errno
import json
import shutil
import tempfile
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from filelock import FileLock

from contrasweep.data.root import cache_folder

_RECORD = "files.json"
"""The sizes of the other files of a kept folder by name; a folder without it is not whole."""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT)

Arguments = TypeVarTuple("Arguments")
Result = TypeVar("Result")


def _changed(path: Path) -> int:
    """Return the time of change of a file or folder; -1 if it is not there, which its reader reports."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return -1


def while_unchanged(
    size: int, state: Callable[[Path], Hashable] = _changed
) -> Callable[[Callable[[*Arguments], Result]], Callable[[*Arguments], Result]]:
    """Decorate a function that reads files or lists folders, so that it remembers its last `size` results.

    It reads again when one of the paths among its arguments has another state, by default another time of
    change: that of a folder tells which names it holds, and nothing of what lies deeper.
    """

    def decorate(read: Callable[[*Arguments], Result]) -> Callable[[*Arguments], Result]:
        @lru_cache(maxsize=size)
        def remembered(states: tuple[Hashable, ...], *args: *Arguments) -> Result:
            return read(*args)

        @wraps(read)
        def current(*args: *Arguments) -> Result:
            return remembered(tuple(state(path) for path in args if isinstance(path, Path)), *args)

        return current

    return decorate


def state_of(files: Iterable[Path]) -> str:
    """Return path, size and time of change of each file, a line each, to name what is made of the files."""
    states = ((file, file.stat()) for file in files)
    return "\n".join(f"{file} {state.st_size} {state.st_mtime_ns}" for file, state in states)


class CacheUnusable(OSError):
    """The cache cannot be written, or its disk is full; the message says where it is and how to move it."""


def kept_folder(kind: str, identity: str, write: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, after writing it if it is missing.

    It appears whole or not at all. One process writes it while others wait. A folder that has lost a file or
    a part of one is written again: a power cut takes what the disk had not stored yet, and a cluster clears
    old files from its caches one by one.

    Args:
        kind: the folder in the cache for all content of this kind.
        identity: the name of the content.
        write: writes the content into an empty folder, as files without folders.

    Raises:
        CacheUnusable: the folder is missing, and the cache cannot be written.
    """
    parent = cache_folder() / kind
    folder = parent / identity
    if _is_whole(folder):
        return folder
    try:
        parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(parent / f"{identity}.lock").acquire()
    except OSError as error:
        raise _unusable(parent, error) from error
    with lock:
        if not _is_whole(folder):
            _write_whole(folder, write)
    return folder


def _is_whole(folder: Path) -> bool:
    """Whether a folder has all of its files, with the sizes that they were written with."""
    try:
        sizes = json.loads((folder / _RECORD).read_bytes())
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError):
        return False


def _write_whole(folder: Path, write: Callable[[Path], None]) -> None:
    """Write a folder under another name, and rename it; whoever calls holds its lock."""
    prefix = f"_{folder.name}-"
    # Drafts of writers that were killed, because a writer that lives would hold the lock. A draft's name ends
    # in eight letters of `mkdtemp`.
    for left in folder.parent.glob(f"{prefix}{'?' * 8}"):
        shutil.rmtree(left, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=prefix, dir=folder.parent))
    try:
        write(draft)
        sizes = {file.name: file.stat().st_size for file in draft.iterdir()}
        (draft / _RECORD).write_text(json.dumps(sizes), encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        draft.rename(folder)
    except BaseException as error:
        shutil.rmtree(draft, ignore_errors=True)
        if isinstance(error, OSError) and error.errno in _NO_SPACE:
            raise _unusable(folder.parent, error) from error
        raise


def _unusable(place: Path, cause: OSError) -> CacheUnusable:
    return CacheUnusable(
        f"the cache {place} cannot be written: {cause.strerror or cause}. Free its disk, or set "
        "XDG_CACHE_HOME to a folder that can be written"
    )
