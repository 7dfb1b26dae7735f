"""The labels in a column of tables: whole numbers or words; null and -1 stand for no label."""

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from contrasweep.data.images import UNLABELLED
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.tables import TablePart
from contrasweep.names import unknown

Parts = tuple[TablePart, ...]

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


def check_label_column(part: TablePart, column: str, what: str) -> None:
    """Refuse a column that is not there, or holds neither whole numbers nor words.

    Args:
        part: a table.
        column: the name of the column.
        what: what it should hold, for the message, in the plural.

    Raises:
        DatasetDamaged: the message names the columns that there are, or the type of this one.
    """
    if column not in part.schema.names:
        raise DatasetDamaged(unknown(f"column of {part.place}", column, tuple(part.schema.names)))
    kind = part.schema.field(column).type
    if not holds_numbers(kind) and not holds_words(kind):
        raise DatasetDamaged(f"column {column} of {part.place} is {kind}: {what} are whole numbers or words")


@lru_cache(maxsize=16)
def words_in(parts: Parts, column: str) -> tuple[str, ...]:
    """Return the different words in a column, sorted: the names of the classes by their numbers."""
    found = {word for part in parts for word in part.values(column, "string") if word is not None}
    if len(found) > WORD_COUNT:
        raise DatasetDamaged(f"{parts[0].place}: {column} has {len(found):,} different words")
    return tuple(sorted(found))


@lru_cache(maxsize=16)
def names_of_numbers(parts: Parts, column: str) -> tuple[str, ...]:
    """Return the numbers in a column of labels as words, ascending, if they have gaps.

    Then each number that occurs is a class, and no other: labels that begin with 1 have no class 0. Empty, if
    one is negative, or if 0 and at least half of the numbers to the largest occur: then the others are taken
    for classes that the training images lack, as in a long tail.

    Raises:
        DatasetDamaged: see `read_labels`; or there are more than `WORD_COUNT`.
    """
    found = torch.unique(read_labels(parts, column, ())).tolist()
    known = [number for number in found if number != UNLABELLED]
    if not known or known[0] < 0 or (known[0] == 0 and 2 * len(known) > known[-1]):
        return ()
    if len(known) > WORD_COUNT:
        raise DatasetDamaged(f"{parts[0].place}: {column} has {len(known):,} different numbers")
    return tuple(str(number) for number in known)


@lru_cache(maxsize=16)
def read_labels(parts: Parts, column: str, words: tuple[str, ...] = ()) -> Tensor:
    """Return the labels in a column, int64 `(N,)`, `UNLABELLED` where there is none.

    `words` are the names of the classes where the column holds words, or see `names_of_numbers`; they are
    empty where the column holds the numbers of the classes.

    Raises:
        DatasetDamaged: a file cannot be read, a number does not fit, or a word is not among `words`.
    """
    numbers = {word: number for number, word in enumerate(words)}
    found: list[int] = []
    for part in parts:
        without = {None, str(UNLABELLED)} if holds_numbers(part.schema.field(column).type) else {None}
        for value in part.values(column, "string" if words else "int64"):
            if value in without:
                found.append(UNLABELLED)
            elif words and value not in numbers:
                raise DatasetDamaged(unknown(f"{column} of {part.place}", value, words))
            else:
                found.append(numbers[value] if words else value)
    return torch.tensor(found, dtype=torch.int64)
