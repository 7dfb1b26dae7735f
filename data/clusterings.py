"""Sets of images with labels, and a clustering for each number k of attributes.

A set has either attributes, which give clusters for any k, or ready clusters for some k.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from contrasweep.data.attributes import read_attributes
from contrasweep.data.conditioning import InformationCurve, information_curve
from contrasweep.data.root import check_files, data_root
from contrasweep.data.text_table import TextColumn, column_of, read_text_table
from contrasweep.data.top_k import rank_by_entropy, top_k_clusterings
from contrasweep.names import few_quoted, unknown

READY_PREFIX = "label_gran_"
"""The prefix of columns of ready clusters, followed by k, as in the files of the Cl-InfoNCE authors."""

ZAPPOS_FOLDER = "attributes/UT-zappos50K"
ZAPPOS_FILES = {"meta_data_train.csv": 4_050_809}
ZAPPOS_SOURCE = "https://github.com/Crazy-Jack/Cl-InfoNCE (data_processing/UT-zappos50K/rank_H)"


@dataclass(frozen=True)
class Clusterings:
    """Labels of N images, and clusterings of them for some numbers of attributes.

    Attributes:
        labels: int64 ``(N,)``, 0..classes-1.
        ks: the numbers of attributes with clusters, ascending.
        of: yields ``(k, clusters)`` for given ascending k; clusters are int64 ``(N,)`` from 0 on.
        ranked: the attributes from the highest entropy to the lowest; empty for ready clusters.
    """

    labels: Tensor
    ks: tuple[int, ...]
    of: Callable[[Sequence[int]], Iterator[tuple[int, Tensor]]]
    ranked: tuple[str, ...] = ()

    @property
    def classes(self) -> int:
        """The number of classes."""
        return int(self.labels.max()) + 1

    def curve(self, low: int | None = None, high: int | None = None) -> InformationCurve:
        """Return the information of the clusters about the labels for each k from ``low`` to ``high``;
        default: all.

        Raises:
            ValueError: there are no clusters for an end or for any k between the ends.
        """
        low, high = self.ks[0] if low is None else low, self.ks[-1] if high is None else high
        allowed = f"{self.ks[0]}..{self.ks[-1]}"
        if low < self.ks[0] or high > self.ks[-1]:
            why = f"there are {len(self.ranked)} attributes" if self.ranked else "there are no other clusters"
            raise ValueError(f"k must lie in {allowed} ({why}), given {low}..{high}")
        chosen = [k for k in self.ks if low <= k <= high]
        if not chosen:
            there = ", ".join(map(str, self.ks))
            raise ValueError(f"no clusters for k in {low}..{high}; there are those for k = {there}")
        return information_curve(self.of(chosen), self.labels)


def load_clusterings(name: str, root: Path | None = None) -> Clusterings:
    """Load the labels and clusterings of the training images of a set by name; the images are not needed.

    Args:
        name: a name of `CLUSTERINGS`.
        root: the folder that holds the datasets, see `data_root`.

    Raises:
        ValueError: there is no such set (the message names the nearest), or its file is damaged.
        DatasetMissing: its file is not in place.
    """
    if name not in CLUSTERINGS:
        raise ValueError(unknown("set with clusters", name, CLUSTERINGS))
    return CLUSTERINGS[name](data_root(root))


def read_clusterings(
    path: Path,
    *,
    image_column: str = "path",
    label_column: str = "class",
    categorical: Sequence[str] = (),
    ignore: Sequence[str] = (),
) -> Clusterings:
    """Read labels and clusterings from a CSV file with one row for each image.

    Labels are names or numbers. Columns called `label_gran_K` hold ready clusters for K attributes, as whole
    numbers. A file without them holds attributes, see `read_attributes`; the columns of the image and of the
    label are not attributes.

    Raises:
        ValueError: see `read_attributes`; an image without a label; a damaged file of ready clusters, or one
            for which `categorical` or `ignore` is given.
    """
    table = read_text_table(path)
    hint = " Name that of the labels: --label-column, in Python label_column."
    label = column_of(table, label_column, path, hint)
    if any(name.startswith(READY_PREFIX) for name in table):
        if categorical or ignore:
            raise ValueError(
                f"{path} has ready clusters ({READY_PREFIX}K) and no attributes: there is nothing to take as "
                f"categories or to ignore, given {few_quoted([*categorical, *ignore])}"
            )
        images = _without_footer(table, path)
        _refuse_unlabelled(images, image_column, label_column, path)
        return _ready(images, label_column, path)
    _refuse_unlabelled(table, image_column, label_column, path)
    ignore = (*ignore, label_column)
    attributes = read_attributes(
        path, image_column=image_column, categorical=categorical, ignore=ignore, table=table
    )
    values, names = attributes.values, attributes.names
    return Clusterings(
        labels=torch.from_numpy(label.codes),
        ks=tuple(range(1, len(names) + 1)),
        of=lambda ks: top_k_clusterings(values, ks),
        ranked=tuple(names[column] for column in rank_by_entropy(values).tolist()),
    )


def _refuse_unlabelled(
    table: Mapping[str, TextColumn], image_column: str, label_column: str, path: Path
) -> None:
    label = table[label_column]
    if "" in label.values:
        rows = (label.codes == label.values.index("")).nonzero()[0]
        # A file of ready clusters need not name its images.
        named = table[image_column].texts() if image_column in table else []
        which = f": {few_quoted(named[row] for row in rows)}" if named else ""
        raise ValueError(f"{path}: {len(rows):,} images have no {label_column!r}{which}")


def _ready(table: Mapping[str, TextColumn], label_column: str, path: Path) -> Clusterings:
    clusters: dict[int, Tensor] = {}
    for name, column in table.items():
        if name.startswith(READY_PREFIX):
            k = name.removeprefix(READY_PREFIX)
            if not k.isdecimal() or int(k) < 1:
                raise ValueError(f"{path}: {name!r} should end in a number of attributes")
            clusters[int(k)] = _numbered(column, name, path)
    return Clusterings(
        _labels(table[label_column]), tuple(sorted(clusters)), lambda ks: ((k, clusters[k]) for k in ks)
    )


def _labels(column: TextColumn) -> Tensor:
    """Number labels: whole numbers in their order, names in the order of their first row."""
    are_numbers = all(text.isdecimal() for text in column.values)
    return _in_order(column) if are_numbers else torch.from_numpy(column.codes)


def _numbered(column: TextColumn, name: str, path: Path) -> Tensor:
    wrong = [text for text in column.values if not text.isdecimal()]
    if wrong:
        raise ValueError(f"{path}: column {name!r} should hold whole numbers, found {few_quoted(wrong)}")
    return _in_order(column)


def _in_order(column: TextColumn) -> Tensor:
    """Number whole numbers 0, 1, ... in their order: those in the files have gaps."""
    numbers = [int(text) for text in column.values]
    position = {number: place for place, number in enumerate(sorted(set(numbers)))}
    return torch.tensor([position[number] for number in numbers])[torch.from_numpy(column.codes)]


def _without_footer(table: dict[str, TextColumn], path: Path) -> dict[str, TextColumn]:
    """Drop the authors' last line, which is not an image: it counts the distinct values of each column.

    It has the number -1 in the unnamed first column. Read as an image, it would add a class, and a cluster
    for every k.
    """
    if "" not in table or table[""].texts()[-1] != "-1":
        return table
    kept: dict[str, TextColumn] = {}
    for name, column in table.items():
        codes, counted = column.codes[:-1], column.values[column.codes[-1]]
        values = tuple(column.values[: codes.max(initial=-1) + 1])
        if name.startswith(READY_PREFIX) and counted != str(len(values)):
            raise ValueError(
                f"{path} is damaged: {name!r} has {len(values):,} clusters, its last line says {counted}"
            )
        kept[name] = TextColumn(codes, values)
    return kept


def _ut_zappos50k(root: Path) -> Clusterings:
    check_files("ut-zappos50k", root, ZAPPOS_FOLDER, ZAPPOS_FILES, ZAPPOS_SOURCE)
    return read_clusterings(root / ZAPPOS_FOLDER / "meta_data_train.csv")


CLUSTERINGS: Mapping[str, Callable[[Path], Clusterings]] = {"ut-zappos50k": _ut_zappos50k}
"""The sets with a name; each is loaded from the folder of the datasets."""
