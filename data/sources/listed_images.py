"""Image files of any shape, listed from folders or tables, with labels and other facts of each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from contrasweep.data.decoding import LARGEST_SIDE
from contrasweep.data.encoded import FileImages, open_encoded
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.listing import names_below
from contrasweep.data.options import DatasetOption, Options, spelled_name
from contrasweep.data.root import Archive, DatasetDamaged
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.names import unknown

SIZE = "shorter side in pixels, then the centre is cut out"

CORRUPT_OPTION: Mapping[str, DatasetOption] = {
    "corrupt": DatasetOption("what to do with damaged images", str, "fail", choices=("fail", "skip"))
}
"""The option of every family of encoded images that can leave out damaged ones."""


COLOUR_OPTION: Mapping[str, DatasetOption] = {
    "colour": DatasetOption("channels", str, "auto", choices=("auto", "rgb", "grey"))
}
"""The option of every family whose images may be grey."""


@dataclass(frozen=True, eq=False)
class ListedImages:
    """Image files with their labels, conditions and bias labels.

    Attributes:
        files: N paths, by row.
        labels: int64 ``(N,)``.
        condition: float32 ``(N, Dz)``, or None.
        bias: int64 ``(N,)``, or None.
    """

    files: Sequence[Path]
    labels: Tensor
    condition: Tensor | None = None
    bias: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def subset(self, rows: Sequence[int]) -> "ListedImages":
        """Return the images of ``rows``, in its order."""
        index = torch.tensor(rows, dtype=torch.int64)
        condition, bias = (None if fact is None else fact[index] for fact in (self.condition, self.bias))
        files = self.files
        chosen = files.subset(rows) if isinstance(files, PathsBelow) else [files[row] for row in rows]
        return ListedImages(chosen, self.labels[index], condition, bias)

    def opened(
        self, size: int, options: Options = MappingProxyType({}), *, channels: int = 3, resize: bool = True
    ) -> LabelledImages:
        """Return the images as squares of `size` pixels, decoded on access; see `open_encoded`."""
        skip = options.get("corrupt") == "skip"
        shape, facts = (channels, size, size), (self.labels, self.condition, self.bias)
        return open_encoded(FileImages(self.files), shape, *facts, resize=resize, skip=skip)


def listed_family(
    archive: Archive,
    summary: str,
    size: int,
    facts: Callable[[Path, Options], Mapping[str, Any]],
    check: Callable[[Path, Options], None],
    read: Callable[[Path, Split, Options], ListedImages],
    options: Mapping[str, DatasetOption] = MappingProxyType({}),
) -> DatasetFamily:
    """Return the family of an archive of photographs, shown as colour squares.

    Args:
        archive: its name is that of the family.
        summary: see `DatasetSpec`.
        size: the side of the squares unless the option `size` says otherwise.
        facts: returns the other fields of `DatasetSpec`, by name.
        check: see `DatasetFamily`.
        read: lists the images of a split.
        options: those besides `size` and `corrupt`.
    """
    known = {"size": DatasetOption(SIZE, int, size, low=1, high=LARGEST_SIDE), **CORRUPT_OPTION, **options}

    def describe(root: Path, options: Options) -> DatasetSpec:
        own = {"source": archive.source, "folder": archive.folder, **facts(root, options)}
        side, name = int(options["size"]), spelled_name(archive.dataset, known, options)
        return DatasetSpec(name=name, summary=summary, channels=3, image_size=side, view_size=side, **own)

    def opened(root: Path, split: Split, options: Options) -> LabelledImages:
        return read(root, split, options).opened(int(options["size"]), options)

    return DatasetFamily(archive.dataset, summary, describe, check, opened, known)


@dataclass(frozen=True)
class PathsBelow(Sequence[Path]):
    """Files below a folder. Each access makes a path: 1.3 million of them would take half a gigabyte."""

    place: Path
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, row: Any) -> Any:
        return self.place / self.names[row]

    def subset(self, rows: Sequence[int]) -> "PathsBelow":
        """Return the files of ``rows``, in its order; no path is made."""
        return PathsBelow(self.place, tuple(self.names[row] for row in rows))


def list_classes(place: Path, classes: Sequence[str], endings: tuple[str, ...]) -> ListedImages:
    """List the images below the folder of each class; labels number the classes from 0 in their order.

    A class without a folder has no image. See `names_below`.
    """
    found = [names_below(place / name, endings) if (place / name).is_dir() else () for name in classes]
    names = tuple(f"{name}/{file}" for name, files in zip(classes, found, strict=True) for file in files)
    counts = torch.tensor([len(files) for files in found], dtype=torch.int64)
    return ListedImages(PathsBelow(place, names), torch.arange(len(counts)).repeat_interleave(counts))


def numbers_in_training(classes: Sequence[str], train: Sequence[str], dataset: str) -> Tensor:
    """Return the numbers, int64, that the training split gives to the classes of a test split.

    Raises:
        DatasetDamaged: the training split of `dataset` lacks one of them.
    """
    numbers = {name: number for number, name in enumerate(train)}
    other = next((name for name in classes if name not in numbers), None)
    if other is not None:
        raise DatasetDamaged(unknown(f"class of {dataset} in its test split", other, train))
    return torch.tensor([numbers[name] for name in classes], dtype=torch.int64)


def list_unlabelled(place: Path, endings: tuple[str, ...]) -> ListedImages:
    """List the images at any depth below a folder, without labels. See `names_below`."""
    names = names_below(place, endings)
    return ListedImages(PathsBelow(place, names), torch.full((len(names),), UNLABELLED, dtype=torch.int64))
