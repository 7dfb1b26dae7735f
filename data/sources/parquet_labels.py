"""The labels in a column of Parquet files: whole numbers or words; null and -1 stand for no label."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from contrasweep.data.images import UNLABELLED
from contrasweep.data.parquet import ParquetPart, footer, opened
from contrasweep.data.root import DatasetDamaged
from contrasweep.names import unknown

Parts = tuple[ParquetPart, ...]

WORD_COUNT = 1_000_000
"""The most different words that may be classes."""


def holds_numbers(kind: Any) -> bool:
    """Whether a column of this type holds numbered labels; one without any value holds them too."""
    from pyarrow import types

    return bool(types.is_integer(kind) or types.is_null(kind))


def holds_words(kind: Any) -> bool:
    """Whether a column of this type holds labels in words."""
    from pyarrow import types

    if types.is_dictionary(kind):
        return holds_words(kind.value_type)
    return bool(types.is_string(kind) or types.is_large_string(kind))


@lru_cache(maxsize=16)
def words_in(parts: Parts, column: str) -> tuple[str, ...]:
    """Return the different words in a column, sorted: the names of the classes by their numbers."""
    found = {word for part in parts for word in _values(part, column, "string") if word is not None}
    if len(found) > WORD_COUNT:
        raise DatasetDamaged(f"{parts[0].path}: {column} has {len(found):,} different words")
    return tuple(sorted(found))


@lru_cache(maxsize=16)
def read_labels(parts: Parts, column: str, words: tuple[str, ...] = ()) -> Tensor:
    """Return the labels in a column, int64 `(N,)`, `UNLABELLED` where there is none.

    `words` are the names of the classes where the column holds words; they are empty where it holds numbers.

    Raises:
        DatasetDamaged: a file cannot be read, a number does not fit, or a word is not among `words`.
    """
    numbers = {word: number for number, word in enumerate(words)}
    found: list[int] = []
    for part in parts:
        for value in _values(part, column, "string" if words else "int64"):
            if value is None:
                found.append(UNLABELLED)
            elif words and value not in numbers:
                raise DatasetDamaged(unknown(f"{column} of {part.path}", value, words))
            else:
                found.append(numbers[value] if words else value)
    return torch.tensor(found, dtype=torch.int64)


def all_numbered(parts: Parts, column: str) -> bool:
    """Whether the statistics of the files say that each image has a numbered label; no label is read."""
    for part in parts:
        metadata = footer(part)
        for group in range(metadata.num_row_groups):
            chunks = metadata.row_group(group)
            own = [chunks.column(place) for place in range(chunks.num_columns)]
            found = next((one.statistics for one in own if one.path_in_schema == column), None)
            if found is None or not found.has_min_max or not found.has_null_count:
                return False
            if found.null_count or not isinstance(found.min, int) or found.min < 0:
                return False
    return True


def _values(part: ParquetPart, column: str, kind: str) -> list[Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with opened(part) as file:
        values = pq.ParquetFile(file).read([column], use_threads=False).column(column)
        # Inside `opened`, which tells that a value does not fit.
        values = values.cast(pa.string() if kind == "string" else pa.int64())
    result: list[Any] = values.to_pylist()
    return result
