"""Image files with a folder for each class: `train/CLASS/*.jpg` and `test/CLASS/*.jpg` (or `val`)."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import torch

from contrasweep.data.conditioned import CONDITION_OPTIONS, conditioned_spec, with_condition
from contrasweep.data.decoding import CorruptImage, read_header
from contrasweep.data.encoded import DecodedImages, FileImages, open_images
from contrasweep.data.images import LabelledImages
from contrasweep.data.names import unknown
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing
from contrasweep.data.spec import DatasetFamily, DatasetOption, DatasetSpec, Options, Split

NAME = "image-folder"
EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
TRAIN_FOLDERS = ("train",)
TEST_FOLDERS = ("test", "val", "validation")

_LOOKED_AT = 16
"""The number of images whose headers are read to learn whether all are grey."""


@dataclass(frozen=True, eq=False)
class _Tree:
    """One split: its classes, and its files with the class of each file, both sorted by name."""

    classes: tuple[str, ...]
    files: tuple[Path, ...]
    labels: tuple[int, ...]


def _check(root: Path, options: Options) -> None:
    train, test = _tree(root, options, "train"), _tree(root, options, "test")
    _refuse_other_classes(train, test, options)
    _describe(root, options)


def _describe(root: Path, options: Options) -> DatasetSpec:
    train, test = _tree(root, options, "train"), _tree(root, options, "test")
    size = int(options["size"])
    spec = DatasetSpec(
        name=IMAGE_FOLDER.full_name(options),
        summary=f"image files of {options['path']}, resized to {size} x {size}",
        classes=len(train.classes),
        channels=_channels(train, str(options["colour"])),
        image_size=size,
        view_size=size,
        train_size=len(train.files),
        test_size=len(test.files),
        licence="that of the images",
        source="your own files",
        folder=str(options["path"]),
        class_names=train.classes,
    )
    return conditioned_spec(spec, root, options, len(train.files))


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    train = _tree(root, options, "train")
    tree = train
    if split == "test":
        tree = _tree(root, options, "test")
        _refuse_other_classes(train, tree, options)
    number = {name: label for label, name in enumerate(train.classes)}
    labels = torch.tensor([number[tree.classes[label]] for label in tree.labels], dtype=torch.int64)
    size = int(options["size"])
    shape = (_channels(train, str(options["colour"])), size, size)
    source = DecodedImages(FileImages(tree.files), shape, resize=True)
    streamed, rows = open_images(source, torch.arange(len(labels)), skip=options["corrupt"] == "skip")
    images = LabelledImages(streamed, labels[rows])
    return with_condition(images, root, options, rows) if split == "train" else images


def _tree(root: Path, options: Options, split: Split) -> _Tree:
    """List one split.

    Raises:
        DatasetMissing: there is no such folder, or no image in it.
    """
    place = root / Path(str(options["path"])).expanduser()
    names = TRAIN_FOLDERS if split == "train" else TEST_FOLDERS
    name = IMAGE_FOLDER.full_name(options)
    how = (
        f"{' or '.join(names)} must hold a folder of image files for each class; path= is absolute, or under "
        f"the data root (--data-root DIR or {ROOT_VARIABLE})."
    )
    folder = next((place / one for one in names if (place / one).is_dir()), None)
    if folder is None:
        raise DatasetMissing(f"dataset {name!r} not found: {place} has no folder {' or '.join(names)}. {how}")
    classes = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    tree = _listed(folder, tuple((one, one.stat().st_mtime_ns) for one in (folder, *classes)))
    if not tree.files:
        raise DatasetMissing(f"dataset {name!r} is incomplete: {folder} holds no image. {how}")
    empty = set(range(len(tree.classes))) - set(tree.labels)
    if split == "train" and empty:
        without = ", ".join(tree.classes[label] for label in sorted(empty))
        raise DatasetMissing(f"dataset {name!r} is incomplete: {folder} holds no image of {without}. {how}")
    return tree


@lru_cache(maxsize=8)
def _listed(folder: Path, changed: tuple[tuple[Path, int], ...]) -> _Tree:
    """List the files below the folder of each class; the times of change key the cache."""
    classes = [place for place, _ in changed[1:]]
    found = [(path, label) for label, place in enumerate(classes) for path in _images_below(place)]
    return _Tree(
        tuple(place.name for place in classes),
        tuple(path for path, _ in found),
        tuple(label for _, label in found),
    )


def _images_below(place: Path) -> list[Path]:
    below = [Path(at) / name for at, _, names in os.walk(place) for name in names]
    return sorted(path for path in below if path.suffix.lower() in EXTENSIONS)


def _refuse_other_classes(train: _Tree, test: _Tree, options: Options) -> None:
    other = [name for name in test.classes if name not in train.classes]
    if other:
        what = f"class of {IMAGE_FOLDER.full_name(options)} in its test split"
        raise DatasetDamaged(unknown(what, other[0], train.classes))


@lru_cache(maxsize=8)
def _channels(train: _Tree, colour: str) -> int:
    if colour != "auto":
        return 1 if colour == "grey" else 3
    headers = []
    step = max(1, len(train.files) // _LOOKED_AT)
    for file in train.files[::step]:
        try:
            headers.append(read_header(file.read_bytes()).channels)
        except CorruptImage as error:
            broken = DatasetDamaged(f"corrupt image: {file} cannot be decoded ({error})")
    if not headers:
        raise broken
    return max(headers)


IMAGE_FOLDER = DatasetFamily(
    name=NAME,
    summary="any tree of image files, train/CLASS/* and test/CLASS/* (or val), resized to squares",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "path": DatasetOption("folder of the tree: absolute, or under the data root", str, None),
        "size": DatasetOption("shorter side in pixels, then the centre is cut out", int, None, low=1),
        "colour": DatasetOption("channels", str, "auto", choices=("auto", "rgb", "grey")),
        "corrupt": DatasetOption("what to do with damaged images", str, "fail", choices=("fail", "skip")),
        **CONDITION_OPTIONS,
    },
)
