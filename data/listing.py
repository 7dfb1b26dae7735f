"""Which files lie below a folder, and in what state: what a process remembers of a tree until it changes.

Nothing here imports torch.
"""

import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

_FolderState = tuple[int, int, int]
"""Device, number and time of change: the first two tell a folder from all others, whatever the path to it."""

_TREES = 2**14
"""How many folders' trees are remembered. The classes of a dataset have a folder each and are listed in turn:
if there are more of them than this, all are forgotten before the next look."""


def files_below(folder: Path, endings: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield the files at any depth below a folder with one of these endings, each as the parts of its path.

    Endings are in lower case; those of the files may have any case. Hidden files and folders do not count:
    programs keep thumbnails and copies there (`.ipynb_checkpoints`, macOS's `._NAME.jpg`). Links to folders
    are followed. A folder counts once, and one above `folder` does not count: a link that leads back up would
    have no end, or would bring the images of other classes.
    """
    return _files_below(folder, endings, {})


def names_below(folder: Path, endings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of the files of `files_below`, sorted by path.

    A process remembers them until one of the folders has another time of change, as it gets where a name
    comes, goes or changes.
    """
    tree = _remembered(folder, endings)
    if not tree.folders or any(_folder_state(place) != state for place, state in tree.folders.items()):
        folders: dict[str, _FolderState] = {}
        found = sorted(_files_below(folder, endings, folders))
        tree.folders, tree.names = folders, tuple("/".join(parts) for parts in found)
    return tree.names


def file_state(file: str) -> tuple[int, int]:
    """Return size and time of change of a file; -1 as the size of a missing one."""
    try:
        found = os.stat(file)
    except OSError:
        return -1, 0
    return found.st_size, found.st_mtime_ns


class _Tree:
    """What is remembered of the files below a folder: their names, and the states of all folders."""

    folders: Mapping[str, _FolderState] = MappingProxyType({})
    names: tuple[str, ...] = ()


@lru_cache(maxsize=_TREES)
def _remembered(folder: Path, endings: tuple[str, ...]) -> _Tree:
    """Return the place of what is remembered, at first empty."""
    return _Tree()


def _files_below(
    folder: Path, endings: tuple[str, ...], states: dict[str, _FolderState]
) -> Iterator[tuple[str, ...]]:
    """Yield the files of `files_below`, and note the state of each folder.

    It is the state before the folder is read: what changes meanwhile is noticed by the next look.
    """
    states[str(folder)] = _folder_state(folder)
    seen = {states[str(folder)][:2], *(_folder_state(one)[:2] for one in folder.resolve().parents)}
    for at, folders, names in os.walk(folder, followlinks=True):
        # Links come last: a folder keeps its own name rather than that of a link to it.
        shown = sorted((os.path.islink(f"{at}/{name}"), name) for name in folders if not name.startswith("."))
        folders.clear()
        for _, name in shown:
            state = _folder_state(f"{at}/{name}")
            if state[:2] not in seen:
                seen.add(state[:2])
                states[f"{at}/{name}"] = state
                folders.append(name)
        below = Path(at).relative_to(folder).parts
        files = (name for name in sorted(names) if not name.startswith("."))
        yield from ((*below, name) for name in files if name.lower().endswith(endings))


def _folder_state(folder: str | Path) -> _FolderState:
    try:
        found = os.stat(folder)
    except OSError:  # it has gone
        return -1, -1, -1
    return found.st_dev, found.st_ino, found.st_mtime_ns
