"""Tiny copies of published archives, in exactly their layouts, written by the tests themselves."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from encoded_files import encoded, pixels

CUB_SPECIES = ("001.Black_footed_Albatross", "002.Laysan_Albatross")


def write_image(file: Path, seed: int, height: int = 12, width: int = 9) -> None:
    """One image of random levels; a PNG whatever its name says, so that its pixels are known."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(encoded(pixels(seed, height, width)))


def write_cub(root: Path, present: np.ndarray, training: Sequence[int]) -> None:
    """CUB-200-2011 with a row of `present` (N, A) for each image, in two species by turns."""
    place = root / "CUB_200_2011"
    images, attributes = present.shape
    paths = [f"{CUB_SPECIES[i % 2]}/{CUB_SPECIES[i % 2][4:]}_{i:04d}_{i}.jpg" for i in range(images)]
    for number, path in enumerate(paths):
        write_image(place / "images" / path, number)
    _numbered(place / "images.txt", paths)
    _numbered(place / "image_class_labels.txt", [1 + i % 2 for i in range(images)])
    _numbered(place / "train_test_split.txt", training)
    _numbered(place / "classes.txt", CUB_SPECIES)
    (place / "attributes").mkdir()
    lines = [
        # As in the archive, some lines have a column too many.
        f"{i + 1} {a + 1} {present[i, a]} {3 if a else '1 0'} 12.075"
        for i in range(images)
        for a in range(attributes)
    ]
    (place / "attributes/image_attribute_labels.txt").write_text("\n".join(lines) + "\n")


def _numbered(file: Path, values: Sequence[object]) -> None:
    file.write_text("".join(f"{number} {value}\n" for number, value in enumerate(values, start=1)))
