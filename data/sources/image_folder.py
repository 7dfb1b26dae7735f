"""Image files with a folder for each class, or without labels.

`train/CLASS/*.jpg` and `test/CLASS/*.jpg` (or `val`), or `CLASS/*.jpg` alone. With `labels=none` the images
at any depth, without their classes. Where there is no test split, a tenth of the images is cut off as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contrasweep.data.bias_table import BIAS_OPTION, bias_file, read_bias_table
from contrasweep.data.cache import while_unchanged
from contrasweep.data.condition_files import NAMED_CONDITION_OPTIONS, condition_facts, training_condition
from contrasweep.data.decoding import LARGEST_SIDE
from contrasweep.data.encoded import header_of
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.fingerprint import Listing, fingerprint_below, fingerprint_of_file
from contrasweep.data.image_files import image_bytes
from contrasweep.data.images import LabelledImages
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.own_folders import (
    EXTENSIONS,
    IMAGES,
    misread_layout,
    one_class,
    split_folder,
    where_missing,
)
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing, path_below
from contrasweep.data.sources.listed_images import (
    COLOUR_OPTION,
    CORRUPT_OPTION,
    SIZE,
    ListedImages,
    PathsBelow,
    list_classes,
    list_unlabelled,
    numbers_in_training,
)
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.data.splits import CUT, own_test_rows
from contrasweep.names import few_quoted

NO_LABELS = "none"
LABELS = ("folders", NO_LABELS)

_LOOKED_AT = 16
"""The number of images whose headers are read to learn whether all are grey."""


def _describe(root: Path, options: Options) -> DatasetSpec:
    found, size = _biased_splits(root, options), int(options["size"])
    name = IMAGE_FOLDER.full_name(options)
    labelled = options["labels"] != NO_LABELS
    return DatasetSpec(
        name=name,
        summary=f"image files of {options['path']}, resized to {size} x {size}"
        + (CUT if found.own_test is None else ""),
        classes=len(found.classes),
        channels=_channels(found.listed, options),
        image_size=size,
        view_size=size,
        train_size=len(found.train),
        test_size=len(found.test),
        unlabelled_size=0 if labelled else len(found.train),
        licence="that of the images",
        source="your own files",
        folder=str(options["path"]),
        class_names=tuple(found.classes),
        bias_classes=len(found.bias_names) or None,
        bias_names=found.bias_names,
        **condition_facts(name, root, options, len(found.listed), found.fingerprint, _listing(found.listed)),
    )


def _check(root: Path, options: Options) -> None:
    _describe(root, options)


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    found = _biased_splits(root, options)
    images = found.test
    if split == "train":
        condition = training_condition(root, options, len(found.listed), _listing(found.listed))
        images = replace(found, listed=replace(found.listed, condition=condition)).train
    return images.opened(int(options["size"]), options, channels=_channels(found.listed, options))


@dataclass(frozen=True)
class _Splits:
    """The names of the classes and the images.

    Attributes:
        classes: the names.
        listed: the training images, before we cut off a test split; a condition has a row for each.
        kept, cut: the rows of `listed` that train and that test, where the tree has no test split.
        own_test: the test split of the tree, where it has one.
        bias: the file of bias labels, if there is one.
        bias_names: the words of the bias labels, none without such a file.
    """

    classes: Sequence[str]
    listed: ListedImages
    kept: Sequence[int] = ()
    cut: Sequence[int] = ()
    own_test: ListedImages | None = None
    bias: Path | None = None
    bias_names: tuple[str, ...] = ()

    @property
    def train(self) -> ListedImages:
        """The training images."""
        return self.listed if self.own_test is not None else self.listed.subset(self.kept)

    @property
    def test(self) -> ListedImages:
        """The test images."""
        return self.listed.subset(self.cut) if self.own_test is None else self.own_test

    @property
    def fingerprint(self) -> str:
        """The fingerprint of all image files, and of the file of bias labels."""
        own_test = None if self.own_test is None else _listing(self.own_test)
        images = fingerprint_below(_listing(self.listed), own_test)
        return images if self.bias is None else images + fingerprint_of_file(self.bias)


def _listing(images: ListedImages) -> Listing:
    assert isinstance(images.files, PathsBelow), "they are as they were listed"
    return Listing(images.files.place, images.files.names)


def _splits(root: Path, options: Options) -> _Splits:
    """Return both splits: those that the tree has, or where it has no test split, those that we cut.

    Raises:
        DatasetMissing: there is no such folder, no image in it, one class alone, or one folder for both
            splits.
        DatasetDamaged: the test split has a class that the training split lacks.
    """
    place = path_below(root, str(options["path"]))
    train, test = (split_folder(place, split) for split in ("train", "test"))
    if not place.is_dir():
        raise _missing(options, f"not found: {where_missing(root, str(options['path']))}")
    if train is None and test is not None:
        raise _missing(options, f"not found: {place} has no folder train")
    if train is not None and test is not None and train.samefile(test):
        raise _missing(options, f"has its training images as test images: {test} is a link to {train}")
    classes, images = _listed(train or place, options)
    misread = misread_layout(place, classes) if train is None else ""
    if misread:
        raise _missing(options, f"has another layout: {misread}")
    if len(classes) == 1:
        raise _missing(options, one_class(classes[0], f"labels={NO_LABELS}"))
    if test is None:
        kept, cut = (rows.tolist() for rows in own_test_rows(images.labels))
        return _Splits(classes, images, kept, cut)
    own, unseen = _listed(test, options, whole=False)
    if own:
        numbers = numbers_in_training(own, classes, IMAGE_FOLDER.full_name(options))
        unseen = replace(unseen, labels=numbers[unseen.labels])
    return _Splits(classes, images, own_test=unseen)


def _biased_splits(root: Path, options: Options) -> _Splits:
    """Return both splits, with the bias labels that the options may name.

    Raises:
        DatasetMissing: see `_splits`; or the images have no labels, but a bias.
        DatasetDamaged: see `_splits` and `read_bias_table`.
    """
    found, file = _splits(root, options), bias_file(root, options)
    if file is None:
        return found
    if options["labels"] == NO_LABELS:
        raise _missing(options, f"has a bias, but no labels: bias= does not go with labels={NO_LABELS}")
    splits = [found.listed] if found.own_test is None else [found.listed, found.own_test]
    table = read_bias_table(file, *map(_listing, splits))
    train, *own_test = (replace(one, bias=bias) for one, bias in zip(splits, table.splits, strict=True))
    return replace(
        found, listed=train, own_test=next(iter(own_test), None), bias=file, bias_names=table.values
    )


def _listed(folder: Path, options: Options, *, whole: bool = True) -> tuple[list[str], ListedImages]:
    """Return the classes in a folder, by name, and its images, with labels that number them from 0.

    With `labels=none` there is no class, and the images are those at any depth. `whole` says whether each
    class must have an image.

    Raises:
        DatasetMissing: there is no image, or none of a class.
    """
    if options["labels"] == NO_LABELS:
        images = list_unlabelled(folder, EXTENSIONS)
        if not len(images):
            raise _missing(options, f"is incomplete: {folder} holds no image")
        return [], images
    own = sorted(one.name for one in folder.iterdir() if one.is_dir() and not one.name.startswith("."))
    found = list_classes(folder, own, EXTENSIONS)
    if not len(found):
        problem = (
            f"{folder} holds no image" if own else f"{folder} has no folders of images, one for each class"
        )
        without = f"; if its images have no labels, add labels={NO_LABELS}" if any(folder.iterdir()) else ""
        raise _missing(options, f"is incomplete: {problem}{without}")
    empty = (found.labels.bincount(minlength=len(own)) == 0).nonzero().flatten().tolist()
    if empty and whole:
        classes = few_quoted(own[label] for label in empty)
        raise _missing(
            options,
            f"is incomplete: {folder} has no image of {classes}: put images there, or remove the folder",
        )
    return own, found


def _missing(options: Options, problem: str) -> DatasetMissing:
    return DatasetMissing(
        f"dataset {IMAGE_FOLDER.full_name(options)!r} {problem}. path= holds a folder of image files for "
        f"each class, or train and test (or val) with such folders; with labels={NO_LABELS} "
        f"any tree of images. It is absolute, or under the data root (--data-root DIR or {ROOT_VARIABLE})."
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
    summary="any tree of image files, train/CLASS/* and test/CLASS/* (or val), CLASS/*, or without labels, "
    "resized to squares",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "path": DatasetOption("folder of the tree: absolute, or under the data root", str, None),
        "size": DatasetOption(SIZE, int, None, low=1, high=LARGEST_SIDE),
        "labels": DatasetOption(
            "folders: the folder of an image is its class", str, "folders", LABELS, cuts_test=True
        ),
        **COLOUR_OPTION,
        **CORRUPT_OPTION,
        **NAMED_CONDITION_OPTIONS,
        **BIAS_OPTION,
    },
)
