"""Any labelled image dataset in Parquet, in the layout of the Hugging Face hub; local or in an object store.

A split is the files `SPLIT-*.parquet` of one folder, with a column of encoded images (`{bytes, path}`) and
one of whole-numbered labels. Names of classes are read from the schema's metadata, if it has them.
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
from contrasweep.data.images import LabelledImages
from contrasweep.data.imbalance import IMBALANCE_OPTIONS, imbalanced, kept_counts
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.own_folders import PARQUET, where_missing
from contrasweep.data.parquet import ParquetImages, ParquetPart, footer, opened
from contrasweep.data.root import ROOT_VARIABLE, DatasetDamaged, DatasetMissing, path_below
from contrasweep.data.sources.listed_images import COLOUR_OPTION, CORRUPT_OPTION
from contrasweep.data.spec import DatasetFamily, Split
from contrasweep.names import unknown

IMAGE_COLUMNS = ("img", "image")
LABEL_COLUMNS = ("label", "labels", "fine_label")
TEST_NAMES = ("test", "validation", "val", "valid")
MOST_CLASSES = 1_000_000
"""The most classes that labels without names may number."""

SOURCE = "huggingface.co/datasets (the Parquet files of a dataset's repository)"

_LOOKED_AT = 16
"""The number of images whose headers are read to learn size and colour."""


@dataclass(frozen=True)
class _Facts:
    """Facts from the files, without decoding pixels: the columns of images and labels, and what they hold."""

    image: str
    label: str
    classes: int
    class_names: tuple[str, ...]
    licence: str
    size: int
    channels: int


def _check(root: Path, options: Options) -> None:
    train, test = _parts(root, options, "train"), _parts(root, options, "test")
    facts = _facts(train, options)
    if not _rows(test):
        raise DatasetDamaged(f"{test[0].path} holds no images")
    for part in (*train, *test):
        if _columns(part, facts.label) != (facts.image, facts.label):
            raise DatasetDamaged(f"{part.path} lacks the columns {facts.image} and {facts.label}")
    _describe(root, options)


def _describe(root: Path, options: Options) -> DatasetSpec:
    train, test = _parts(root, options, "train"), _parts(root, options, "test")
    facts, name = _facts(train, options), HUB_PARQUET.full_name(options)
    return DatasetSpec(
        name=name,
        summary=f"images of {options['path']} in Parquet",
        classes=facts.classes,
        channels=facts.channels,
        image_size=facts.size,
        view_size=facts.size,
        train_size=_train_size(train, facts, options),
        test_size=_rows(test),
        licence=facts.licence,
        source=SOURCE,
        folder=str(options["path"]),
        class_names=facts.class_names,
        **condition_facts(name, root, options, _rows(train)),
    )


def _read(root: Path, split: Split, options: Options) -> LabelledImages:
    train = _parts(root, options, "train")
    facts = _facts(train, options)
    parts = train if split == "train" else _parts(root, options, "test")
    labels = _labels(parts, facts.label)
    check_labels(labels, facts.classes, f"{split} split of {HUB_PARQUET.full_name(options)}")
    images = open_encoded(
        ParquetImages(parts, facts.image),
        (facts.channels, facts.size, facts.size),
        labels,
        training_condition(root, options, len(labels)) if split == "train" else None,
        resize=bool(options["size"]),
        skip=options["corrupt"] == "skip",
    )
    if split == "test" or options["imbalance"] == "none":
        return images
    # The bare name of the folder: the same images are chosen wherever it lies.
    name = f"{PARQUET} {Path(str(options['path'])).name}"
    counts = torch.bincount(images.labels, minlength=facts.classes).tolist()
    return imbalanced(images, name, counts, options, int(options["group"]))


def _parts(root: Path, options: Options, split: Split) -> tuple[ParquetPart, ...]:
    """Return the files of a split, by name.

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
    there = ", ".join(Path(part.path).name for part in found[:5]) or "no Parquet file"
    patterns = " or ".join(f"{name}-*.parquet" for name in names)
    raise DatasetMissing(
        f"dataset {HUB_PARQUET.full_name(options)!r} is incomplete: {options['path']} lacks {patterns}; "
        f"it holds {there}. Get it from {SOURCE}."
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
    counts = torch.bincount(_labels(train, facts.label), minlength=facts.classes).tolist()
    return sum(kept_counts(counts, options, int(options["group"])))


def _rows(parts: Sequence[ParquetPart]) -> int:
    return sum(footer(part).num_rows for part in parts)


def _facts(train: tuple[ParquetPart, ...], options: Options) -> _Facts:
    return _facts_of(train, str(options["label"]), str(options["colour"]), int(options["size"]))


@lru_cache(maxsize=64)
def _facts_of(train: tuple[ParquetPart, ...], wanted_label: str, colour: str, size: int) -> _Facts:
    image, label = _columns(train[0], wanted_label)
    metadata = footer(train[0]).schema.to_arrow_schema().metadata or {}
    names = _class_names(metadata, label)
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
        classes=len(names) or _class_count(train, label),
        class_names=names,
        licence=str(_hub_info(metadata).get("license") or "see the dataset's card"),
        size=size or first.height,
        channels={"grey": 1, "rgb": 3}.get(colour) or max(header.channels for header in headers),
    )


def _columns(part: ParquetPart, wanted: str) -> tuple[str, str]:
    """Return the names of the columns of images and of labels."""
    import pyarrow as pa

    schema = footer(part).schema.to_arrow_schema()
    image = next((name for name in IMAGE_COLUMNS if name in schema.names), None)
    if image is None or not _holds_bytes(schema.field(image).type):
        raise DatasetDamaged(
            f"{part.path} has no column of images: one of {', '.join(IMAGE_COLUMNS)}, each {{bytes, path}}, "
            f"is needed; it has {', '.join(schema.names)}"
        )
    if wanted != "auto" and wanted not in schema.names:
        raise DatasetDamaged(unknown(f"column of {part.path}", wanted, tuple(schema.names)))
    names = LABEL_COLUMNS if wanted == "auto" else (wanted,)
    label = next((name for name in names if name in schema.names), None)
    if label is None:
        raise DatasetDamaged(
            f"{part.path} has no column {' or '.join(LABEL_COLUMNS)}: name one with label=COLUMN; "
            f"it has {', '.join(schema.names)}"
        )
    if not pa.types.is_integer(schema.field(label).type):
        raise DatasetDamaged(
            f"column {label} of {part.path} is {schema.field(label).type}: labels must be whole numbers"
        )
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


def _class_count(train: tuple[ParquetPart, ...], label: str) -> int:
    """Return the largest label and one."""
    if not _rows(train):
        raise DatasetDamaged(f"{train[0].path} holds no images")
    count = int(_labels(train, label).max()) + 1
    if not 1 <= count <= MOST_CLASSES:
        allowed = f"0 to {MOST_CLASSES - 1:,}"
        raise DatasetDamaged(f"{train[0].path}: the largest {label} is {count - 1}; allowed: {allowed}")
    return count


@lru_cache(maxsize=16)
def _labels(parts: tuple[ParquetPart, ...], column: str) -> Tensor:
    import pyarrow as pa
    import pyarrow.parquet as pq

    found = []
    for part in parts:
        with opened(part) as file:
            values = pq.ParquetFile(file).read([column], use_threads=False).column(column)
            # Inside `opened`, which tells that a number does not fit.
            values = values.cast(pa.int64())
        if values.null_count:
            row = values.is_null().to_pylist().index(True)
            raise DatasetDamaged(f"{part.path}, row {row} has no {column}")
        found.append(torch.tensor(values.to_pylist(), dtype=torch.int64))
    return torch.cat(found)


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
    summary="any labelled images in Parquet as the Hugging Face hub stores them, local or s3://",
    describe=_describe,
    check=_check,
    read=_read,
    options={
        "path": DatasetOption("folder of the files: absolute, under the data root, or a URI", str, None),
        "size": DatasetOption(
            "resize to this height and width; 0: all have one size", int, 0, low=0, high=LARGEST_SIDE
        ),
        "label": DatasetOption("column of the labels; auto: label, labels or fine_label", str, "auto"),
        "test": DatasetOption("which files are the test split", str, "auto", choices=("auto", *TEST_NAMES)),
        **COLOUR_OPTION,
        **CORRUPT_OPTION,
        **IMBALANCE_OPTIONS,
        **CONDITION_OPTIONS,
        "group": DatasetOption("neighbouring classes that share a level of imbalance", int, 1, low=1),
    },
)
