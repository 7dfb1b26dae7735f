"""The folder of the datasets, and the errors for missing or damaged files."""

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT_VARIABLE = "CONTRASWEEP_DATA"


class DatasetMissing(ValueError):
    """Files of a dataset are missing or incomplete; the message says which, and where to get them."""


class DatasetDamaged(DatasetMissing):
    """A file of a dataset has unusable contents; the message names the file and the row."""


def data_root(given: str | Path | None = None) -> Path:
    """Return the folder that holds the datasets; it need not exist.

    It is the given folder, else ``$CONTRASWEEP_DATA``, else ``contrasweep/data`` in the user's cache
    (``$XDG_CACHE_HOME`` or ``~/.cache``).

    Raises:
        DatasetMissing: no folder can have that path, or it may not be looked at.
    """
    named = given or os.environ.get(ROOT_VARIABLE) or cache_folder() / "data"
    return path_below(Path(), named, "the folder of the datasets")


def path_below(root: Path, given: str | Path, what: str = "the path") -> Path:
    """Return the path that a user gave for files of a dataset: absolute, from ``~``, or under ``root``.

    Nothing need be there.

    Raises:
        DatasetMissing: no file can have that path, or it may not be looked at; the message calls it ``what``.
    """
    try:
        path = root / Path(given).expanduser()
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return path
    except (OSError, RuntimeError, ValueError) as error:  # a long name; a user without a home; a NUL
        why = getattr(error, "strerror", None) or error
        raise DatasetMissing(f"{what} {given} cannot be used: {why}") from None
    return path


def file_of_option(root: Path, option: str, given: str, holds: str) -> Path:
    """Return the file that an option of a dataset names, which is absolute, from ``~``, or under ``root``.

    Args:
        root: the data root.
        option: the name of the option, for the message.
        given: its value.
        holds: what the file says, as the message ends: ``and names each image``.

    Raises:
        DatasetMissing: there is no such file.
    """
    file = path_below(root, given)
    if not file.is_file():
        raise DatasetMissing(
            f"{option}={given}: {file} is not there, or no file. It is absolute, or under the data root "
            f"(--data-root DIR or {ROOT_VARIABLE}), {holds}."
        )
    return file


def cache_folder() -> Path:
    """Return our folder in the user's cache (``$XDG_CACHE_HOME`` or ``~/.cache``); it need not exist."""
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "contrasweep"


@dataclass(frozen=True)
class Archive:
    """What messages say about the files of a dataset: where they come from, and where they go.

    Attributes:
        dataset: the dataset's name.
        source: where to get the files.
        folder: the folder under the data root.
        holds: what must be in the folder.
    """

    dataset: str
    source: str
    folder: str
    holds: str

    @property
    def how(self) -> str:
        """The sentence that says what to get and where to put it."""
        return (
            f"Get it from {self.source}; then pass --data-root DIR or set {ROOT_VARIABLE}=DIR, "
            f"where DIR/{self.folder} holds {self.holds}."
        )

    def not_found(self, why: str) -> DatasetMissing:
        """Return the error for a dataset that is not there at all."""
        return DatasetMissing(f"dataset {self.dataset!r} not found: {why}. {self.how}")

    def incomplete(self, why: str) -> DatasetMissing:
        """Return the error for a dataset that is there in part."""
        return DatasetMissing(f"dataset {self.dataset!r} is incomplete: {why}. {self.how}")

    def check_folder(self, root: Path, below: str = "") -> None:
        """Raise DatasetMissing unless the dataset's folder, or one below it, is there."""
        place = root / self.folder / below
        if not place.is_dir():
            missing = self.not_found(f"{place} {'is not a folder' if place.exists() else 'does not exist'}")
            raise DatasetMissing(f"{missing}{_copy_in(root, self.dataset)}")

    def check_listed(self, files: Sequence[Path]) -> None:
        """Raise DatasetMissing, with their number and the first, if image files are not there."""
        missing = [file for file in files if not file.is_file()]
        if missing:
            raise self.incomplete(
                f"{len(missing):,} of its {len(files):,} images are not there, the first is {missing[0]}"
            )


def _copy_in(root: Path, dataset: str) -> str:
    """Return a sentence with a copy of a dataset in Parquet files under the root; empty if there is none."""
    folders = sorted(root.glob(f"{glob.escape(dataset)}*")) if root.is_dir() else []
    for folder in folders:
        # `cifar100` is no copy of `cifar10`.
        own = not folder.name.removeprefix(dataset)[:1].isalnum()
        if own and any(any(folder.glob(one)) for one in ("*.parquet", "data/*.parquet")):
            return f" Or use the images in {folder}, which are the dataset hub-parquet:path={folder.name}."
    return ""


def check_files(name: str, root: Path, folder: str, sizes: Mapping[str, int | None], source: str) -> None:
    """Check that ``root/folder`` holds every file with its exact size (None: any size), without reading.

    Raises:
        DatasetMissing: the folder or a file is missing, or a file is too short or too long.
    """
    place = root / folder
    archive = Archive(name, source, folder, ", ".join(sizes))
    archive.check_folder(root)
    missing = [file for file in sizes if not (place / file).is_file()]
    if missing:
        raise archive.incomplete(f"{place} lacks {', '.join(missing)}")
    for file, expected in sizes.items():
        found = (place / file).stat().st_size
        if expected is not None and found != expected:
            raise DatasetMissing(
                f"dataset {name!r} is damaged: {place / file} has {found:,} bytes, "
                f"expected {expected:,}. {archive.how}"
            )
