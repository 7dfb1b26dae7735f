"""Bias labels from a CSV file that names the images, in any order.

A bias label is the number of a property that goes with the class, such as the hospital of an X-ray image.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.cache import while_unchanged
from contrasweep.data.fingerprint import Listing
from contrasweep.data.named_rows import MOST_CATEGORIES, TABLE, names_and_rows
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import DatasetDamaged, file_of_option
from contrasweep.data.text_table import read_text_table
from contrasweep.names import counted, few

NO_BIAS: Final = "none"

BIAS_OPTION: Mapping[str, DatasetOption] = {
    "bias": DatasetOption(
        "table (.csv) with the bias label of each training and test image: its name, and a word or number",
        str,
        NO_BIAS,
    )
}
"""The option of a family whose images are files, which a table can name."""


@dataclass(frozen=True, eq=False)
class BiasLabels:
    """The bias labels of a dataset.

    Attributes:
        values: the B different words or numbers, sorted; labels number them from 0.
        splits: the labels of each split, int64 ``(N,)``.
    """

    values: tuple[str, ...]
    splits: Sequence[Tensor]

    @property
    def fingerprint(self) -> str:
        """Of the labels and their names, where the fingerprint of the images does not include them."""
        digest = hashlib.blake2b(repr(self.values).encode(), digest_size=8)
        for own in self.splits:
            digest.update(own.numpy().tobytes())
        return digest.hexdigest()


def check_bias(where: str, train: Tensor, values: int) -> None:
    """Refuse bias labels that can tell nothing, or too many to be groups of images.

    Args:
        where: where they come from, for messages.
        train: those of the training images.
        values: how many different ones there are in both splits.

    Raises:
        DatasetDamaged: all training images have the same, or there are more than `MOST_CATEGORIES`.
    """
    trained = len(np.unique(train.numpy()))
    if values > MOST_CATEGORIES or trained < 2:
        raise DatasetDamaged(
            f"{where} gives training images {counted(trained, 'different bias label')}; "
            f"allowed: 2 to {MOST_CATEGORIES:,}"
        )


def bias_file(root: Path, options: Options) -> Path | None:
    """Return the file that the option `bias` names; None if it names none.

    Raises:
        DatasetMissing: there is no such file.
        DatasetDamaged: its name has another ending.
    """
    given = str(options["bias"])
    if given == NO_BIAS:
        return None
    if Path(given).suffix != TABLE:
        raise DatasetDamaged(f"bias={given}: bias labels are read from a table ({TABLE})")
    return file_of_option(root, "bias", given, "and names each image, with its bias label")


@while_unchanged(8)
def read_bias_table(path: Path, *splits: Listing) -> BiasLabels:
    """Read the bias labels of all images.

    Args:
        path: the file. Its first column names the images (see `names_and_rows`), its second has the labels,
            as words or numbers.
        splits: the training images, then the test images, in the order of the dataset.

    Raises:
        DatasetDamaged: the file is no table (see `read_text_table`) or has other columns, an image has no
            row or no label; or see `check_bias`.
    """
    table = read_text_table(path)
    key, *labels = table
    if len(labels) != 1:
        raise DatasetDamaged(
            f"{path}: a table of bias labels has one column besides {key!r}, which names the images; it has "
            f"{few(labels) if labels else 'none'}"
        )
    column, (known, rows) = table[labels[0]], names_and_rows(path, table, *splits)
    codes = [column.codes[own] for own in rows]
    used = sorted(column.values[code] for code in np.unique(np.concatenate(codes)).tolist())
    if "" in used:
        empty = column.values.index("")
        places = ((own, code == empty) for own, code in zip(known, codes, strict=True))
        image = next(own[int(is_empty.argmax())] for own, is_empty in places if is_empty.any())
        raise DatasetDamaged(f"{path}: column {labels[0]!r} has no label of {image!r}")
    numbers = {word: number for number, word in enumerate(used)}
    number_of = np.array([numbers.get(word, -1) for word in column.values])
    found = [torch.from_numpy(number_of[own]).long() for own in codes]
    check_bias(f"{path}: column {labels[0]!r}", found[0], len(used))
    return BiasLabels(tuple(used), found)
