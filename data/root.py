"""The folder of the datasets, and the errors for missing or damaged files."""

import os
from collections.abc import Mapping
from pathlib import Path

ROOT_VARIABLE = "CONTRASWEEP_DATA"


class DatasetMissing(ValueError):
    """Files of a dataset are missing or incomplete; the message says which, and where to get them."""


class DatasetDamaged(DatasetMissing):
    """A file of a dataset has unusable contents; the message names the file and the row."""


def data_root(given: Path | None = None) -> Path:
    """Return the folder that holds the datasets; it need not exist.

    It is the given folder, else ``$CONTRASWEEP_DATA``, else ``contrasweep/data`` in the user's cache
    (``$XDG_CACHE_HOME`` or ``~/.cache``).
    """
    if given is not None:
        return Path(given).expanduser()
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return Path(named).expanduser()
    return cache_folder() / "data"


def cache_folder() -> Path:
    """Return our folder in the user's cache (``$XDG_CACHE_HOME`` or ``~/.cache``); it need not exist."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "contrasweep"


def check_files(name: str, root: Path, folder: str, sizes: Mapping[str, int | None], source: str) -> None:
    """Check that ``root/folder`` holds every file with its exact size (None: any size), without reading.

    Raises:
        DatasetMissing: the folder or a file is missing, or a file is too short or too long.
    """
    place = root / folder
    how = (
        f"Get it from {source}; then pass --data-root DIR or set {ROOT_VARIABLE}=DIR, "
        f"where DIR/{folder} holds {', '.join(sizes)}."
    )
    if not place.is_dir():
        kind = "is not a folder" if place.exists() else "does not exist"
        raise DatasetMissing(f"dataset {name!r} not found: {place} {kind}. {how}")
    missing = [file for file in sizes if not (place / file).is_file()]
    if missing:
        raise DatasetMissing(f"dataset {name!r} is incomplete: {place} lacks {', '.join(missing)}. {how}")
    for file, expected in sizes.items():
        found = (place / file).stat().st_size
        if expected is not None and found != expected:
            raise DatasetMissing(
                f"dataset {name!r} is damaged: {place / file} has {found:,} bytes, "
                f"expected {expected:,}. {how}"
            )
