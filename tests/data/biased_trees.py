"""Trees of images named ID_CLASS_BIAS, in the layouts of bFFHQ and Corrupted CIFAR-10."""

from pathlib import Path

import pytest
from encoded_files import encoded, pixels

from contrasweep.data.sources import biased_files


def write_biased(
    folder: Path, classes: int, of_each: int, shift: int, *, side: int, flat: bool = False
) -> None:
    """Write `of_each` images of every class c, with the bias (c + shift) modulo the number of classes.

    They lie in a folder for each class, or in one folder if `flat`. The first level of an image is its
    number.
    """
    for number in range(classes * of_each):
        label = number % classes
        levels = pixels(number, side, side)
        levels[0, 0] = (number % 256, label, (label + shift) % classes)
        place = folder if flat else folder / str(label)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{shift}{number:03}_{label}_{(label + shift) % classes}.png").write_bytes(encoded(levels))


def write_bffhq(root: Path, side: int = 8) -> None:
    """Write 200 aligned and 2 conflicting training images, 2 of validation, 4 + 2 of test."""
    folder = root / "bffhq"
    write_biased(folder / "0.5pct/align", 2, 100, 0, side=side)
    write_biased(folder / "0.5pct/conflict", 2, 1, 1, side=side)
    write_biased(folder / "valid", 2, 1, 0, side=side, flat=True)
    write_biased(folder / "test", 2, 2, 0, side=side, flat=True)
    write_biased(folder / "test", 2, 1, 1, side=side, flat=True)


def write_cifar10c(root: Path) -> None:
    """Write 200 aligned and 10 conflicting training images at 5 %, and 20 of test."""
    folder = root / "cifar10c"
    write_biased(folder / "5pct/align", 10, 20, 0, side=32)
    write_biased(folder / "5pct/conflict", 10, 1, 3, side=32)
    write_biased(folder / "test", 10, 1, 0, side=32)
    write_biased(folder / "test", 10, 1, 1, side=32)


def report_counts(patch: pytest.MonkeyPatch) -> None:
    """Make the loaders expect the number of images written here."""
    patch.setattr(biased_files, "BFFHQ_TRAIN", (200, 2))
    patch.setattr(biased_files, "BFFHQ_TEST", {"conflict": 2, "all": 6, "valid": 2})
    patch.setattr(biased_files, "CIFAR_TRAIN", dict.fromkeys(biased_files.CIFAR_TRAIN, (200, 10)))
    patch.setattr(biased_files, "CIFAR_TEST", 20)
