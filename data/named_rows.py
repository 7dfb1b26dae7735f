"""The rows of a table that belong to images, by the names of their files."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

import numpy as np

from contrasweep.data.attributes import rows_of
from contrasweep.data.fingerprint import Listing
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.text_table import TextColumn
from contrasweep.names import few_quoted

TABLE: Final = ".csv"
"""The ending of such files."""

MOST_CATEGORIES: Final = 1000
"""A column with more different words is no attribute but, say, a remark."""


def names_and_rows(
    path: Path, table: Mapping[str, TextColumn], *splits: Listing
) -> tuple[list[list[str]], list[np.ndarray]]:
    """Return how a table calls the images, and their rows in it, both for each split.

    Args:
        path: the file of the table, for messages.
        table: its contents. The first column names the images, in any order: by the path below the folder of
            the classes (`CLASS/NAME.png`), or with folders above it, the last ones or all of them
            (`photos/train/CLASS/NAME.png`, `/home/me/photos/train/CLASS/NAME.png`).
            It may name others, too.
        splits: the images in the order of the dataset.

    Raises:
        DatasetDamaged: the column names none of the images, lacks one, has one twice, or gives images of two
            splits the same name.
    """
    key = next(iter(table))
    # `find .` writes names like this.
    listed = [text.removeprefix("./") for text in table[key].texts()]
    known = _as_listed(set(listed), *splits)
    if not known:
        images = len(splits[0].names)
        raise DatasetDamaged(
            f"{path}: its first column, {key!r}, names none of the {images:,} training images: it has "
            f"{listed[0]!r}, and they are called {splits[0].names[0]!r} and so on"
        )
    first, *others = map(set, known)
    if both := sorted(first.intersection(*others)) if others else []:
        folders = " and ".join(f"{one.folder.name}/{both[0]}" for one in splits)
        raise DatasetDamaged(
            f"{path}: {len(both):,} names stand for an image of each split: {few_quoted(both)}. Put the "
            f"folder of the split before them, as in {folders}"
        )
    return known, [rows_of(listed, own, path).numpy() for own in known]


def _as_listed(listed: set[str], *splits: Listing) -> list[list[str]]:
    """Return the names with as many folders above as the table has; none if it has no image."""
    above = [one.folder.absolute().parts for one in splits]
    for folders in range(max(map(len, above)) + 1):
        # Of no folder, this is an empty path; of all of them, an absolute one.
        places = [PurePosixPath(*one[len(one) - folders :]) for one in above]
        known = [
            [f"{place}/{name}" if folders else name for name in one.names]
            for place, one in zip(places, splits, strict=True)
        ]
        if any(not listed.isdisjoint(own) for own in known):
            return known
    return []
