"""Photographs listed in a dataset's tables: files of any shape, with labels and attributes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor

from contrasweep.data.encoded import DecodedImages, FileImages, Files
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import ROOT_VARIABLE, DatasetMissing
from contrasweep.data.spec import DatasetFamily, DatasetOption, DatasetSpec, Options
from contrasweep.data.streaming import StreamedImages


@dataclass(frozen=True, eq=False)
class ListedImages:
    """Image files with their labels and conditions.

    Attributes:
        files: N paths, by row.
        labels: int64 ``(N,)``.
        condition: float32 ``(N, Dz)``, or None.
    """

    files: Files
    labels: Tensor
    condition: Tensor | None = None

    def subset(self, rows: Sequence[int]) -> "ListedImages":
        """Return the images of ``rows``, in its order."""
        index = torch.tensor(rows, dtype=torch.int64)
        condition = None if self.condition is None else self.condition[index]
        return ListedImages(tuple(self.files[row] for row in rows), self.labels[index], condition)


def listed_options(size: int) -> Mapping[str, DatasetOption]:
    """Return the options of `open_listed`; `size` is the default side of the squares."""
    return MappingProxyType(
        {
            "size": DatasetOption("shorter side in pixels, then the centre is cut out", int, size, low=1),
            "corrupt": DatasetOption("what to do with damaged images", str, "fail", choices=("fail", "skip")),
        }
    )


def listed_spec(family: DatasetFamily, options: Options, **facts: Any) -> DatasetSpec:
    """Return the facts of a member of `family`; its images are colour squares of the option `size`.

    Args:
        family: has the options of `listed_options`.
        options: the values of the options.
        facts: the other fields of `DatasetSpec`.
    """
    size = int(options["size"])
    return DatasetSpec(
        name=family.full_name(options),
        summary=family.summary,
        channels=3,
        image_size=size,
        view_size=size,
        **facts,
    )


def open_listed(listed: ListedImages, options: Options) -> LabelledImages:
    """Return the images as squares ``(3, size, size)``, decoded on access.

    With `corrupt=skip`, every image is decoded once, and damaged images are left out.
    """
    size = int(options["size"])
    source = DecodedImages(FileImages(listed.files), (3, size, size), resize=True)
    if options["corrupt"] != "skip":
        return LabelledImages(StreamedImages(source), listed.labels, listed.condition)
    rows = source.sound_rows()
    condition = None if listed.condition is None else listed.condition[rows]
    return LabelledImages(StreamedImages(source, rows), listed.labels[rows], condition)


def where_to_put(source: str, folder: str, holds: str) -> str:
    """Return the sentence with the source of a dataset and the contents of its folder."""
    return (
        f"Get it from {source}; then pass --data-root DIR or set {ROOT_VARIABLE}=DIR, "
        f"where DIR/{folder} holds {holds}."
    )


def check_folder(name: str, root: Path, folder: str, how: str) -> None:
    """Check that ``root/folder`` is there.

    Raises:
        DatasetMissing: it is missing.
    """
    place = root / folder
    if not place.is_dir():
        raise DatasetMissing(f"dataset {name!r} not found: {place} is not a folder. {how}")


def check_listed(name: str, files: Sequence[Path], how: str) -> None:
    """Check that every image file exists, without opening it.

    Raises:
        DatasetMissing: some are missing; the message has their number, the first one, and ``how`` to get
            them.
    """
    missing = [file for file in files if not file.is_file()]
    if missing:
        raise DatasetMissing(
            f"dataset {name!r} is incomplete: {len(missing):,} of its {len(files):,} images are not there, "
            f"the first is {missing[0]}. {how}"
        )
