"""A small CIFAR-10 in both of its layouts, and pictures of frost, for the sets that are derived from it."""

import hashlib
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from encoded_files import encoded, write_parquet
from PIL import Image

from contrasweep.data.corruptions import frost_pictures
from contrasweep.data.sources import corrupted
from contrasweep.data.sources.cifar import CIFAR10_LAYOUT

TRAIN, TEST = 400, 200


def _images(split: str) -> tuple[np.ndarray, np.ndarray]:
    """Return uint8 images `(N, 3, 32, 32)` and as many labels of each class, out of order."""
    count = TRAIN if split == "train" else TEST
    generator = np.random.default_rng(count)
    flat = generator.integers(40, 216, (count, 3, 1, 1)) + generator.integers(-40, 40, (count, 3, 32, 32))
    return flat.astype(np.uint8), generator.permutation(np.arange(count) % 10)


def write_batches(root: Path) -> None:
    """Write the pickled batches."""
    folder = root / CIFAR10_LAYOUT.folder
    folder.mkdir(parents=True)
    (train, labels), (test, test_labels) = _images("train"), _images("test")
    parts = [*zip(np.split(train, 5), np.split(labels, 5), strict=True), (test, test_labels)]
    for file, (images, classes) in zip((*CIFAR10_LAYOUT.train, *CIFAR10_LAYOUT.test), parts, strict=True):
        batch = {"data": images.reshape(len(images), -1), "labels": classes.tolist()}
        (folder / file).write_bytes(pickle.dumps(batch, protocol=2))


def write_hub_files(folder: Path) -> None:
    """Write the same images in Parquet."""
    for split in ("train", "test"):
        images, labels = _images(split)
        files = [encoded(image.transpose(1, 2, 0)) for image in images]
        write_parquet(folder / f"{split}-00000-of-00001.parquet", files, labels.tolist(), row_group=100)


def accept(patch: pytest.MonkeyPatch, root: Path) -> None:
    """Take the files written here for CIFAR-10, and pictures of noise for those of frost."""
    sizes = {
        part: {
            file: (root / CIFAR10_LAYOUT.folder / file).stat().st_size
            for file in getattr(CIFAR10_LAYOUT, part)
        }
        for part in ("train", "test")
    }
    patch.setattr(corrupted, "CIFAR10_LAYOUT", replace(CIFAR10_LAYOUT, **sizes))
    patch.setattr(corrupted, "SIZES", {"train": TRAIN, "test": TEST})
    frost = root / "frost"
    frost.mkdir(exist_ok=True)
    for number, name in enumerate(frost_pictures.FROST_PICTURES):
        levels = np.random.default_rng(number).integers(0, 256, (210, 200, 3), dtype=np.uint8)
        Image.fromarray(levels).save(frost / name)
    sums = {
        name: hashlib.sha256((frost / name).read_bytes()).hexdigest()
        for name in frost_pictures.FROST_PICTURES
    }
    patch.setattr(frost_pictures, "FROST_PICTURES", sums)
    patch.setattr(frost_pictures, "_folder", lambda: frost)
    frost_pictures.frost_pictures.cache_clear()
    patch.setenv("XDG_CACHE_HOME", str(root / "cache"))
