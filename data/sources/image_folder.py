"""Image files with a folder for each class: `train/CLASS/*.jpg` and `test/CLASS/*.jpg` (or `val`)."""

from dataclasses import replace
from pathlib import Path

import torch

from contrasweep.data.condition_files import CONDITION_OPTIONS, condition_facts, training_condition
from contrasweep.data.decoding import LARGEST_SIDE
from contrasweep.data.encoded import header_of, image_bytes
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import LabelledImages
from contrasweep.data.kept import while_unchanged
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.own_folders import EXTENSIONS, FOLDERS, IMAGES, where_missing
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing, path_below
from contrasweep.data.sources.listed_images import (
    COLOUR_OPTION,
    CORRUPT_OPTION,
    SIZE,
    ListedImages,
    list_classes,
)
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.names import unknown

_LOOKED_AT = 16
"""The number of images whose headers are read to learn whether all are grey."""


def _describe(root: Path, options: Options) -> DatasetSpec:
    (classes, train), size = _tree(root, options, "train"), int(options["size"])
    name = IMAGE_FOLDER.full_name(options)
    return DatasetSpec(
        name=name,
        summary=f"image files of {options['path']}, resized to {size} x {size}",
        classes=len(classes),
        channels=_channels(train, options),
        image_size=size,
        view_size=size,
        train_size=len(train),
        test_size=len(_tree(root, options, "test")[1]),
        licence="that of the images",
        source="your own files",
        folder=str(options["path"]),
        class_names=tuple(classes),
        **condition_facts(name, root, options, len(train)),
    )


def _check(root: Path, options: Options) -> None:
    _describe(root, options)


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    images = train = _tree(root, options, "train")[1]
    if split == "test":
        images = _tree(root, options, "test")[1]
    else:
        images = replace(train, condition=training_condition(root, options, len(train)))
    return images.opened(int(options["size"]), options, channels=_channels(train, options))


def _tree(root: Path, options: Options, split: Split) -> tuple[list[str], ListedImages]:
    """Return the names of the training classes, and the images of a split with the numbers of these classes.

    Raises:
        DatasetMissing: there is no such folder, or no image in it.
        DatasetDamaged: the test split has a class that the training split lacks.
    """
    folder = _folder(root, options, split)
    own = sorted(entry.name for entry in folder.iterdir() if entry.is_dir())
    found = list_classes(folder, own, EXTENSIONS)
    if not len(found):
        raise _missing(options, split, f"is incomplete: {folder} holds no image")
    if split == "train":
        empty = (found.labels.bincount(minlength=len(own)) == 0).nonzero().flatten().tolist()
        if empty:
            without = ", ".join(own[label] for label in empty)
            raise _missing(options, split, f"is incomplete: {folder} holds no image of {without}")
        return own, found
    classes, _ = _tree(root, options, "train")
    other = [name for name in own if name not in classes]
    if other:
        what = f"class of {IMAGE_FOLDER.full_name(options)} in its test split"
        raise DatasetDamaged(unknown(what, other[0], classes))
    return classes, replace(found, labels=torch.tensor([classes.index(name) for name in own])[found.labels])


def _folder(root: Path, options: Options, split: Split) -> Path:
    place = path_below(root, str(options["path"]))
    if not place.is_dir():
        raise _missing(options, split, f"not found: {where_missing(root, str(options['path']))}")
    there = [place / name for name in FOLDERS[split] if (place / name).is_dir()]
    if not there:
        raise _missing(options, split, f"not found: {place} has no folder {' or '.join(FOLDERS[split])}")
    return there[0]


def _missing(options: Options, split: Split, problem: str) -> DatasetMissing:
    return DatasetMissing(
        f"dataset {IMAGE_FOLDER.full_name(options)!r} {problem}. {' or '.join(FOLDERS[split])} must hold a "
        "folder of image files for each class; path= is absolute, or under the data root (--data-root DIR or "
        f"{ROOT_VARIABLE})."
    )


def _channels(train: ListedImages, options: Options) -> int:
    if options["colour"] != "auto":
        return 1 if options["colour"] == "grey" else 3
    return _most_channels(
        *(train.files[row] for row in range(0, len(train), max(1, len(train) // _LOOKED_AT)))
    )


@while_unchanged(8)
def _most_channels(*files: Path) -> int:
    found = []
    for file in files:
        try:
            found.append(header_of(image_bytes(file), str(file)).channels)
        except DatasetDamaged as error:
            damaged = error
    if not found:
        raise damaged
    return max(found)


IMAGE_FOLDER = DatasetFamily(
    name=IMAGES,
    summary="any tree of image files, train/CLASS/* and test/CLASS/* (or val), resized to squares",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "path": DatasetOption("folder of the tree: absolute, or under the data root", str, None),
        "size": DatasetOption(SIZE, int, None, low=1, high=LARGEST_SIDE),
        **COLOUR_OPTION,
        **CORRUPT_OPTION,
        **CONDITION_OPTIONS,
    },
)
