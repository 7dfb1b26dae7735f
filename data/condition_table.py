"""A condition from a CSV file whose first column names the images, in any order.

N training images, D numbers each. Attributes of photographs come as such tables: an age, a camera, a place.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.cache import while_unchanged
from contrasweep.data.fingerprint import Listing
from contrasweep.data.named_rows import MOST_CATEGORIES, names_and_rows
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.text_table import TextColumn, read_text_table


@while_unchanged(8)
def read_condition_table(path: Path, images: Listing) -> Tensor:
    """Read the rows of the training images from a CSV file.

    Args:
        path: the file. Its first column names the images, see `names_and_rows`. Rows of other images are not
            read. A column of numbers is one number of the condition. Each word in a column of words is one:
            1 for the images that have it, 0 for the others. An empty cell has no word.
        images: the images in the order of the dataset.

    Returns:
        float32 ``(N, D)``, in the order of ``images``; values beyond float32 are infinite.

    Raises:
        DatasetDamaged: the file is no table (see `read_text_table`), lacks the row of an image, has two of
            one, or has no other column; or a column has numbers and words, no value, or more than
            `MOST_CATEGORIES` words.
    """
    table = read_text_table(path)
    key, *names = table
    if not names:
        raise DatasetDamaged(f"{path} has no column besides {key!r}, which names the images")
    (known,), (rows,) = names_and_rows(path, table, images)
    return torch.cat(
        [_numbers(f"{path}: column {name!r}", table[name], rows, known) for name in names], dim=1
    )


def _numbers(where: str, column: TextColumn, rows: np.ndarray, images: Sequence[str]) -> Tensor:
    """Return a column of numbers as `(N, 1)`, or one of words as `(N, words)`, in the order of the words."""
    used, codes = np.unique(column.codes[rows], return_inverse=True)
    texts = [column.values[code] for code in used.tolist()]
    values = np.array([_number(text) for text in texts])
    finite = np.isfinite(values)
    if finite.all():
        with np.errstate(over="ignore"):
            return torch.from_numpy(values[codes].astype(np.float32))[:, None]
    if finite.any():
        image = int(np.argmax(~finite[codes]))
        raise DatasetDamaged(
            f"{where} has numbers, but {texts[codes[image]]!r} for {images[image]!r}: give a number there, "
            "or leave the column out"
        )
    words = sorted(text for text in texts if text)
    if not 0 < len(words) <= MOST_CATEGORIES:
        raise DatasetDamaged(
            f"{where} has {len(words):,} different words; allowed: 1 to {MOST_CATEGORIES:,}. Leave it out"
        )
    place = {word: number for number, word in enumerate(words)}
    found = torch.tensor([place.get(text, len(words)) for text in texts])[torch.from_numpy(codes)]
    return torch.eye(len(words) + 1)[found, :-1]


def _number(text: str) -> float:
    """Return the number that a text spells; NaN if it spells none."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
