"""Image files named `ID_CLASS_BIAS.png` after their class and bias, as in bFFHQ and Corrupted CIFAR-10.

The layout is that of Lee et al., "Learning Debiased Representation via Disentangled Feature Augmentation"
(NeurIPS 2021), as read by its released code (github.com/kakaoenterprise/Learning-Debiased-Disentangled) and
by the code of FairKL: a share of bias-conflicting images is a folder `0.5pct` with `align/CLASS/` and
`conflict/CLASS/`.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch
from torch import Tensor

from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing

EXTENSIONS = (".png", ".jpg", ".jpeg")

ENOUGH, OF_EACH = 0.95, 0.9
"""A folder with smaller shares of the reported images (of all, of a class) is only part of the archive."""


@dataclass(frozen=True, eq=False)
class BiasedFiles:
    """Image files, with the class and the bias of each file: int64 ``(N,)``."""

    files: tuple[Path, ...]
    labels: Tensor
    bias: Tensor

    def __len__(self) -> int:
        return len(self.files)

    @property
    def conflicting(self) -> Tensor:
        """Whether the bias of an image differs from the usual bias of its class, bool ``(N,)``."""
        return self.labels != self.bias

    def only(self, chosen: Tensor) -> "BiasedFiles":
        """Return the files where ``chosen``, bool ``(N,)``, is true."""
        files = tuple(file for file, keep in zip(self.files, chosen.tolist(), strict=True) if keep)
        return BiasedFiles(files, self.labels[chosen], self.bias[chosen])


def read_biased_files(name: str, folders: Sequence[Path], values: int, how: str) -> BiasedFiles:
    """List the image files below some folders: folder by folder, sorted by path.

    Args:
        name: the name of the dataset, for messages.
        folders: the folders with images, at any depth.
        values: classes and biases are numbered 0..values-1.
        how: instructions for the user: what to get and where to put it.

    Raises:
        DatasetMissing: a folder is not there, or holds no image.
        DatasetDamaged: a file's name does not end in `_CLASS_BIAS`, or a number in it is out of range.
    """
    parts = [_listed(name, folder, values, how) for folder in folders]
    return BiasedFiles(
        tuple(file for part in parts for file in part.files),
        torch.cat([part.labels for part in parts]),
        torch.cat([part.bias for part in parts]),
    )


def check_training(
    name: str, train: BiasedFiles, values: int, reported: tuple[int, int], how: str, *, balanced: bool
) -> None:
    """Check that a training split is whole: the reported number of aligned and conflicting images of each
    class.

    Args:
        name: the name of the dataset, for messages.
        train: the split.
        values: classes and biases are numbered 0..values-1.
        reported: the numbers of aligned and of conflicting images, see `check_count`.
        how: instructions for the user: what to get and where to put it.
        balanced: whether the classes have equally many aligned images.

    Raises:
        DatasetMissing: a class has no image of one kind, or too few images are there.
    """
    conflicting = train.conflicting
    kinds = {"bias-aligned training": ~conflicting, "bias-conflicting training": conflicting}
    for (kind, chosen), count in zip(kinds.items(), reported, strict=True):
        labels = train.labels[chosen]
        counts = torch.bincount(labels, minlength=values)
        if not bool(counts.all()):
            without = ", ".join(map(str, (counts == 0).nonzero().flatten().tolist()))
            raise DatasetMissing(f"dataset {name!r} is incomplete: no {kind} image of class {without}. {how}")
        check_count(name, kind, labels, values, count, how, balanced=balanced and kind.startswith("bias-al"))


def check_count(
    name: str, kind: str, labels: Tensor, values: int, reported: int, how: str, *, balanced: bool
) -> None:
    """Check that the shares `ENOUGH` of all reported images and `OF_EACH` of each class are there.

    The counts come from papers, not from an archive. So an archive with a few images less is accepted, while
    an incomplete copy is refused.

    Args:
        name: the name of the dataset, for messages.
        kind: names these images in messages.
        labels: int64 ``(N,)``, of the images found.
        values: classes are numbered 0..values-1.
        reported: the number of images that should be there.
        how: instructions for the user: what to get and where to put it.
        balanced: whether the classes have equally many images.

    Raises:
        DatasetMissing: there are too few.
    """
    if len(labels) < ENOUGH * reported:
        raise DatasetMissing(
            f"dataset {name!r} is incomplete: it holds {len(labels):,} {kind} images, reported are "
            f"{reported:,}. {how}"
        )
    counts, usual = torch.bincount(labels, minlength=values), reported / values
    if balanced and int(counts.min()) < OF_EACH * usual:
        rarest = int(counts.argmin())
        raise DatasetMissing(
            f"dataset {name!r} is incomplete: it holds {int(counts[rarest]):,} {kind} images of class "
            f"{rarest}, of {round(usual):,}. {how}"
        )


def how_to_get(folder: str, source: str, holds: str) -> str:
    """Return instructions for messages: what to get and where to put it."""
    return (
        f"Get it from {source}; then pass --data-root DIR or set {ROOT_VARIABLE}=DIR, "
        f"where DIR/{folder} holds {holds}."
    )


def _listed(name: str, folder: Path, values: int, how: str) -> BiasedFiles:
    if not folder.is_dir():
        raise DatasetMissing(f"dataset {name!r} not found: {folder} does not exist. {how}")
    below = [folder, *sorted(entry for entry in folder.iterdir() if entry.is_dir())]
    found = _parsed(folder, values, tuple(place.stat().st_mtime_ns for place in below))
    if not len(found):
        raise DatasetMissing(f"dataset {name!r} is incomplete: {folder} holds no image. {how}")
    return found


@lru_cache(maxsize=16)
def _parsed(folder: Path, values: int, changed: tuple[int, ...]) -> BiasedFiles:
    """Return the names below a folder; `changed`, the times of change, keys the cache."""
    below = [Path(at) / name for at, _, names in os.walk(folder) for name in names]
    files = sorted(path for path in below if path.suffix.lower() in EXTENSIONS)
    numbers = torch.tensor([_class_and_bias(file, values) for file in files], dtype=torch.int64)
    labels, bias = numbers.view(-1, 2).unbind(dim=1)
    return BiasedFiles(tuple(files), labels, bias)


def _class_and_bias(file: Path, values: int) -> tuple[int, int]:
    words = file.stem.split("_")[-2:]
    if len(words) != 2 or not all(word.isdecimal() for word in words):
        raise DatasetDamaged(f"{file}: a name must end in _CLASS_BIAS, two whole numbers")
    label, bias = map(int, words)
    if max(label, bias) >= values:
        raise DatasetDamaged(
            f"{file}: class and bias must be 0..{values - 1}, its name says {label} and {bias}"
        )
    return label, bias
