"""Image files with a folder for each class: `train/CLASS/*.jpg` and `test/CLASS/*.jpg` (or `val`)."""

from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

import torch

from contrasweep.data.condition_files import CONDITION_OPTIONS, condition_facts, training_condition
from contrasweep.data.encoded import header_of
from contrasweep.data.images import LabelledImages
from contrasweep.data.kept import while_unchanged
from contrasweep.data.names import unknown
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing
from contrasweep.data.sources.listed_images import (
    COLOUR_OPTION,
    CORRUPT_OPTION,
    SIZE,
    ListedImages,
    images_below,
)
from contrasweep.data.spec import DatasetFamily, DatasetOption, DatasetSpec, Options, Split

NAME = "image-folder"
EXTENSIONS = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
FOLDERS = {"train": ("train",), "test": ("test", "val", "validation")}

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
    train, size = _tree(root, options, "train"), int(options["size"])
    name = IMAGE_FOLDER.full_name(options)
    return DatasetSpec(
        name=name,
        summary=f"image files of {options['path']}, resized to {size} x {size}",
        classes=len(train.classes),
        channels=_channels(train, str(options["colour"])),
        image_size=size,
        view_size=size,
        train_size=len(train.files),
        test_size=len(_tree(root, options, "test").files),
        licence="that of the images",
        source="your own files",
        folder=str(options["path"]),
        class_names=train.classes,
        **condition_facts(name, root, options, len(train.files)),
    )


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    train = _tree(root, options, "train")
    tree = _tree(root, options, split)
    _refuse_other_classes(train, tree, options)
    number = {name: label for label, name in enumerate(train.classes)}
    labels = torch.tensor([number[tree.classes[label]] for label in tree.labels])
    images = ListedImages(tree.files, labels)
    if split == "train":
        images = replace(images, condition=training_condition(root, options, len(images)))
    return images.opened(int(options["size"]), options, channels=_channels(train, str(options["colour"])))


def _tree(root: Path, options: Options, split: Split) -> _Tree:
    """List one split.

    Raises:
        DatasetMissing: there is no such folder, or no image in it.
    """
    place = root / Path(str(options["path"])).expanduser()
    names = FOLDERS[split]
    name = IMAGE_FOLDER.full_name(options)
    how = (
        f"{' or '.join(names)} must hold a folder of image files for each class; path= is absolute, or under "
        f"the data root (--data-root DIR or {ROOT_VARIABLE})."
    )
    folder = next((place / one for one in names if (place / one).is_dir()), None)
    if folder is None:
        raise DatasetMissing(f"dataset {name!r} not found: {place} has no folder {' or '.join(names)}. {how}")
    classes = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    tree = _listed(folder, *classes)
    if not tree.files:
        raise DatasetMissing(f"dataset {name!r} is incomplete: {folder} holds no image. {how}")
    empty = set(range(len(tree.classes))) - set(tree.labels)
    if split == "train" and empty:
        without = ", ".join(tree.classes[label] for label in sorted(empty))
        raise DatasetMissing(f"dataset {name!r} is incomplete: {folder} holds no image of {without}. {how}")
    return tree


@while_unchanged(8)
def _listed(folder: Path, *classes: Path) -> _Tree:
    """List the files below the folder of each class."""
    found = [(path, label) for label, place in enumerate(classes) for path in images_below(place, EXTENSIONS)]
    return _Tree(
        tuple(place.name for place in classes),
        tuple(path for path, _ in found),
        tuple(label for _, label in found),
    )


def _refuse_other_classes(train: _Tree, test: _Tree, options: Options) -> None:
    other = [name for name in test.classes if name not in train.classes]
    if other:
        what = f"class of {IMAGE_FOLDER.full_name(options)} in its test split"
        raise DatasetDamaged(unknown(what, other[0], train.classes))


@lru_cache(maxsize=8)
def _channels(train: _Tree, colour: str) -> int:
    if colour != "auto":
        return 1 if colour == "grey" else 3
    found = []
    for file in train.files[:: max(1, len(train.files) // _LOOKED_AT)]:
        try:
            found.append(header_of(file.read_bytes(), str(file)).channels)
        except DatasetDamaged as error:
            damaged = error
    if not found:
        raise damaged
    return max(found)


IMAGE_FOLDER = DatasetFamily(
    name=NAME,
    summary="any tree of image files, train/CLASS/* and test/CLASS/* (or val), resized to squares",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "path": DatasetOption("folder of the tree: absolute, or under the data root", str, None),
        "size": DatasetOption(SIZE, int, None, low=1),
        **COLOUR_OPTION,
        **CORRUPT_OPTION,
        **CONDITION_OPTIONS,
    },
)
