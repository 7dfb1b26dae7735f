"""Image files named `ID_CLASS_BIAS.png` after their class and bias, as in bFFHQ and Corrupted CIFAR-10.

The layout is that of Lee et al., "Learning Debiased Representation via Disentangled Feature Augmentation"
(NeurIPS 2021), as read by its released code (github.com/kakaoenterprise/Learning-Debiased-Disentangled) and
by the code of FairKL: a share of bias-conflicting images is a folder `0.5pct` with `align/CLASS/` and
`conflict/CLASS/`.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from contrasweep.data.kept import while_unchanged
from contrasweep.data.root import Archive, DatasetDamaged
from contrasweep.data.sources.listed_images import ListedImages, images_below

ENOUGH, OF_EACH = 0.95, 0.9
"""A folder with smaller shares of the reported images (of all, of a class) is only part of the archive."""


def list_biased(archive: Archive, folders: Sequence[Path], values: int) -> ListedImages:
    """List the image files at any depth below some folders: folder by folder, sorted by path.

    Classes and biases are numbered 0..values-1.

    Raises:
        DatasetMissing: a folder is not there, or holds no image.
        DatasetDamaged: a file's name does not end in `_CLASS_BIAS`, or a number in it is out of range.
    """
    files: list[Path] = []
    numbers: list[tuple[int, int]] = []
    for folder in folders:
        if not folder.is_dir():
            raise archive.not_found(f"{folder} does not exist")
        below = sorted(entry for entry in folder.iterdir() if entry.is_dir())
        found = _parsed(values, folder, *below)
        if not found:
            raise archive.incomplete(f"{folder} holds no image")
        files += found
        numbers += found.values()
    labels, bias = torch.tensor(numbers).unbind(dim=1)
    return ListedImages(tuple(files), labels, bias=bias)


def is_conflicting(images: ListedImages) -> Tensor:
    """Return whether the bias of an image differs from the usual one of its class, bool ``(N,)``."""
    assert images.bias is not None
    return images.labels != images.bias


def check_training(
    archive: Archive, train: ListedImages, values: int, reported: tuple[int, int], *, balanced: bool
) -> None:
    """Check that a training split is whole, by the reported numbers of aligned and of conflicting images.

    ``balanced`` says whether the classes have equally many aligned images; see `check_count`.

    Raises:
        DatasetMissing: a class has no image of one kind, or too few images are there.
    """
    conflicting = is_conflicting(train)
    for kind, chosen, count in zip(
        ("aligned", "conflicting"), (~conflicting, conflicting), reported, strict=True
    ):
        name, labels = f"bias-{kind} training", train.labels[chosen]
        without = (torch.bincount(labels, minlength=values) == 0).nonzero().flatten().tolist()
        if without:
            raise archive.incomplete(f"no {name} image of class {', '.join(map(str, without))}")
        check_count(archive, name, labels, values, count, balanced=balanced and kind == "aligned")


def check_count(
    archive: Archive, kind: str, labels: Tensor, values: int, reported: int, *, balanced: bool
) -> None:
    """Check that the shares `ENOUGH` of all reported images and `OF_EACH` of each class are there.

    The counts come from papers, not from an archive. So an archive with a few images less is accepted, while
    an incomplete copy is refused. ``kind`` names these images in messages; ``balanced`` says whether the
    classes have equally many of them.

    Raises:
        DatasetMissing: there are too few.
    """
    if len(labels) < ENOUGH * reported:
        raise archive.incomplete(f"it holds {len(labels):,} {kind} images, reported are {reported:,}")
    counts, usual = torch.bincount(labels, minlength=values), reported / values
    if balanced and int(counts.min()) < OF_EACH * usual:
        rarest = int(counts.argmin())
        raise archive.incomplete(
            f"it holds {int(counts[rarest]):,} {kind} images of class {rarest}, of {round(usual):,}"
        )


@while_unchanged(16)
def _parsed(values: int, folder: Path, *folders_below: Path) -> dict[Path, tuple[int, int]]:
    """Return the class and the bias in the names of the images below a folder."""
    return {file: _class_and_bias(file, values) for file in images_below(folder, (".png", ".jpg", ".jpeg"))}


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
