"""Images in tar files as webdataset has them: `train-*.tar`, and `test-*.tar` (or `val`), in one folder.

A sample is an image and, beside it, its label: `NAME.cls` holds a whole number or a word, `NAME.json` a
mapping with `label`, in which the option `bias` can name a bias label too. Without labels the images stand
alone. Where there is no test split, a tenth of the images is cut off as one. Images are decoded on access,
from where they lie in the tar file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from pathlib import Path

import torch
from torch import Tensor

from contrasweep.data.bias_table import NO_BIAS, BiasLabels
from contrasweep.data.condition_files import CONDITION_OPTIONS, condition_facts, training_condition
from contrasweep.data.decoding import LARGEST_SIDE
from contrasweep.data.encoded import header_of, open_encoded
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.fingerprint import Listing, fingerprint_below
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.own_folders import FOLDERS, one_class, where_missing
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing, path_below
from contrasweep.data.sources.listed_images import (
    COLOUR_OPTION,
    CORRUPT_OPTION,
    SIZE,
    numbers_in_training,
)
from contrasweep.data.sources.tar_labels import TAR_BIAS_OPTION, bias_in, in_order, labels_in
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.data.splits import CUT, own_test_rows
from contrasweep.data.tar_members import Sample, read_members, samples_in

NO_LABELS = "none"
LABELS = ("auto", NO_LABELS)

_LOOKED_AT = 16
"""The number of images whose headers are read to learn whether all are grey."""


@dataclass(frozen=True)
class TarImages:
    """Encoded images, by row: each is a sample of a tar file. See `EncodedImages`."""

    rows: Sequence[tuple[Path, Sample]]

    def __len__(self) -> int:
        return len(self.rows)

    def prepare_random_access(self) -> None:
        """Do nothing: members of a tar file are read in any order."""

    def read(self, rows: Sequence[int]) -> list[bytes]:
        """Return the encoded images of `rows`."""
        by_file: dict[Path, list[int]] = {}
        for place, row in enumerate(rows):
            by_file.setdefault(self.rows[row][0], []).append(place)
        found = [b""] * len(rows)
        for file, places in by_file.items():
            contents = read_members(file, [self.rows[rows[place]][1].image for place in places])
            for place, content in zip(places, contents, strict=True):
                found[place] = content
        return found

    def name(self, row: int) -> str:
        """Return the tar file and the sample."""
        file, sample = self.rows[row]
        return f"{sample.name} in {file}"


@dataclass(frozen=True)
class _Part:
    """The samples of a split, their labels (`UNLABELLED` where there is none) and the names of the labels.

    `bias` has the bias labels, if the options name any.
    """

    images: TarImages
    labels: Tensor
    classes: tuple[str, ...]
    bias: Tensor | None = None

    def subset(self, rows: Tensor) -> "_Part":
        kept = TarImages([self.images.rows[row] for row in rows.tolist()])
        bias = None if self.bias is None else self.bias[rows]
        return replace(self, images=kept, labels=self.labels[rows], bias=bias)


@dataclass(frozen=True)
class _Splits:
    """The training and the test samples.

    Attributes:
        whole: those in the training files.
        kept: the rows of `whole` that train; None for all of them.
        test: the test samples.
        bias: the bias labels of the training files and, if there are any, the test files.
    """

    whole: _Part
    kept: Tensor | None
    test: _Part
    bias: BiasLabels | None = None

    @property
    def train(self) -> _Part:
        return self.whole if self.kept is None else self.whole.subset(self.kept)


def _describe(root: Path, options: Options) -> DatasetSpec:
    found, size, name = _splits(root, options), int(options["size"]), TAR_SHARDS.full_name(options)
    fingerprint = fingerprint_below(*_listings(root, options))
    return DatasetSpec(
        name=name,
        summary=f"images in tar files of {options['path']}, resized to {size} x {size}"
        + ("" if found.kept is None else CUT),
        classes=len(found.whole.classes),
        channels=_channels(found.whole.images, options),
        image_size=size,
        view_size=size,
        train_size=len(found.train.labels),
        test_size=len(found.test.labels),
        unlabelled_size=int((found.train.labels == UNLABELLED).sum()),
        licence="that of the images",
        source="your own files",
        folder=str(options["path"]),
        class_names=found.whole.classes,
        bias_classes=None if found.bias is None else len(found.bias.values),
        bias_names=() if found.bias is None else found.bias.values,
        **condition_facts(
            name,
            root,
            options,
            len(found.whole.labels),
            fingerprint if found.bias is None else fingerprint + found.bias.fingerprint,
        ),
    )


def _check(root: Path, options: Options) -> None:
    _describe(root, options)


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    found, size = _splits(root, options), int(options["size"])
    part = found.test if split == "test" else found.train
    condition = None
    if split == "train":
        condition = training_condition(root, options, len(found.whole.labels))
        condition = condition if condition is None or found.kept is None else condition[found.kept]
    shape = (_channels(found.whole.images, options), size, size)
    skip = options["corrupt"] == "skip"
    return open_encoded(part.images, shape, part.labels, condition, part.bias, skip=skip)


def _splits(root: Path, options: Options) -> _Splits:
    """Return both splits, or a test split that is cut off the training files where there is none.

    Raises:
        DatasetMissing: there is no such folder, no training file with an image in it, or one class alone.
        DatasetDamaged: a tar file or a label cannot be read, or test labels do not go with those of training;
            or see `bias_in`.
    """
    files = _tar_files(root, options)
    train, test = (_files(files, split) for split in ("train", "test"))
    labelled = options["labels"] != NO_LABELS
    whole = _part(train, labelled)
    if not len(whole.labels):
        there = ", ".join(file.name for file in files[:5]) or "no tar file"
        place = path_below(root, str(options["path"]))
        raise _missing(options, f"is incomplete: {place} has no image in train-*.tar; it holds {there}")
    if len(whole.classes) == 1:
        raise _missing(options, one_class(whole.classes[0], f"labels={NO_LABELS}"))
    bias = _bias(train, test, options)
    whole = whole if bias is None else replace(whole, bias=bias.splits[0])
    if not test:
        kept, cut = own_test_rows(whole.labels)
        return _Splits(whole, kept, whole.subset(cut), bias)
    unseen = _part(test, labelled and bool(whole.classes))
    if not len(unseen.labels):
        raise DatasetDamaged(f"{test[0]} holds no image")
    unseen = unseen if bias is None else replace(unseen, bias=bias.splits[1])
    return _Splits(whole, None, _numbered_alike(unseen, whole, options), bias)


def _bias(train: Sequence[Path], test: Sequence[Path], options: Options) -> BiasLabels | None:
    """Return the bias labels that the options name; None if they name none."""
    key = str(options["bias"])
    if key == NO_BIAS:
        return None
    if options["labels"] == NO_LABELS:
        raise _missing(options, f"has a bias, but no labels: bias= does not go with labels={NO_LABELS}")
    return bias_in(train, test, key)


def _tar_files(root: Path, options: Options) -> list[Path]:
    """Return all tar files of the folder, by name.

    Raises:
        DatasetMissing: there is no such folder.
    """
    place = path_below(root, str(options["path"]))
    if not place.is_dir():
        raise _missing(options, f"not found: {where_missing(root, str(options['path']))}")
    return sorted(file for file in place.iterdir() if file.suffix == ".tar")


def _listings(root: Path, options: Options) -> tuple[Listing, Listing | None]:
    """Return the tar files of both splits; None for a test split that is cut off the training files."""
    files, place = _tar_files(root, options), path_below(root, str(options["path"]))
    train, test = (
        Listing(place, tuple(file.name for file in _files(files, split))) for split in ("train", "test")
    )
    return train, test if test.names else None


def _numbered_alike(test: _Part, train: _Part, options: Options) -> _Part:
    """Return test samples with the numbers that the training samples give to the classes."""
    if not train.classes:
        return test
    if bool((test.labels == UNLABELLED).any()):
        row = int((test.labels == UNLABELLED).nonzero()[0])
        raise DatasetDamaged(f"{test.images.name(row)} has no label, but training images have some")
    numbers = numbers_in_training(test.classes, train.classes, TAR_SHARDS.full_name(options))
    return replace(test, labels=numbers[test.labels], classes=train.classes)


def _files(files: Sequence[Path], split: Split) -> tuple[Path, ...]:
    """Return the tar files of a split: `train-000.tar`, or one `train.tar`."""
    for name in FOLDERS[split]:
        found = tuple(one for one in files if fnmatch(one.name, f"{name}-*.tar") or one.stem == name)
        if found:
            return found
    return ()


def _part(files: Sequence[Path], labelled: bool) -> _Part:
    rows = [(file, sample) for file in files for sample in samples_in(file)]
    given = [label for file in files for label in labels_in(file)] if labelled else [None] * len(rows)
    classes = in_order({label for label in given if label is not None})
    numbers = {name: number for number, name in enumerate(classes)}
    labels = [UNLABELLED if label is None else numbers[label] for label in given]
    return _Part(TarImages(rows), torch.tensor(labels, dtype=torch.int64), classes)


def _channels(images: TarImages, options: Options) -> int:
    if options["colour"] != "auto":
        return 1 if options["colour"] == "grey" else 3
    step = max(1, len(images) // _LOOKED_AT)
    rows = range(0, len(images), step)
    found, damaged = [], None
    for row, encoded in zip(rows, images.read(rows), strict=True):
        try:
            found.append(header_of(encoded, images.name(row)).channels)
        except DatasetDamaged as error:
            damaged = error
    if not found and damaged is not None:
        raise damaged
    return max(found)


def _missing(options: Options, problem: str) -> DatasetMissing:
    return DatasetMissing(
        f"dataset {TAR_SHARDS.full_name(options)!r} {problem}. path= holds train-*.tar and, if there are "
        f"test images, test-*.tar; it is absolute, or under the data root (--data-root DIR or "
        f"{ROOT_VARIABLE})."
    )


TAR_SHARDS = DatasetFamily(
    name="tar-shards",
    summary="tar files of samples as webdataset has them, train-*.tar and test-*.tar (or val), with or "
    "without labels, resized to squares",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "path": DatasetOption("folder of the tar files: absolute, or under the data root", str, None),
        "size": DatasetOption(SIZE, int, None, low=1, high=LARGEST_SIDE),
        "labels": DatasetOption("auto: those beside the images, if any", str, "auto", LABELS, cuts_test=True),
        **COLOUR_OPTION,
        **CORRUPT_OPTION,
        **CONDITION_OPTIONS,
        **TAR_BIAS_OPTION,
    },
)
