"""Attributes of images as binary vectors, read from a table.

N images, A binary attributes. A table has one row for each image, a column with the name of the image, and
columns of attributes. Each value of a categorical column becomes a binary attribute.

Source: Tsai et al., "Learning Weakly-supervised Contrastive Representations" (ICLR 2022), Section 4.1, which
turns the 7 discrete attributes of UT-Zappos50K into 126 Bernoulli ones.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.root import DatasetDamaged
from contrasweep.data.text_table import TextColumn, column_of, read_text_table
from contrasweep.names import few_quoted

# (text of 0, text of 1); a column uses one of these pairs.
_SPELLINGS = (("0", "1"), ("false", "true"), ("-1", "1"), ("0.0", "1.0"))


@dataclass(frozen=True)
class Attributes:
    """Binary attributes of images.

    Attributes:
        images: the names of the N images in the table.
        names: the A attributes; a value of a categorical column is called ``COLUMN=VALUE``.
        values: float32 ``(N, A)`` of 0 and 1.
    """

    images: tuple[str, ...]
    names: tuple[str, ...]
    values: Tensor


def read_attributes(
    path: Path,
    images: Sequence[str] | None = None,
    *,
    image_column: str = "path",
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
    table: Mapping[str, TextColumn] | None = None,
) -> Attributes:
    """Read the attributes of images from a CSV file.

    Args:
        path: the file; its first line names the columns.
        images: the images of a dataset; the result has these images in this order. None gives every row in
            the order of the file.
        image_column: the column that names the image.
        categorical: the columns whose values are categories. An empty cell has no category.
        ignore: columns to leave out. All other columns must be binary: 0 and 1, false and true (any case),
            or -1 and 1.
        table: the contents of the file, if they were read before.

    Raises:
        ValueError: the file is not a table (see `read_text_table`), lacks a column or rows of ``images``, or
            has two rows of one image, a cell of a binary column is not binary, or ``images`` has a name
            twice; the message names them.
    """
    table = read_text_table(path) if table is None else table
    listed = column_of(table, image_column, path).texts()
    for name in (*categorical, *ignore):
        column_of(table, name, path)
    names: list[str] = []
    columns: list[np.ndarray] = []
    for name, column in table.items():
        if name == image_column or name in ignore:
            continue
        found = _categories(name, column) if name in categorical else _binary(name, column, path, listed)
        names += found
        columns += found.values()
    if not names:
        raise ValueError(f"{path} has no attributes besides {image_column!r}")
    twice = [] if images is None else [name for name, count in Counter(images).items() if count > 1]
    if twice:
        raise ValueError(
            f"images: {few_quoted(twice)} given more than once; name images so that each has a row of its "
            "own, for example with their folder"
        )
    rows = rows_of(listed, images, path)
    values = torch.from_numpy(np.stack(columns, axis=1))[rows].float()
    return Attributes(tuple(listed[row] for row in rows.tolist()), tuple(names), values)


def check_binary(values: Tensor) -> None:
    """Check that ``values`` is a matrix of 0 and 1, ``(N, A)`` with N and A at least 1.

    Raises:
        ValueError: another shape or value; the message gives the shape, or the first wrong value and its
            place.
    """
    if values.dim() != 2 or not values.numel():
        raise ValueError(f"binary attributes must be (N, A) and not empty, got {tuple(values.shape)}")
    wrong = ((values != 0) & (values != 1)).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        found = values[row, column].item()
        raise ValueError(f"binary attributes must be 0 or 1, got {found:g} in row {row}, column {column}")


def _categories(name: str, column: TextColumn) -> dict[str, np.ndarray]:
    # Sorted by text, so that the order of the rows does not matter.
    numbered = sorted((text, code) for code, text in enumerate(column.values) if text)
    return {f"{name}={text}": column.codes == code for text, code in numbered}


def _binary(name: str, column: TextColumn, path: Path, images: Sequence[str]) -> dict[str, np.ndarray]:
    texts = [text.lower() for text in column.values]
    for no, yes in _SPELLINGS:
        if set(texts) <= {no, yes}:
            return {name: np.array([text == yes for text in texts])[column.codes]}
    known = {text for spelling in _SPELLINGS for text in spelling}
    strange = next((code for code, text in enumerate(texts) if text not in known), len(texts) - 1)
    where = images[int(np.argmax(column.codes == strange))]
    raise ValueError(
        f"{path}: column {name!r} is not binary, {where!r} has {column.values[strange]!r} there "
        "(allowed: 0 and 1, false and true, or -1 and 1); name it as categorical if it holds categories, "
        "or as one to ignore"
    )


def rows_of(listed: Sequence[str], images: Sequence[str] | None, path: Path) -> Tensor:
    """Return the rows of some images, or of all, in a table with one row for each image: int64 ``(M,)``.

    Raises:
        DatasetDamaged: an image has no row, or the table that was read from ``path`` lists one twice.
    """
    row_of = {image: row for row, image in enumerate(listed)}
    if len(row_of) != len(listed):
        twice = (image for row, image in enumerate(listed) if row_of[image] != row)
        raise DatasetDamaged(f"{path} has more than one row of {few_quoted(dict.fromkeys(twice))}")
    if images is None:
        return torch.arange(len(listed))
    missing = [image for image in images if image not in row_of]
    if missing:
        raise DatasetDamaged(
            f"{path} lacks the rows of {len(missing):,} of {len(images):,} images: {few_quoted(missing)}"
        )
    return torch.tensor([row_of[image] for image in images], dtype=torch.int64)
