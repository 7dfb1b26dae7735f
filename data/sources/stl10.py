"""STL-10 from its binary files, in the layout of torchvision. Most of its images have no label."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.encoded import check_labels
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import check_files
from contrasweep.data.spec import family_of
from contrasweep.data.streaming import StreamedImages

FOLDER = "stl10_binary"
SOURCE = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz (unpack it)"
CLASS_NAMES = ("airplane", "bird", "car", "cat", "deer", "dog", "horse", "monkey", "ship", "truck")
WITH_UNLABELLED = "train+unlabeled"

_SHAPE = (3, 96, 96)
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


def _parts(split: str, options: Options) -> tuple[str, ...]:
    unlabelled = split == "train" and options["split"] == WITH_UNLABELLED
    return (split, "unlabeled") if unlabelled else (split,)


def _check(root: Path, options: Options) -> None:
    parts = (*_parts("train", options), "test")
    sizes = {f"{part}_X.bin": _PARTS[part] * math.prod(_SHAPE) for part in parts}
    labels = {f"{part}_y.bin": _PARTS[part] for part in ("train", "test")}
    check_files("stl10", root, FOLDER, {**sizes, **labels}, SOURCE)


def _sizes(root: Path, options: Options) -> Mapping[str, int]:
    train = sum(_PARTS[part] for part in _parts("train", options))
    return {"train_size": train, "test_size": _PARTS["test"], "unlabelled_size": train - _PARTS["train"]}


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
            count = (place / "unlabeled_X.bin").stat().st_size // math.prod(_SHAPE)
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


STL10 = family_of(
    DatasetSpec(
        name="stl10",
        summary="113,000 photographs of 96 x 96 pixels, 13,000 of them in 10 classes",
        classes=10,
        channels=3,
        image_size=96,
        view_size=96,
        train_size=sum(_PARTS.values()) - _PARTS["test"],
        test_size=_PARTS["test"],
        unlabelled_size=_PARTS["unlabeled"],
        licence="images from ImageNet: for research (Coates, Ng and Lee 2011)",
        source=SOURCE,
        folder=FOLDER,
        class_names=CLASS_NAMES,
    ),
    check=_check,
    read=lambda root, split, options: read_stl10(root, _parts(split, options)),
    vary=_sizes,
    checksums=_checksums,
    options={
        "split": DatasetOption(
            "which images train: with or without the unlabelled ones",
            str,
            WITH_UNLABELLED,
            choices=(WITH_UNLABELLED, "train"),
        )
    },
)
