"""Bias labels in a column of tables: words or whole numbers, for each image of both splits."""

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import torch

from contrasweep.data.bias_table import BiasLabels, check_bias
from contrasweep.data.images import UNLABELLED
from contrasweep.data.options import DatasetOption
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.sources.table_labels import Parts, holds_numbers, holds_words, read_labels, words_in
from contrasweep.names import unknown

NO_BIAS: Final = "none"

BIAS_COLUMN_OPTION: Mapping[str, DatasetOption] = {
    "bias": DatasetOption("column of the bias label of each image; none", str, NO_BIAS)
}
"""The option of every family of tables."""


@lru_cache(maxsize=16)
def bias_in(train: Parts, test: Parts, column: str) -> BiasLabels | None:
    """Return the bias labels of both splits; None if the column is `NO_BIAS`.

    Raises:
        DatasetDamaged: a table lacks the column, it holds something else, or an image has no label; or see
            `check_bias`.
    """
    if column == NO_BIAS:
        return None
    parts = (*train, *test)
    for part in parts:
        if column not in part.schema.names:
            raise DatasetDamaged(unknown(f"column of {part.place}", column, tuple(part.schema.names)))
        kind = part.schema.field(column).type
        if not holds_numbers(kind) and not holds_words(kind):
            raise DatasetDamaged(
                f"column {column} of {part.place} is {kind}: bias labels are whole numbers or words"
            )
    if holds_words(train[0].schema.field(column).type):
        values = words_in(parts, column)
    else:
        values = tuple(map(str, torch.unique(read_labels(parts, column)).tolist()))
    labels = [read_labels(split, column, values) if split else torch.empty(0) for split in (train, test)]
    for split, own in zip((train, test), labels, strict=True):
        without = (own == UNLABELLED).nonzero().flatten().tolist()
        if without:
            raise DatasetDamaged(f"column {column} of {split[0].place}: row {without[0]} has no bias label")
    check_bias(f"column {column} of {train[0].place}", labels[0], len(values))
    return BiasLabels(values, labels[: 2 if test else 1])


def fingerprint_of_bias(bias: BiasLabels) -> str:
    """Return the fingerprint of bias labels: that of the tables may leave out their column."""
    digest = hashlib.blake2b(repr(bias.values).encode(), digest_size=8)
    for own in bias.splits:
        digest.update(own.numpy().tobytes())
    return digest.hexdigest()
