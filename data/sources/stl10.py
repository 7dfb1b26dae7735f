"""STL-10 from its binary files, in the layout of torchvision. Most of its images have no label."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.encoded import check_labels
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.root import check_files
from contrasweep.data.spec import DatasetFamily, DatasetOption, DatasetSpec, Options, Split
from contrasweep.data.streaming import StreamedImages

FOLDER = "stl10_binary"
SOURCE = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz (unpack it)"
CLASS_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
WITH_UNLABELLED = "train+unlabeled"

_SHAPE = (3, 96, 96)
_IMAGE_BYTES = 3 * 96 * 96
_PARTS = {"train": 5_000, "test": 8_000, "unlabeled": 100_000}


class RawImages:
    """Uncompressed images in files, one after the other: an `ImageRows`.

    STL-10 stores the pixels of a channel by columns.
    """

    shape = _SHAPE

    def __init__(self, files: Sequence[Path]) -> None:
        self._arrays = [np.memmap(file, dtype=np.uint8, mode="r").reshape(-1, *_SHAPE) for file in files]
        self._ends = np.cumsum([len(array) for array in self._arrays])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def prepare_random_access(self) -> None:
        """Do nothing: rows can be read in any order."""

    def decode(self, rows: Sequence[int], out: Tensor) -> None:
        """Write the images of ``rows`` into ``out``, see `data.streaming.ImageRows`."""
        wanted = np.asarray(rows)
        file = np.searchsorted(self._ends, wanted, side="right")
        into = out.numpy()
        for number in np.unique(file):
            here = file == number
            first = self._ends[number] - len(self._arrays[number])
            into[here] = self._arrays[number][wanted[here] - first].transpose(0, 1, 3, 2)


@dataclass(frozen=True)
class _Files:
    """Return the files of some parts, with their sizes in bytes."""

    pixels: dict[str, int]
    labels: dict[str, int]


def _files(*parts: str) -> _Files:
    return _Files(
        {f"{part}_X.bin": _PARTS[part] * _IMAGE_BYTES for part in parts},
        {f"{part}_y.bin": _PARTS[part] for part in parts if part != "unlabeled"},
    )


def _check(root: Path, options: Options) -> None:
    files = _files("train", "test", *_unlabelled(options))
    check_files("stl10", root, FOLDER, {**files.pixels, **files.labels}, SOURCE)


def _unlabelled(options: Options) -> tuple[str, ...]:
    return ("unlabeled",) if options["split"] == WITH_UNLABELLED else ()


def _describe(root: Path, options: Options) -> DatasetSpec:
    unlabelled = sum(_PARTS[part] for part in _unlabelled(options))
    return DatasetSpec(
        name=STL10.full_name(options),
        summary="photographs of 96 x 96 pixels: 13,000 in 10 classes, 100,000 without a label",
        classes=10,
        channels=3,
        image_size=96,
        view_size=96,
        train_size=_PARTS["train"] + unlabelled,
        test_size=_PARTS["test"],
        unlabelled_size=unlabelled,
        licence="images from ImageNet: for research (Coates, Ng and Lee 2011)",
        source=SOURCE,
        folder=FOLDER,
        class_names=CLASS_NAMES,
    )


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    return read_stl10(root, (split, *_unlabelled(options)) if split == "train" else (split,))


def read_stl10(root: Path, parts: Sequence[str]) -> LabelledImages:
    """Read "train", "test" or "unlabeled", or several of them in turn, ``(N, 3, 96, 96)`` on disk.

    Labels are 0..9 in the order of `CLASS_NAMES`; unlabelled images have `UNLABELLED`.

    Raises:
        DatasetDamaged: a label is out of range.
    """
    place = root / FOLDER
    images = RawImages([place / f"{part}_X.bin" for part in parts])
    labels = []
    for part in parts:
        if part == "unlabeled":
            count = (place / "unlabeled_X.bin").stat().st_size // _IMAGE_BYTES
            labels.append(torch.full((count,), UNLABELLED, dtype=torch.int64))
        else:
            file = place / f"{part}_y.bin"
            # The file counts labels from 1.
            labels.append(torch.from_numpy(np.fromfile(file, dtype=np.uint8)).long() - 1)
            check_labels(labels[-1], len(CLASS_NAMES), f"{file} (stored as one more)")
    return LabelledImages(StreamedImages(images), torch.cat(labels))


def _checksums() -> dict[str, str]:
    from torchvision import datasets

    listed = (*datasets.STL10.train_list, *datasets.STL10.test_list)
    return {f"{FOLDER}/{file}": md5 for file, md5 in listed}


STL10 = DatasetFamily(
    name="stl10",
    summary="113,000 photographs of 96 x 96 pixels, 13,000 of them in 10 classes",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "split": DatasetOption(
            "which images train: with or without the unlabelled ones",
            str,
            WITH_UNLABELLED,
            choices=(WITH_UNLABELLED, "train"),
        )
    },
    checksums=_checksums,
)
