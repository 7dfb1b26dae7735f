"""Any image dataset in Parquet, in the layout of the Hugging Face hub; local or in an object store.

A split is the files `SPLIT-*.parquet` of one folder, or of its folder `data`, with a column of encoded images
(`{bytes, path}`) and one of labels, if they have any. Names of classes are read from the schema's metadata,
if it has them. Where there is no test split, a tenth of the images is cut off as one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from contrasweep.data.condition_files import CONDITION_OPTIONS, condition_facts, training_condition
from contrasweep.data.decoding import LARGEST_SIDE, ImageHeader
from contrasweep.data.encoded import check_labels, header_of, open_encoded
from contrasweep.data.facts import DatasetSpec
from contrasweep.data.images import UNLABELLED, LabelledImages
from contrasweep.data.imbalance import IMBALANCE_OPTIONS, imbalanced, kept_counts
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.own_folders import PARQUET, where_missing
from contrasweep.data.parquet import ParquetImages, ParquetPart, footer, opened
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing, path_below
from contrasweep.data.sources.listed_images import COLOUR_OPTION, CORRUPT_OPTION
from contrasweep.data.sources.parquet_labels import (
    all_numbered,
    holds_numbers,
    holds_words,
    read_labels,
    words_in,
)
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.data.splits import CUT, own_test_rows
from contrasweep.names import unknown

IMAGE_COLUMNS = ("img", "image")
LABEL_COLUMNS = ("label", "labels", "fine_label")
TEST_NAMES = ("test", "validation", "val", "valid")
NO_LABELS = "none"
HUB_FOLDER = "data"
"""The folder of a clone of a dataset's repository that usually holds its files."""

MOST_CLASSES = 1_000_000
"""The most classes that labels without names may number."""

SOURCE = "huggingface.co/datasets (the Parquet files of a dataset's repository)"

_LOOKED_AT = 16
"""The number of images whose headers are read to learn size and colour."""


@dataclass(frozen=True)
class _Facts:
    """Facts from the files, without decoding pixels: the columns of images and labels, and what they hold.

    `label` is None where there is no column of labels, `words` are the labels where they are words, and
    `classes` is 0 where no image has a label.
    """

    image: str
    label: str | None
    words: tuple[str, ...]
    classes: int
    class_names: tuple[str, ...]
    licence: str
    size: int
    channels: int


def _check(root: Path, options: Options) -> None:
    train, test = _parts(root, options, "train"), _parts(root, options, "test")
    facts = _facts(train, options)
    if test and not _rows(test):
        raise DatasetDamaged(f"{test[0].path} holds no images")
    for part in (*train, *test):
        if _columns(part, facts.label or NO_LABELS) != (facts.image, facts.label):
            raise DatasetDamaged(f"{part.path} lacks the columns {facts.image} and {facts.label}")
    _describe(root, options)


def _describe(root: Path, options: Options) -> DatasetSpec:
    train, test = _parts(root, options, "train"), _parts(root, options, "test")
    facts, name = _facts(train, options), HUB_PARQUET.full_name(options)
    size, unlabelled = _train_size(train, facts, options), _unlabelled(train, facts)
    if not test:
        _refuse_imbalance(options)
        kept, _ = own_test_rows(_labels(train, facts))
        # The test images are labelled ones, unless none has a label.
        size, unlabelled = len(kept), len(kept) if unlabelled == _rows(train) else unlabelled
    return DatasetSpec(
        name=name,
        summary=f"images of {options['path']} in Parquet" + ("" if test else CUT),
        classes=facts.classes,
        channels=facts.channels,
        image_size=facts.size,
        view_size=facts.size,
        train_size=size,
        test_size=_rows(test) if test else _rows(train) - size,
        unlabelled_size=unlabelled,
        licence=facts.licence,
        source=SOURCE,
        folder=str(options["path"]),
        class_names=facts.class_names,
        **condition_facts(name, root, options, _rows(train)),
    )


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    train, test = _parts(root, options, "train"), _parts(root, options, "test")
    facts, place = _facts(train, options), f"{split} split of {HUB_PARQUET.full_name(options)}"
    from_train = split == "train" or not test
    parts = train if from_train else test
    labels = _checked_labels(parts, facts, place, test=not from_train)
    images = open_encoded(
        ParquetImages(parts, facts.image),
        (facts.channels, facts.size, facts.size),
        labels,
        training_condition(root, options, len(labels)) if from_train else None,
        resize=bool(options["size"]),
        skip=options["corrupt"] == "skip",
    )
    if not test:
        kept, cut = own_test_rows(images.labels)
        return images.subset(kept if split == "train" else cut)
    if split == "test" or options["imbalance"] == "none":
        return images
    # The bare name of the folder: the same images are chosen wherever it lies.
    name = f"{PARQUET} {Path(str(options['path'])).name}"
    counts = torch.bincount(images.labels, minlength=facts.classes).tolist()
    return imbalanced(images, name, counts, options, int(options["group"]))


def _labels(parts: tuple[ParquetPart, ...], facts: _Facts) -> Tensor:
    """Return the labels of files, `UNLABELLED` where there is none."""
    if facts.label is None or not facts.classes:
        return torch.full((_rows(parts),), UNLABELLED, dtype=torch.int64)
    return read_labels(parts, facts.label, facts.words)


def _checked_labels(parts: tuple[ParquetPart, ...], facts: _Facts, place: str, *, test: bool) -> Tensor:
    """Return the labels of files.

    Raises:
        DatasetDamaged: one is out of range, or a test image of labelled data has none.
    """
    labels = _labels(parts, facts)
    if not facts.classes:
        return labels
    without = (labels == UNLABELLED).nonzero().flatten().tolist()
    check_labels(labels.where(labels != UNLABELLED, 0), facts.classes, place)
    if without and test:
        raise DatasetDamaged(f"{place}: row {without[0]} has no label, but training images have some")
    return labels


def _unlabelled(train: tuple[ParquetPart, ...], facts: _Facts) -> int:
    """Return the number of training images without a label."""
    if facts.label is not None and not facts.words and all_numbered(train, facts.label):
        return 0
    return int((_labels(train, facts) == UNLABELLED).sum())


def _parts(root: Path, options: Options, split: Split) -> tuple[ParquetPart, ...]:
    """Return the files of a split, by name; none of a test split that we cut from the training files.

    Raises:
        DatasetMissing: the folder or the files are missing.
    """
    found = _listing(root, str(options["path"]))
    wanted = str(options["test"])
    names = ("train",) if split == "train" else TEST_NAMES if wanted == "auto" else (wanted,)
    for name in names:
        parts = tuple(part for part in found if fnmatch(Path(part.path).name, f"{name}-*.parquet"))
        if parts:
            return parts
    if split == "test" and wanted == "auto":
        return ()
    there = ", ".join(Path(part.path).name for part in found[:5]) or "no Parquet file"
    patterns = " or ".join(f"{name}-*.parquet" for name in names)
    raise DatasetMissing(
        f"dataset {HUB_PARQUET.full_name(options)!r} is incomplete: {options['path']} lacks {patterns}; "
        f"it holds {there}. Get it from {SOURCE}."
    )


def _refuse_imbalance(options: Options) -> None:
    if options["imbalance"] != "none":
        raise ValueError(
            f"imbalance of dataset {HUB_PARQUET.full_name(options)}: it needs test files, and there are none"
        )


def _listing(root: Path, path: str) -> list[ParquetPart]:
    """Return the Parquet files of a folder: a URI (s3://...), an absolute path, or one under the root."""
    from pyarrow import fs

    uri = path if "://" in path else str(path_below(root, path).absolute())
    if "://" not in path and not Path(uri).is_dir():
        raise _not_found(where_missing(root, path))
    try:
        filesystem, inner = fs.FileSystem.from_uri(uri)
        entries = filesystem.get_file_info(fs.FileSelector(inner))
        below = next((one for one in entries if not one.is_file and one.base_name == HUB_FOLDER), None)
        if below is not None and not any(one.path.endswith(".parquet") for one in entries):
            entries = filesystem.get_file_info(fs.FileSelector(below.path))
    except (OSError, ValueError) as error:
        raise _not_found(f"{uri} cannot be listed ({error})") from error
    return [
        ParquetPart(filesystem, entry.path, entry.size, entry.mtime_ns or 0)
        for entry in sorted(entries, key=lambda entry: str(entry.path))
        if entry.is_file and entry.path.endswith(".parquet")
    ]


def _not_found(why: str) -> DatasetMissing:
    return DatasetMissing(
        f"dataset {PARQUET!r} not found: {why}. Give path= an absolute path, one under the data root "
        f"(--data-root DIR or {ROOT_VARIABLE}), or a URI such as s3://bucket/folder. Get it from {SOURCE}."
    )


def _train_size(train: tuple[ParquetPart, ...], facts: _Facts, options: Options) -> int:
    if options["imbalance"] == "none":
        kept_counts((), options)
        return _rows(train)
    counts = torch.bincount(_labelled(train, facts), minlength=facts.classes).tolist()
    return sum(kept_counts(counts, options, int(options["group"])))


def _labelled(train: tuple[ParquetPart, ...], facts: _Facts) -> Tensor:
    """Return the labels of training images, each of which must have one to be cut to unequal classes."""
    labels = _labels(train, facts)
    if bool((labels == UNLABELLED).any()):
        raise ValueError(f"imbalance of {train[0].path}: not all images have a label")
    return labels


def _rows(parts: Sequence[ParquetPart]) -> int:
    return sum(footer(part).num_rows for part in parts)


def _facts(train: tuple[ParquetPart, ...], options: Options) -> _Facts:
    return _facts_of(train, str(options["label"]), str(options["colour"]), int(options["size"]))


@lru_cache(maxsize=64)
def _facts_of(train: tuple[ParquetPart, ...], wanted_label: str, colour: str, size: int) -> _Facts:
    image, label = _columns(train[0], wanted_label)
    metadata = footer(train[0]).schema.to_arrow_schema().metadata or {}
    kind = None if label is None else footer(train[0]).schema.to_arrow_schema().field(label).type
    words = words_in(train, label) if label is not None and holds_words(kind) else ()
    names = words or (() if label is None else _class_names(metadata, label))
    classes = 0 if label is None else _class_count(train, label, words, len(names))
    headers = _headers(train[0], image)
    first = headers[0]
    if not size and first.height != first.width:
        raise DatasetDamaged(
            f"the images of {train[0].path} are not square (the first is {first.height} x {first.width}): "
            "give size=S to resize all of them to S x S"
        )
    return _Facts(
        image=image,
        label=label,
        words=words,
        classes=classes,
        class_names=names if classes else (),
        licence=str(_hub_info(metadata).get("license") or "see the dataset's card"),
        size=size or first.height,
        channels={"grey": 1, "rgb": 3}.get(colour) or max(header.channels for header in headers),
    )


def _columns(part: ParquetPart, wanted: str) -> tuple[str, str | None]:
    """Return the names of the columns of images and of labels; None for the latter if there are no labels."""
    schema = footer(part).schema.to_arrow_schema()
    image = next((name for name in IMAGE_COLUMNS if name in schema.names), None)
    if image is None or not _holds_bytes(schema.field(image).type):
        raise DatasetDamaged(
            f"{part.path} has no column of images: one of {', '.join(IMAGE_COLUMNS)}, each {{bytes, path}}, "
            f"is needed; it has {', '.join(schema.names)}"
        )
    if wanted == NO_LABELS:
        return image, None
    if wanted != "auto" and wanted not in schema.names:
        raise DatasetDamaged(unknown(f"column of {part.path}", wanted, tuple(schema.names)))
    names = LABEL_COLUMNS if wanted == "auto" else (wanted,)
    label = next((name for name in names if name in schema.names), None)
    if label is None and schema.names == [image]:
        return image, None
    if label is None:
        raise DatasetDamaged(
            f"{part.path} has no column {' or '.join(LABEL_COLUMNS)}: name one with label=COLUMN, or give "
            f"label={NO_LABELS}; it has {', '.join(schema.names)}"
        )
    kind = schema.field(label).type
    if not holds_numbers(kind) and not holds_words(kind):
        raise DatasetDamaged(f"column {label} of {part.path} is {kind}: labels are whole numbers or words")
    return image, label


def _holds_bytes(kind: Any) -> bool:
    """Whether a column of this type is `{bytes, ...}`."""
    from pyarrow import types

    if not types.is_struct(kind) or kind.get_field_index("bytes") < 0:
        return False
    encoded = kind.field("bytes").type
    return bool(types.is_binary(encoded) or types.is_large_binary(encoded))


def _class_names(metadata: Mapping[bytes, bytes], label: str) -> tuple[str, ...]:
    """Return the names of the classes from the hub's schema metadata, or from a `class_names` list."""
    names = _mapping(_mapping(_hub_info(metadata).get("features")).get(label)).get("names")
    if isinstance(names, dict) and all(key.isdecimal() for key in names):
        names = [names[key] for key in sorted(names, key=int)]
    if isinstance(names, list) and names:
        return tuple(str(name) for name in names)
    plain = metadata.get(b"class_names", b"").decode(errors="replace")
    return tuple(plain.split(",")) if plain else ()


def _hub_info(metadata: Mapping[bytes, bytes]) -> dict[str, Any]:
    """Return what the hub's metadata say; empty if they are not there, or not in the hub's form."""
    try:
        return _mapping(_mapping(json.loads(metadata.get(b"huggingface", b"{}"))).get("info"))
    except (ValueError, RecursionError):
        return {}


def _mapping(content: object) -> dict[str, Any]:
    return content if isinstance(content, dict) else {}


def _class_count(train: tuple[ParquetPart, ...], label: str, words: tuple[str, ...], named: int) -> int:
    """Return the number of named classes, or the largest label and one; 0 if no image has a label."""
    if not _rows(train):
        raise DatasetDamaged(f"{train[0].path} holds no images")
    if words or (named and all_numbered(train, label)):
        return named
    largest = int(read_labels(train, label, words).max())
    if largest == UNLABELLED:
        return 0
    if named:
        return named
    if not 0 <= largest < MOST_CLASSES:
        allowed = f"0 to {MOST_CLASSES - 1:,}"
        raise DatasetDamaged(f"{train[0].path}: the largest {label} is {largest}; allowed: {allowed}")
    return largest + 1


def _headers(part: ParquetPart, column: str) -> list[ImageHeader]:
    """Return the headers of the first images that have one; row groups are read page by page."""
    import pyarrow.parquet as pq

    with opened(part) as file:
        first = pq.ParquetFile(file, buffer_size=1 << 16)
        batches = first.iter_batches(_LOOKED_AT, columns=[f"{column}.bytes"], use_threads=False)
        batch = next(batches, None)
    if batch is None:
        raise DatasetDamaged(f"{part.path} holds no images")
    headers = []
    for row, encoded in enumerate(batch.column(0).field("bytes").to_pylist()):
        try:
            headers.append(header_of(encoded or b"", f"{part.path}, row {row}"))
        except DatasetDamaged as error:
            damaged = error
    if not headers:
        raise damaged
    return headers


HUB_PARQUET = DatasetFamily(
    name=PARQUET,
    summary="any images in Parquet as the Hugging Face hub has them, labels or none, local or s3://",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "path": DatasetOption("folder of the files: absolute, under the data root, or a URI", str, None),
        "size": DatasetOption(
            "resize to this height and width; 0: all have one size", int, 0, low=0, high=LARGEST_SIDE
        ),
        "label": DatasetOption("column of the labels; auto: label, labels or fine_label; none", str, "auto"),
        "test": DatasetOption("which files are the test split", str, "auto", choices=("auto", *TEST_NAMES)),
        **COLOUR_OPTION,
        **CORRUPT_OPTION,
        **IMBALANCE_OPTIONS,
        **CONDITION_OPTIONS,
        "group": DatasetOption("neighbouring classes that share a level of imbalance", int, 1, low=1),
    },
)
