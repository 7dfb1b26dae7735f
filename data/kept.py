"""Derived files in the user's cache: made once from a dataset, for all processes of a machine."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from contrasweep.data.root import cache_folder


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
