"""Bias labels in a column of tables: words or whole numbers, for each image of both splits."""

from collections.abc import Mapping
from functools import lru_cache

import torch

from contrasweep.data.bias_table import NO_BIAS, BiasLabels, check_bias
from contrasweep.data.images import UNLABELLED
from contrasweep.data.options import DatasetOption
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.sources.table_labels import (
    Parts,
    check_label_column,
    holds_words,
    read_labels,
    words_in,
)

BIAS_COLUMN_OPTION: Mapping[str, DatasetOption] = {
    "bias": DatasetOption("column of the bias label of each image; none", str, NO_BIAS)
}
"""The option of every family of tables."""


@lru_cache(maxsize=16)
def bias_in(train: Parts, test: Parts, column: str) -> BiasLabels:
    """Return the bias labels of both splits.

    Raises:
        DatasetDamaged: a table lacks the column, it holds something else, or an image has no label; or see
            `check_bias`.
    """
    parts = (*train, *test)
    for part in parts:
        check_label_column(part, column, "bias labels")
    if holds_words(train[0].schema.field(column).type):
        values = words_in(parts, column)
    else:
        values = tuple(map(str, torch.unique(read_labels(parts, column)).tolist()))
    splits = [train, test] if test else [train]
    labels = [read_labels(split, column, values) for split in splits]
    for split, own in zip(splits, labels, strict=True):
        without = (own == UNLABELLED).nonzero().flatten().tolist()
        if without:
            raise DatasetDamaged(f"column {column} of {split[0].place}: row {without[0]} has no bias label")
    check_bias(f"column {column} of {train[0].place}", labels[0], len(values))
    return BiasLabels(values, labels)
