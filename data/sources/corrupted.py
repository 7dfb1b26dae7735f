"""Corrupted CIFAR-10, derived from CIFAR-10: each class has its own corruption in all but a few images.

Corruptions, strengths, and which image gets which corruption are those of the code of Nam et al., "Learning
from Failure" (NeurIPS 2020), `make_dataset.py`; its severity s of 1..4 is the strength s + 1 of five. That
code draws from an unseeded generator, so its files hold other snowflakes than these.

The images are made once and kept in the cache in the layout of that code: `images.npy` (N, 32, 32, 3) and
`attrs.npy` (N, 2), class and corruption.
"""

import hashlib
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.cache import kept_folder, state_of
from contrasweep.data.images import LabelledImages
from contrasweep.data.options import Options
from contrasweep.data.root import DatasetDamaged, DatasetMissing, check_files, path_below
from contrasweep.data.seeds import numpy_generator, torch_generator
from contrasweep.data.sources.biased import VALIDATION_RHO
from contrasweep.data.sources.cifar import CIFAR10_LAYOUT, CifarLayout, read_cifar
from contrasweep.data.sources.hub_parquet import HUB_PARQUET
from contrasweep.data.spec import Split

log = logging.getLogger(__name__)

NAME = "corrupted-cifar10"
SIZES: Mapping[Split, int] = {"train": 50_000, "test": 10_000}

KINDS: Mapping[str, tuple[str, ...]] = {
    kind: tuple(names.split(", "))
    for kind, names in {
        "0": "Snow, Frost, Fog, Brightness, Contrast, Spatter, Elastic, JPEG, Pixelate, Saturate",
        "1": "Gaussian Noise, Shot Noise, Impulse Noise, Speckle Noise, Gaussian Blur, Defocus Blur, "
        "Glass Blur, Motion Blur, Zoom Blur, Original",
    }.items()
}
"""The corruptions by the option `type`; corruption c is the usual one of class c."""

TEST_SHARE = 0.1
"""The share of the own corruption among a class's test images: a tenth, as of every other corruption."""

FILES = ("images.npy", "attrs.npy")
SUMS = "sha256.json"
_VERSION = 1
_CHUNK = 512


def check(root: Path, options: Options) -> None:
    """Check that CIFAR-10 and the pictures of frost are in place.

    Raises:
        DatasetMissing: they are not; the message says what to get or to install.
    """
    layout = _batches(root, options)
    if layout is not None:
        check_files(NAME, root, layout.folder, {**layout.train, **layout.test}, layout.source)
    else:
        _check_parquet(root, options)
    if "Frost" in KINDS[str(options["type"])]:
        from contrasweep.data.corruptions import check_frost_pictures

        check_frost_pictures()


def facts(options: Options) -> Mapping[str, Any]:
    """Return the fields of the dataset's spec that differ from those of the published files."""
    return {
        "train_size": SIZES["train"],
        "test_size": SIZES["test"],
        "source": CIFAR10_LAYOUT.source,
        "folder": str(options["path"]),
        "recolourable": True,
    }


def read(root: Path, split: Split, options: Options) -> LabelledImages:
    """Return one split; it is made when it is first read, and kept.

    Raises:
        DatasetMissing: see `check`.
        DatasetDamaged: the kept files have changed; the message says which folder to delete.
    """
    folder = kept_folder("derived", _identity(root, split, options), partial(_write, root, split, options))
    arrays = [_kept_array(folder, name) for name in FILES]
    pixels, attributes = (torch.from_numpy(array) for array in arrays)
    labels, bias = attributes.long().unbind(dim=1)
    return LabelledImages(
        pixels.permute(0, 3, 1, 2).contiguous(), labels.contiguous(), bias=bias.contiguous()
    )


def recorrupted(root: Path, options: Options, rows: Tensor, seed: int) -> LabelledImages:
    """Return training images with other corruptions, which say nothing of the class.

    Args:
        root: the folder of the datasets.
        options: the options of the dataset.
        rows: the images, int64 ``(M,)``.
        seed: the number of the draw.
    """
    plain = read_plain(root, "train", options).subset(rows)
    stream = f"validation {seed}"
    order = torch.randperm(len(rows), generator=torch_generator("corruption order", NAME, stream))
    bias = torch.empty_like(plain.labels)
    bias[order] = assigned(plain.labels[order], VALIDATION_RHO)
    return corrupted(plain, bias, options, stream, rows)


def assigned(labels: Tensor, own: float) -> Tensor:
    """Return the corruption of each image by the released rule: in a class's order, corruption by corruption.

    The corruptions begin at the class's number of images times the sums of their shares, rounded.

    Args:
        labels: int64 ``(N,)``, classes 0..9.
        own: the share of each class's own corruption; the nine others share the rest evenly.

    Returns:
        int64 ``(N,)``, 0..9.
    """
    classes = len(KINDS["0"])
    shares = np.full((classes, classes), (1 - own) / (classes - 1))
    np.fill_diagonal(shares, own)
    ends = shares.cumsum(axis=1)
    bias = torch.empty_like(labels)
    for label in range(classes):
        members = (labels == label).nonzero().flatten()
        last = (len(members) * ends[label]).round()
        bias[members] = torch.from_numpy(np.searchsorted(last, np.arange(len(members)), side="right"))
    return bias


def corrupted(
    plain: LabelledImages, bias: Tensor, options: Options, stream: str, rows: Tensor
) -> LabelledImages:
    """Return the images, each under the corruption of its number in ``bias``, int64 ``(N,)``.

    The draws of an image depend on the stream, on its number in ``rows`` and on the corruption alone. So an
    image that has a corruption at one percentage has the same flakes at another one, and at every severity.
    """
    from contrasweep.data.corruptions import CORRUPTIONS

    pixels = plain.pixels.permute(0, 2, 3, 1).numpy()
    spoilt, size = np.empty_like(pixels), pixels.shape[1]
    for number, name in enumerate(KINDS[str(options["type"])]):
        members = (bias == number).nonzero().flatten().numpy()
        for start in range(0, len(members), _CHUNK):
            part = members[start : start + _CHUNK]
            numbers = rows[part].tolist()
            generators = (numpy_generator("corruption", NAME, stream, name, row) for row in numbers)
            drawn = [CORRUPTIONS[name].draw(generator, size) for generator in generators]
            draws = tuple(np.stack(one) for one in zip(*drawn, strict=True))
            spoilt[part] = CORRUPTIONS[name](pixels[part], int(options["severity"]), draws)
    images = torch.from_numpy(spoilt).permute(0, 3, 1, 2).contiguous()
    return replace(plain, images=images, bias=bias)


def _write(root: Path, split: Split, options: Options, folder: Path) -> None:
    plain = read_plain(root, split, options)
    log.info("corrupting the %s %s images of CIFAR-10, once", f"{len(plain):,}", split)
    own = 1 - float(str(options["percent"])) / 100 if split == "train" else TEST_SHARE
    made = corrupted(plain, assigned(plain.labels, own), options, split, torch.arange(len(plain)))
    assert made.bias is not None
    attributes = torch.stack([made.labels, made.bias], dim=1).to(torch.uint8)
    arrays = (made.pixels.permute(0, 2, 3, 1).contiguous().numpy(), attributes.numpy())
    for name, array in zip(FILES, arrays, strict=True):
        np.save(folder / name, array)
    sums = {name: _sum(array) for name, array in zip(FILES, arrays, strict=True)}
    (folder / SUMS).write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")


def _kept_array(folder: Path, name: str) -> np.ndarray:
    damaged = DatasetDamaged(f"{folder / name} has changed since it was made: delete {folder}")
    try:
        array: np.ndarray = np.load(folder / name, allow_pickle=False)
        expected = json.loads((folder / SUMS).read_text(encoding="utf-8"))[name]
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise damaged from error
    if _sum(array) != expected:
        raise damaged
    return array


def _sum(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).data).hexdigest()


def _identity(root: Path, split: Split, options: Options) -> str:
    """Return the name of a split's files; it changes when a file of CIFAR-10 does."""
    kind = f"type{options['type']}-severity{options['severity']}"
    share = f"{options['percent']}pct" if split == "train" else "test"
    place = _place(root, options)
    state = state_of(file for file in sorted(place.iterdir()) if file.is_file())
    content = hashlib.sha256(f"{_VERSION}\n{state}".encode()).hexdigest()[:24]
    return f"{NAME}-{kind}-{share}-{content}"


def _place(root: Path, options: Options) -> Path:
    return path_below(root, str(options["path"]))


def read_plain(root: Path, split: Split, options: Options) -> LabelledImages:
    """Return CIFAR-10 as it is.

    Raises:
        DatasetDamaged: the folder holds something else.
    """
    layout = _batches(root, options)
    if layout is None:
        given = HUB_PARQUET.parse(f"path={options['path']}")
        images = HUB_PARQUET.read(root, split, given)
    else:
        images = read_cifar(root, split, layout)
    shape = tuple(images.images.shape)
    if shape != (SIZES[split], 3, 32, 32):
        expected = (SIZES[split], 3, 32, 32)
        raise DatasetDamaged(
            f"{_place(root, options)}: CIFAR-10's {split} images are {expected}, it has {shape}"
        )
    return images


def _batches(root: Path, options: Options) -> CifarLayout | None:
    """Return the layout of the authors' batches in the folder, None where it holds Parquet files."""
    place = _place(root, options)
    if place.is_dir() and any(place.glob("*.parquet")):
        return None
    return replace(CIFAR10_LAYOUT, folder=str(options["path"]))


def _check_parquet(root: Path, options: Options) -> None:
    given = HUB_PARQUET.parse(f"path={options['path']}")
    HUB_PARQUET.check(root, given)
    spec = HUB_PARQUET.describe(root, given)
    found = (spec.train_size, spec.test_size, spec.classes, spec.image_size)
    expected = (SIZES["train"], SIZES["test"], len(KINDS["0"]), 32)
    if found != expected:
        raise DatasetMissing(
            f"{_place(root, options)} is not CIFAR-10: training and test images, classes and pixels are "
            f"{expected} there, it has {found}"
        )
