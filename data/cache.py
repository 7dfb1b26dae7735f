"""Caches of datasets: derived files in the user's cache folder, and contents of files in memory."""

import shutil
import tempfile
from collections.abc import Callable, Hashable, Iterable
from functools import lru_cache, wraps
from pathlib import Path
from typing import TypeVar, TypeVarTuple

from filelock import FileLock

from contrasweep.data.root import cache_folder

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


def kept_folder(kind: str, identity: str, write: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, after writing it if it is missing.

    It appears whole or not at all. One process writes it while others wait.

    Args:
        kind: the folder in the cache for all content of this kind.
        identity: the name of the content.
        write: writes the content into an empty folder.
    """
    parent = cache_folder() / kind
    folder = parent / identity
    if folder.is_dir():
        return folder
    parent.mkdir(parents=True, exist_ok=True)
    with FileLock(parent / f"{identity}.lock"):
        if folder.is_dir():
            return folder
        draft = Path(tempfile.mkdtemp(prefix=f"_{identity}-", dir=parent))
        try:
            write(draft)
            draft.rename(folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return folder
