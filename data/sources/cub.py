"""CUB-200-2011: photographs of 200 species of birds with 312 binary attributes.

Layout of the published archive: `images.txt` (`ID PATH`), `image_class_labels.txt` (`ID CLASS`, classes from
1), `train_test_split.txt` (`ID IS_TRAINING`), `classes.txt` (`CLASS NAME`) and
`attributes/image_attribute_labels.txt` (`ID ATTRIBUTE IS_PRESENT CERTAINTY TIME`, a few lines with a column
more), one line for each image and attribute. File names, columns and counts were checked against programs
that read the archive and against the lists of the Cl-InfoNCE authors; the archive was not available.

An attribute counts as present if `IS_PRESENT` is 1, for any certainty of the annotator. The papers do not say
whether they did the same.

Sources: Wah et al., "The Caltech-UCSD Birds-200-2011 Dataset" (2011); Tsai et al. (ICLR 2022), Appendix E.3.
"""

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.cache import while_unchanged
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import Archive, DatasetDamaged, check_files
from contrasweep.data.sources.listed_images import ListedImages, listed_family
from contrasweep.data.spec import Split
from contrasweep.data.top_k import rank_by_entropy

ARCHIVE = Archive(
    "cub",
    "https://data.caltech.edu/records/65de6-vp158 (CUB_200_2011.tgz: unpack it)",
    folder="CUB_200_2011",
    holds="images/ and the text files beside it",
)
FILES = (
    "images.txt",
    "image_class_labels.txt",
    "train_test_split.txt",
    "classes.txt",
    "attributes/image_attribute_labels.txt",
)

IMAGES, CLASSES, ATTRIBUTES = 11_788, 200, 312
TRAIN_IMAGES = 5_994


def _check(root: Path, options: Options) -> None:
    check_files(ARCHIVE.dataset, root, ARCHIVE.folder, dict.fromkeys(FILES), ARCHIVE.source)
    place = root / ARCHIVE.folder
    ARCHIVE.check_listed([place / "images" / path for path in _column(place / "images.txt", IMAGES)])


def read_cub(root: Path, split: Split, attributes: int = ATTRIBUTES) -> ListedImages:
    """Return the images of one split in the order of their numbers, with their species and attributes.

    Args:
        root: the data root.
        split: train or test, by the published split.
        attributes: how many of the 312 attributes to keep: those of the highest entropy over the training
            images, in that order. All 312 stay in the order of the file.

    Raises:
        DatasetDamaged: a file has wrong contents, or lacks a line for an image.
    """
    place = root / ARCHIVE.folder
    paths = _column(place / "images.txt", IMAGES)
    labels = _whole_numbers(place / "image_class_labels.txt", 1, CLASSES) - 1
    training = _whole_numbers(place / "train_test_split.txt", 0, 1)
    values = _attributes(place / FILES[-1])
    if attributes < ATTRIBUTES:
        values = values[:, rank_by_entropy(values[training == 1])[:attributes]]
    rows = (training == (split == "train")).nonzero().flatten().tolist()
    return ListedImages([place / "images" / path for path in paths], labels, values.float()).subset(rows)


def _whole_numbers(path: Path, low: int, high: int) -> Tensor:
    texts = _column(path, IMAGES)
    allowed = {str(number): number for number in range(low, high + 1)}
    wrong = next((row for row, text in enumerate(texts) if text not in allowed), None)
    if wrong is not None:
        raise DatasetDamaged(f"{path}: image {wrong + 1} has {texts[wrong]!r}, allowed are {low}..{high}")
    return torch.tensor([allowed[text] for text in texts])


def _column(path: Path, rows: int) -> list[str]:
    """Read lines of a number, counted from 1, and a text."""
    pairs = [line.split(maxsplit=1) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    if len(pairs) != rows:
        raise DatasetDamaged(f"{path} has {len(pairs):,} lines, {rows:,} are needed")
    for number, pair in enumerate(pairs, start=1):
        if len(pair) != 2 or pair[0] != str(number):
            raise DatasetDamaged(f"{path}: line {number} should be {number} and a value, found {pair}")
    return [text.strip() for _, text in pairs]


@while_unchanged(2)
def _attributes(path: Path) -> Tensor:
    """Return the attributes of each image, uint8 ``(N, 312)``."""
    try:
        # With given columns, NumPy accepts lines that have one more.
        table = np.loadtxt(path, dtype=np.int32, usecols=(0, 1, 2), ndmin=2)
    except ValueError as error:
        raise DatasetDamaged(f"{path} is not a table of numbers: {error}") from None
    if len(table) != IMAGES * ATTRIBUTES:
        raise DatasetDamaged(f"{path} has {len(table):,} lines, {IMAGES * ATTRIBUTES:,} are needed")
    image, attribute, present = table.T
    grid = np.stack(np.divmod(np.arange(len(table)), ATTRIBUTES), axis=1) + 1
    if not (table[:, :2] == grid).all() or not np.isin(present, (0, 1)).all():
        wrong = ((table[:, :2] != grid).any(axis=1) | ~np.isin(present, (0, 1))).argmax()
        raise DatasetDamaged(
            f"{path}: line {wrong + 1} should be image {grid[wrong, 0]}, "
            f"attribute {grid[wrong, 1]} and 0 or 1, found {image[wrong]} {attribute[wrong]} {present[wrong]}"
        )
    return torch.from_numpy(present.reshape(IMAGES, ATTRIBUTES).astype(np.uint8))


CUB = listed_family(
    ARCHIVE,
    "11,788 photographs of 200 species of birds, 312 binary attributes each",
    size=224,
    facts=lambda root, options: {
        "classes": CLASSES,
        "train_size": TRAIN_IMAGES,
        "test_size": IMAGES - TRAIN_IMAGES,
        "condition_dim": int(options["attributes"]),
        "condition_name": "binary attributes",
        "licence": "non-commercial research and education; the images belong to their photographers",
    },
    check=_check,
    read=lambda root, split, options: read_cub(root, split, int(options["attributes"])),
    options={
        "attributes": DatasetOption(
            "attributes kept, those of the highest entropy in training (Cl-InfoNCE ranks 200)",
            int,
            ATTRIBUTES,
            low=1,
            high=ATTRIBUTES,
            of_condition=True,
        ),
    },
)
