"""Datasets that are tables of encoded images: what they offer, how they are checked, and how they are read.

Parquet files and Arrow files differ in how they are found and read alone. Where there is no test split, a
tenth of the images is cut off as one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from contrasweep.data.bias_table import NO_BIAS, BiasLabels
from contrasweep.data.condition_files import CONDITION_OPTIONS, condition_facts, training_condition
from contrasweep.data.decoding import LARGEST_SIDE
from contrasweep.data.encoded import EncodedImages, open_encoded
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.imbalance import IMBALANCE_OPTIONS, is_cut, kept_counts, rows_left
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.sources.listed_images import COLOUR_OPTION, CORRUPT_OPTION
from contrasweep.data.sources.table_bias import BIAS_COLUMN_OPTION, bias_in
from contrasweep.data.sources.table_facts import (
    AUTO,
    NO_LABELS,
    TableFacts,
    checked_labels,
    columns_of,
    facts_of,
    labels_of,
    rows_of,
    unlabelled_of,
)
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.data.splits import CUT, own_test_rows
from contrasweep.data.tables import TablePart

TABLE_OPTIONS: Mapping[str, DatasetOption] = {
    "size": DatasetOption(
        "resize to this height and width; 0: all have one size", int, 0, low=0, high=LARGEST_SIDE
    ),
    "image": DatasetOption("column of the images; auto: img or image, else the only one", str, AUTO),
    "label": DatasetOption(
        "column of the labels; auto: label, labels or fine_label, else the only one of classes; none",
        str,
        AUTO,
        cuts_test=True,
    ),
    **COLOUR_OPTION,
    # Corrupt images are left out before the test images are cut off, those of folders and tar files after it.
    "corrupt": replace(CORRUPT_OPTION["corrupt"], cuts_test=True),
    **IMBALANCE_OPTIONS,
    **CONDITION_OPTIONS,
    **BIAS_COLUMN_OPTION,
    "group": DatasetOption("neighbouring classes that share a level of imbalance", int, 1, low=1),
}
"""The options of every family of tables."""


Part = TypeVar("Part", bound=TablePart)


@dataclass(frozen=True)
class Tables(Generic[Part]):
    """The tables of a dataset, found and not read.

    Attributes:
        name: the dataset's, with its options.
        train, test: the tables of the splits; no `test`: it is cut off the training images.
        images: opens the encoded images in a column of tables.
        summary: what the images are.
        folder, source: see `SharedFacts`.
        licence: holds where the tables do not say any.
        drawn_as: the name by which images are drawn for unequal classes, the same wherever the files lie.
        fingerprint: returns the fingerprint of the contents, see `SharedFacts`; "" for none.
    """

    name: str
    train: tuple[Part, ...]
    test: tuple[Part, ...]
    images: Callable[[tuple[Part, ...], str], EncodedImages]
    summary: str
    folder: str
    source: str
    licence: str
    drawn_as: str
    fingerprint: Callable[[tuple[Part, ...], tuple[Part, ...], TableFacts], str] = lambda *_: ""


def family_of_tables(
    name: str,
    summary: str,
    options: Mapping[str, DatasetOption],
    find: Callable[[Path, Options], Tables[Any]],
    library: str = "",
) -> DatasetFamily:
    """Return a family of tables.

    Args:
        name, summary, library: see `DatasetFamily`.
        options: those of the family besides `TABLE_OPTIONS`.
        find: finds the tables of a dataset; raises DatasetMissing where they are not there.
    """
    return DatasetFamily(
        name=name,
        summary=summary,
        describe=lambda root, given: _describe(find(root, given), root, given),
        check=lambda root, given: _check(find(root, given), root, given),
        read=lambda root, split, given: _read(find(root, given), root, split, given),
        options={**options, **TABLE_OPTIONS},
        library=library,
        uncut=lambda root, given: _uncut(find(root, given), root, given),
    )


def _check(found: Tables[Any], root: Path, options: Options) -> None:
    facts = _facts(found, options)
    if found.test and not rows_of(found.test):
        raise DatasetDamaged(f"{found.test[0].place} holds no images")
    for part in found.test:
        columns_of(part, facts.image, facts.label or NO_LABELS)
    _describe(found, root, options)


def _describe(found: Tables[Any], root: Path, options: Options) -> DatasetSpec:
    train, facts = found.train, _facts(found, options)
    size, unlabelled = _train_size(found, facts, options), unlabelled_of(train, facts)
    if not found.test:
        if is_cut(options):
            raise ValueError(f"imbalance of dataset {found.name}: it needs test images, and there are none")
        kept, _ = own_test_rows(labels_of(train, facts))
        # The test images are labelled ones, unless none has a label.
        size, unlabelled = len(kept), len(kept) if unlabelled == rows_of(train) else unlabelled
    bias = _bias(found, facts, options)
    fingerprint = found.fingerprint(train, found.test, facts)
    return DatasetSpec(
        name=found.name,
        summary=found.summary + ("" if found.test else CUT),
        classes=facts.classes,
        channels=facts.channels,
        image_size=facts.size,
        view_size=facts.size,
        train_size=size,
        cut=is_cut(options),
        test_size=rows_of(found.test) if found.test else rows_of(train) - size,
        unlabelled_size=unlabelled,
        licence=facts.licence or found.licence,
        source=found.source,
        folder=found.folder,
        class_names=facts.class_names,
        bias_classes=None if bias is None else len(bias.values),
        bias_names=() if bias is None else bias.values,
        **condition_facts(
            found.name,
            root,
            options,
            rows_of(train),
            fingerprint if bias is None else fingerprint + bias.fingerprint,
        ),
    )


def _read(found: Tables[Any], root: Path, split: Split, options: Options) -> LabelledImages:
    if split == "test" or not is_cut(options):
        return _whole(found, root, split, options)
    images, rows = _uncut(found, root, options)
    return images.subset(rows)


def _whole(found: Tables[Any], root: Path, split: Split, options: Options) -> LabelledImages:
    """Return the images of a split, all of them."""
    facts, place = _facts(found, options), f"{split} split of {found.name}"
    from_train = split == "train" or not found.test
    parts = found.train if from_train else found.test
    labels = checked_labels(parts, facts, place, test=not from_train)
    bias = _bias(found, facts, options)
    images = open_encoded(
        found.images(parts, facts.image),
        (facts.channels, facts.size, facts.size),
        labels,
        training_condition(root, options, len(labels)) if from_train else None,
        None if bias is None else bias.splits[0 if from_train else 1],
        resize=bool(options["size"]),
        skip=options["corrupt"] == "skip",
    )
    if not found.test:
        kept, cut = own_test_rows(images.labels)
        return images.subset(kept if split == "train" else cut)
    return images


def _uncut(found: Tables[Any], root: Path, options: Options) -> tuple[LabelledImages, Tensor]:
    """Return the training images, and which of them are left by the cut to unequal classes."""
    images, facts = _whole(found, root, "train", options), _facts(found, options)
    counts = torch.bincount(images.labels, minlength=facts.classes).tolist()
    return images, rows_left(images, found.drawn_as, counts, options, int(options["group"]))


def _bias(found: Tables[Any], facts: TableFacts, options: Options) -> BiasLabels | None:
    """Return the bias labels that the options name; None if they name none."""
    column = str(options["bias"])
    if column == NO_BIAS:
        return None
    if not facts.classes:
        raise DatasetDamaged(f"bias={column}: {found.name} has a bias, but no labels")
    return bias_in(found.train, found.test, column)


def _facts(found: Tables[Any], options: Options) -> TableFacts:
    wanted = str(options["image"]), str(options["label"]), str(options["colour"])
    return facts_of(found.train, *wanted, int(options["size"]))


def _train_size(found: Tables[Any], facts: TableFacts, options: Options) -> int:
    if not is_cut(options):
        kept_counts((), options)
        return rows_of(found.train)
    counts = torch.bincount(_labelled(found, facts), minlength=facts.classes).tolist()
    return sum(kept_counts(counts, options, int(options["group"])))


def _labelled(found: Tables[Any], facts: TableFacts) -> Tensor:
    """Return the labels of training images, each of which must have one to be cut to unequal classes."""
    labels = labels_of(found.train, facts)
    if bool((labels == UNLABELLED).any()):
        raise ValueError(f"imbalance of {found.train[0].place}: not all images have a label")
    return labels
