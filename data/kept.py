"""What is made once from a dataset's files and kept in the user's cache, for all processes of a machine."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from contrasweep.data.root import cache_folder


def kept_folder(kind: str, identity: str, write: Callable[[Path], None]) -> Path:
    """Return a folder of the cache, written if it is not there.

    It appears whole or not at all, and one process writes it while others wait.

    Args:
        kind: the folder in the cache that holds all of the kind.
        identity: names the content.
        write: puts the content into the empty folder that it is given.
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
