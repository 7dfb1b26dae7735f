"""Facts of tables of images, without decoding pixels: which columns hold images and labels, and what."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from contrasweep.data.decoding import ImageHeader
from contrasweep.data.encoded import check_labels, header_of
from contrasweep.data.images import UNLABELLED
from contrasweep.data.own_folders import one_class
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.sources.table_labels import (
    Parts,
    check_label_column,
    holds_words,
    names_of_numbers,
    read_labels,
    words_in,
)
from contrasweep.data.tables import TablePart
from contrasweep.names import unknown

AUTO, NO_LABELS = "auto", "none"
IMAGE_COLUMNS = ("img", "image")
LABEL_COLUMNS = ("label", "labels", "fine_label")

MOST_CLASSES = 1_000_000
"""The most classes that labels without names may number."""

_LOOKED_AT = 16
"""The number of images whose headers are read to learn size and colour."""


@dataclass(frozen=True)
class TableFacts:
    """What the columns of a dataset hold.

    `label` is None where there is no column of labels, and `classes` is 0 where no image has a label. `words`
    are the labels where they are words, or numbers with gaps. `licence` is empty where the tables do not say
    it.
    """

    image: str
    label: str | None
    words: tuple[str, ...]
    classes: int
    class_names: tuple[str, ...]
    licence: str
    size: int
    channels: int


def rows_of(parts: Sequence[TablePart]) -> int:
    """Return the number of rows of tables."""
    return sum(part.rows for part in parts)


@lru_cache(maxsize=64)
def facts_of(train: Parts, wanted_image: str, wanted_label: str, colour: str, size: int) -> TableFacts:
    """Return the facts of a dataset from its training tables; the arguments behind them are its options.

    Raises:
        DatasetDamaged: see `columns_of`; or a table lacks a column of the first, there is no image, one class
            alone, none of the first images can be decoded, or they are not square and `size` is 0.
    """
    image, label = columns_of(train[0], wanted_image, wanted_label)
    for part in train[1:]:
        columns_of(part, image, label or NO_LABELS)
    schema = train[0].schema
    named = () if label is None else _class_names(schema, label)
    words = () if label is None else _words(train, label, named)
    names = words or named
    classes = 0 if label is None else _class_count(train, label, words, len(names))
    if classes == 1:
        only = one_class(names[0] if names else "0", f"label={NO_LABELS}")
        raise DatasetDamaged(f"column {label} of {train[0].place} {only}")
    shown = next((part for part in train if part.rows), train[0])
    headers = _headers(shown, image)
    first = headers[0]
    if not size and first.height != first.width:
        raise DatasetDamaged(
            f"the images of {shown.place} are not square (the first is {first.height} x {first.width}): "
            "give size=S to resize all of them to S x S"
        )
    return TableFacts(
        image=image,
        label=label,
        words=words,
        classes=classes,
        class_names=names if classes else (),
        licence=str(_hub_info(schema).get("license") or ""),
        size=size or first.height,
        channels={"grey": 1, "rgb": 3}.get(colour) or max(header.channels for header in headers),
    )


def columns_of(part: TablePart, image: str, label: str) -> tuple[str, str | None]:
    """Return the names of the columns of images and of labels; None for the latter if there are no labels.

    Args:
        part: a table.
        image: the name of the column of images; `AUTO`: one of `IMAGE_COLUMNS`, else the only one there is.
        label: the name of the column of labels; `AUTO`: one of `LABEL_COLUMNS`, else the only one whose
            values the hub's metadata call classes; `NO_LABELS`: None.

    Raises:
        DatasetDamaged: there is no such column, there are several, or it holds something else.
    """
    found = _image_column(part, image)
    return found, _label_column(part, found, label)


def labels_of(parts: Parts, facts: TableFacts) -> Tensor:
    """Return the labels of tables, int64 `(N,)`, `UNLABELLED` where there is none."""
    if facts.label is None or not facts.classes:
        return torch.full((rows_of(parts),), UNLABELLED, dtype=torch.int64)
    return read_labels(parts, facts.label, facts.words)


def checked_labels(parts: Parts, facts: TableFacts, place: str, *, test: bool) -> Tensor:
    """Return the labels of tables, see `labels_of`; messages call the tables `place`.

    Raises:
        DatasetDamaged: one is out of range, or a test image of labelled data has none.
    """
    labels = labels_of(parts, facts)
    if not facts.classes:
        return labels
    without = (labels == UNLABELLED).nonzero().flatten().tolist()
    check_labels(labels.where(labels != UNLABELLED, 0), facts.classes, place)
    if without and test:
        raise DatasetDamaged(
            f"{place}: row {without[0]} has no label, but training images have some; name another with test="
        )
    return labels


def unlabelled_of(train: Parts, facts: TableFacts) -> int:
    """Return the number of training images without a label."""
    if facts.label is not None and not facts.words and _all_numbered(train, facts.label):
        return 0
    return int((labels_of(train, facts) == UNLABELLED).sum())


def _image_column(part: TablePart, wanted: str) -> str:
    names = _of_images(part)
    if wanted != AUTO:
        if wanted not in part.schema.names:
            raise DatasetDamaged(unknown(f"column of {part.place}", wanted, tuple(part.schema.names)))
        if not _holds_bytes(part.schema.field(wanted).type):
            raise DatasetDamaged(f"column {wanted} of {part.place} holds no images, each {{bytes, path}}")
        return wanted
    usual = [name for name in IMAGE_COLUMNS if name in names]
    if not usual and len(names) > 1:
        raise DatasetDamaged(
            f"{part.place} has several columns of images ({', '.join(names)}): name one with image=COLUMN"
        )
    if not names:
        raise DatasetDamaged(
            f"{part.place} has no column of images, each {{bytes, path}}, as {' or '.join(IMAGE_COLUMNS)}; "
            f"it has {_told_columns(part.schema)}"
        )
    return (usual or names)[0]


def _told_columns(schema: Any) -> str:
    """Return the names of all columns with their types: one called image may hold paths, or bare bytes."""
    return ", ".join(f"{one.name} ({one.type})" for one in schema)


def _of_images(part: TablePart) -> list[str]:
    """Return the columns that hold encoded images; the hub's metadata may tell them from other files."""
    kinds = {name: _feature(part.schema, name).get("_type", "Image") for name in part.schema.names}
    of_bytes = [one.name for one in part.schema if _holds_bytes(one.type)]
    return [name for name in of_bytes if kinds[name] == "Image"]


def _label_column(part: TablePart, image: str, wanted: str) -> str | None:
    schema = part.schema
    if wanted == NO_LABELS:
        return None
    usual = [name for name in LABEL_COLUMNS if name in schema.names]
    classes = [name for name in schema.names if _feature(schema, name).get("_type") == "ClassLabel"]
    found = [wanted] if wanted != AUTO else usual or (classes if len(classes) == 1 else [])
    label = found[0] if found else None
    if label is None and schema.names == [image]:
        return None
    if label is None:
        raise DatasetDamaged(
            f"{part.place} has no column {' or '.join(LABEL_COLUMNS)}: name one with label=COLUMN, or give "
            f"label={NO_LABELS}; it has {', '.join(schema.names)}"
        )
    check_label_column(part, label, "labels")
    return label


def _holds_bytes(kind: Any) -> bool:
    """Whether a column of this type is `{bytes, ...}`."""
    from pyarrow import types

    if not types.is_struct(kind) or kind.get_field_index("bytes") < 0:
        return False
    encoded = kind.field("bytes").type
    return bool(types.is_binary(encoded) or types.is_large_binary(encoded))


def _words(train: Parts, label: str, named: tuple[str, ...]) -> tuple[str, ...]:
    if holds_words(train[0].schema.field(label).type):
        return words_in(train, label)
    return () if named else names_of_numbers(train, label)


def _class_names(schema: Any, label: str) -> tuple[str, ...]:
    """Return the names of the classes from the hub's schema metadata, or from a `class_names` list."""
    names = _feature(schema, label).get("names")
    if isinstance(names, dict) and all(key.isdecimal() for key in names):
        names = [names[key] for key in sorted(names, key=int)]
    if isinstance(names, list) and names:
        return tuple(str(name) for name in names)
    plain = (schema.metadata or {}).get(b"class_names", b"").decode(errors="replace")
    return tuple(plain.split(",")) if plain else ()


def _feature(schema: Any, column: str) -> dict[str, Any]:
    """Return what the hub's metadata say of a column."""
    return _mapping(_mapping(_hub_info(schema).get("features")).get(column))


def _hub_info(schema: Any) -> dict[str, Any]:
    """Return what the hub's metadata say; empty if they are not there, or not in the hub's form."""
    metadata: Mapping[bytes, bytes] = schema.metadata or {}
    try:
        return _mapping(_mapping(json.loads(metadata.get(b"huggingface", b"{}"))).get("info"))
    except (ValueError, RecursionError):
        return {}


def _mapping(content: object) -> dict[str, Any]:
    return content if isinstance(content, dict) else {}


def _class_count(train: Parts, label: str, words: tuple[str, ...], named: int) -> int:
    """Return the number of named classes, or the largest label and one; 0 if no image has a label."""
    if not rows_of(train):
        raise DatasetDamaged(f"{train[0].place} holds no images")
    if words or (named and _all_numbered(train, label)):
        return named
    largest = int(read_labels(train, label, words).max())
    if largest == UNLABELLED:
        return 0
    if named:
        return named
    if not 0 <= largest < MOST_CLASSES:
        allowed = f"0 to {MOST_CLASSES - 1:,}"
        raise DatasetDamaged(f"{train[0].place}: the largest {label} is {largest}; allowed: {allowed}")
    return largest + 1


def _all_numbered(parts: Parts, label: str) -> bool:
    return all(part.all_numbered(label) for part in parts)


def _headers(part: TablePart, column: str) -> list[ImageHeader]:
    """Return the headers of the first images that have one."""
    headers, damaged = [], DatasetDamaged(f"{part.place} holds no images")
    for row, encoded in enumerate(part.first_images(column, _LOOKED_AT)):
        try:
            headers.append(header_of(encoded, f"{part.place}, row {row}"))
        except DatasetDamaged as error:
            damaged = error
    if not headers:
        raise damaged
    return headers
