"""Handwritten digits of MNIST and of scikit-learn, plain and on coloured backgrounds (ColorMNIST of CCL-K).

MNIST has the layout of torchvision. scikit-learn's digits need no download; they have no published split, and
ours, 80/20 by label, is fixed by name and never changes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import distribution
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from contrasweep.data.colour import COLOURS_OPTION, Colours, on_random_colours
from contrasweep.data.encoded import check_labels
from contrasweep.data.facts import COLOUR_NAME, DatasetSpec
from contrasweep.data.images import LabelledImages
from contrasweep.data.imbalance import IMBALANCE_OPTIONS, imbalanced, is_cut, kept_counts, rows_left
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.root import DatasetDamaged, check_files
from contrasweep.data.seeds import torch_generator
from contrasweep.data.spec import DatasetFamily, Split, family_of
from contrasweep.data.splits import stratified_split

MNIST_FOLDER = "MNIST/raw"
MNIST_SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/ (unpack the four .gz files)"

MNIST_FILES = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}
"""The four unpacked MNIST files and their sizes in bytes."""

DIGITS_TABLE = "sklearn/datasets/data/digits.csv.gz"

ON_COLOURS: Mapping[str, Any] = {"channels": 3, "condition_dim": 3, "condition_name": COLOUR_NAME}
"""The facts of digits on coloured backgrounds that differ from those of the plain ones."""


@dataclass(frozen=True)
class Digits:
    """Greyscale digits, which other datasets are made from.

    Attributes:
        facts: the facts of the plain digits.
        train_counts: training images of each digit.
        check: raises DatasetMissing for the dataset of a given name unless the files are in place.
        read: reads one split, ``(N, 1, S, S)``.
    """

    facts: DatasetSpec
    train_counts: tuple[int, ...]
    check: Callable[[str, Path], None]
    read: Callable[[Path, Split], LabelledImages]

    def family(
        self,
        name: str,
        summary: str,
        make: Callable[[LabelledImages, Split, Options], LabelledImages],
        options: Mapping[str, DatasetOption],
        vary: Callable[[Options], Mapping[str, Any]] = lambda options: {},
    ) -> DatasetFamily:
        """Return the datasets that `make(digits, split, options)` makes; `vary` is as in `family_of`."""
        return family_of(
            replace(self.facts, name=name, summary=summary),
            check=lambda root, options: self.check(name, root),
            read=lambda root, split, options: make(self.read(root, split), split, options),
            options=options,
            vary=lambda root, options: vary(options),
        )

    def plain(self) -> DatasetFamily:
        """Return the digits as they are, whole or cut to unequal classes."""
        name, counts = self.facts.name, self.train_counts

        def cut(digits: LabelledImages, split: Split, options: Options) -> LabelledImages:
            return imbalanced(digits, name, counts, options) if split == "train" else digits

        def sizes(options: Options) -> Mapping[str, int]:
            return {"train_size": sum(kept_counts(counts, options)), "cut": is_cut(options)}

        def uncut(root: Path, options: Options) -> tuple[LabelledImages, Tensor]:
            digits = self.read(root, "train")
            return digits, rows_left(digits, name, counts, options)

        family = self.family(name, self.facts.summary, cut, IMBALANCE_OPTIONS, sizes)
        return replace(family, uncut=uncut)

    def coloured(self, name: str, summary: str) -> DatasetFamily:
        """Return the digits with black strokes on coloured backgrounds, under another name."""

        def paint(digits: LabelledImages, split: Split, options: Options) -> LabelledImages:
            return on_random_colours(digits, name, split, cast(Colours, options["colours"]))

        return self.family(name, summary, paint, COLOURS_OPTION, lambda options: ON_COLOURS)


def read_mnist(root: Path, split: Split) -> LabelledImages:
    """Read one split of MNIST, ``(N, 1, 28, 28)``, from ``root/MNIST/raw``, the layout of torchvision."""
    return LabelledImages(read_mnist_pixels(root, split), read_mnist_labels(root, split))


def read_mnist_pixels(root: Path, split: Split) -> Tensor:
    """Read the images of one split, uint8 ``(N, 1, 28, 28)``, without its labels.

    Raises:
        DatasetDamaged: the file holds something else.
    """
    from torchvision.datasets import mnist

    return _parsed(mnist.read_image_file, _mnist_file(root, split, "images-idx3")).unsqueeze(1)


def read_mnist_labels(root: Path, split: Split) -> Tensor:
    """Read the labels of one split, int64 ``(N,)``.

    Raises:
        DatasetDamaged: the file holds something else, or a label that is no digit.
    """
    from torchvision.datasets import mnist

    file = _mnist_file(root, split, "labels-idx1")
    labels = _parsed(mnist.read_label_file, file)
    check_labels(labels, len(_MNIST_COUNTS), str(file))
    return labels


def _parsed(parse: Callable[[str], Tensor], file: Path) -> Tensor:
    try:
        return parse(str(file))
    # What torchvision raises at a wrong header; an interrupted download may have the right size.
    except (AssertionError, LookupError, TypeError, ValueError, RuntimeError) as error:
        raise DatasetDamaged(f"{file} is not a file of MNIST. Get it again from {MNIST_SOURCE}") from error


def _mnist_file(root: Path, split: Split, kind: str) -> Path:
    return root / MNIST_FOLDER / f"{'train' if split == 'train' else 't10k'}-{kind}-ubyte"


def read_all_digits() -> LabelledImages:
    """Read scikit-learn's 1,797 handwritten digits, ``(N, 1, 8, 8)``, in its order.

    The stored levels 0..16 are spread over 0..255.
    """
    table = torch.from_numpy(_digits_table())
    levels, labels = table[:, :-1].reshape(-1, 1, 8, 8), table[:, -1].long()
    return LabelledImages((levels * (255.0 / 16.0)).round().to(torch.uint8), labels)


def _digits_table() -> NDArray[np.float64]:
    """Return scikit-learn's table of digits: a row of 64 levels and the label for each image.

    To import scikit-learn takes as long as to import torch, so its file is read where it is in its place.
    """
    file = Path(str(distribution("scikit-learn").locate_file(DIGITS_TABLE)))
    if file.is_file():
        return np.loadtxt(file, delimiter=",")
    from sklearn.datasets import load_digits

    stored = load_digits()
    return np.column_stack([stored.data, stored.target])


def read_digits(split: Split) -> LabelledImages:
    """Read one side of the digits, cut 80/20 by label."""
    digits = read_all_digits()
    train, test = stratified_split(digits.labels, 0.2, torch_generator("digits", "test split"))
    return digits.subset(train if split == "train" else test)


_MNIST_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
_DIGITS_COUNTS = (142, 146, 142, 146, 145, 146, 145, 143, 139, 144)

MNIST_DIGITS = Digits(
    DatasetSpec(
        name="mnist",
        summary="70,000 handwritten digits of 28 x 28 pixels",
        classes=10,
        channels=1,
        image_size=28,
        view_size=32,
        train_size=sum(_MNIST_COUNTS),
        test_size=10_000,
        licence="CC BY-SA 3.0 (LeCun, Cortes and Burges)",
        source=MNIST_SOURCE,
        folder=MNIST_FOLDER,
    ),
    _MNIST_COUNTS,
    check=lambda name, root: check_files(name, root, MNIST_FOLDER, MNIST_FILES, MNIST_SOURCE),
    read=read_mnist,
)

SMALL_DIGITS = Digits(
    DatasetSpec(
        name="digits",
        summary="1,797 handwritten digits of 8 x 8 pixels, cut 80/20 by a fixed split",
        classes=10,
        channels=1,
        image_size=8,
        view_size=8,
        train_size=sum(_DIGITS_COUNTS),
        test_size=359,
        licence="CC BY 4.0 (Alpaydin and Kaynak, UCI Machine Learning Repository)",
        source="scikit-learn, sklearn.datasets.load_digits",
        folder=None,
    ),
    _DIGITS_COUNTS,
    check=lambda name, root: None,
    read=lambda root, split: read_digits(split),
)

MNIST, DIGITS = MNIST_DIGITS.plain(), SMALL_DIGITS.plain()
COLORMNIST = MNIST_DIGITS.coloured(
    "colormnist", "MNIST with black strokes on noisy background colours, as in CCL-K"
)
COLOUR_DIGITS = SMALL_DIGITS.coloured(
    "colour-digits", "digits with black strokes on ColorMNIST's noisy background colours"
)
