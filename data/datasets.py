"""The datasets by name: what each one is, and how to load its training and its test images.

Training images and test images come from different functions on purpose: whoever trains or searches calls
`load_training`, which opens no test file; only the final evaluation calls `load_test`.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from data.colour import colour_backgrounds, draw_palette_colours
from data.images import LabelledImages
from data.root import check_files, data_root
from data.seeds import numpy_generator, torch_generator
from data.sources import MNIST_FILES, MNIST_FOLDER, Split, read_digits, read_mnist
from data.splits import stratified_split

_COLOUR = "background RGB colour, 0..255"


@dataclass(frozen=True)
class DatasetSpec:
    """What is known of a dataset without loading it.

    Attributes:
        name: the name users type.
        summary: one sentence.
        classes: number of labels, which are 0..classes-1.
        channels: 1 greyscale, 3 RGB.
        image_size: stored height and width in pixels.
        view_size: height and width in pixels that the network sees.
        train_size: training images, before a validation split is cut off.
        test_size: test images.
        condition_dim: width of the conditioning variable, None where there is none.
        condition_name: what the conditioning variable is, with its unit.
        licence: terms of use of the images.
        source: where they come from.
        folder: what the data root must hold, None for an embedded dataset.
        embedded: shipped with an installed library, so that no file is needed.
    """

    name: str
    summary: str
    classes: int
    channels: int
    image_size: int
    view_size: int
    train_size: int
    test_size: int
    condition_dim: int | None
    condition_name: str | None
    licence: str
    source: str
    folder: str | None
    embedded: bool


@dataclass(frozen=True)
class TrainingData:
    """The training images, and the validation images that were cut from them (None if none were)."""

    train: LabelledImages
    validation: LabelledImages | None


def _digits(name: str, summary: str, channels: int, condition_dim: int | None) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=summary,
        classes=10,
        channels=channels,
        image_size=8,
        view_size=8,
        train_size=1438,
        test_size=359,
        condition_dim=condition_dim,
        condition_name=_COLOUR if condition_dim else None,
        licence="CC BY 4.0 (Alpaydin and Kaynak, UCI Machine Learning Repository)",
        source="scikit-learn, sklearn.datasets.load_digits",
        folder=None,
        embedded=True,
    )


def _mnist(name: str, summary: str, channels: int, condition_dim: int | None) -> DatasetSpec:
    return DatasetSpec(
        name=name,
        summary=summary,
        classes=10,
        channels=channels,
        image_size=28,
        view_size=32,
        train_size=60_000,
        test_size=10_000,
        condition_dim=condition_dim,
        condition_name=_COLOUR if condition_dim else None,
        licence="CC BY-SA 3.0 (LeCun, Cortes and Burges)",
        source="https://ossci-datasets.s3.amazonaws.com/mnist/ (unpack the four .gz files)",
        folder=MNIST_FOLDER,
        embedded=False,
    )


DATASETS: Mapping[str, DatasetSpec] = MappingProxyType(
    {
        spec.name: spec
        for spec in (
            _digits(
                "digits", "1,797 handwritten digits of 8 x 8 pixels, cut 80/20 by a fixed split", 1, None
            ),
            _digits(
                "colour-digits", "digits with black strokes on ColorMNIST's noisy background colours", 3, 3
            ),
            _mnist("mnist", "70,000 handwritten digits of 28 x 28 pixels", 1, None),
            _mnist("colormnist", "MNIST with black strokes on noisy background colours, as in CCL-K", 3, 3),
        )
    }
)
"""Every dataset by name."""


def dataset_spec(name: str) -> DatasetSpec:
    """Return the dataset called ``name``.

    Raises:
        ValueError: there is no such dataset; the message names the nearest and all others.
    """
    if name in DATASETS:
        return DATASETS[name]
    near = difflib.get_close_matches(name, DATASETS, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise ValueError(f"unknown dataset {name!r}{hint} (datasets: {', '.join(DATASETS)})")


def check_available(name: str, root: Path | None = None) -> None:
    """Check that the files of a dataset are in place, without reading them.

    Raises:
        ValueError: there is no such dataset.
        DatasetMissing: its folder or a file is absent or has the wrong size.
    """
    spec = dataset_spec(name)
    if spec.folder is not None:
        check_files(name, data_root(root), spec.folder, MNIST_FILES, spec.source)


def load_training(
    name: str, root: Path | None = None, validation_fraction: float = 0.0, split_seed: int = 0
) -> TrainingData:
    """Load the training images and cut a validation split from them; no test image is read.

    The split is stratified by label and depends on the dataset's name and ``split_seed`` alone. An image
    keeps its background colour whichever side it falls on.

    Args:
        name: a name of `DATASETS`.
        root: the folder that holds the datasets, see `data_root`.
        validation_fraction: the share cut off, at least 0 and below 1; 0 leaves ``validation`` None.
        split_seed: which of the possible splits.

    Raises:
        ValueError: unknown dataset or a fraction out of range.
        DatasetMissing: the files are not in place.
    """
    if not 0.0 <= validation_fraction < 1.0:
        raise ValueError(f"validation_fraction must be at least 0 and below 1, got {validation_fraction}")
    images = _load(name, root, "train")
    if validation_fraction == 0.0:
        return TrainingData(images, None)
    generator = torch_generator("validation split", name, split_seed)
    kept, cut = stratified_split(images.labels, validation_fraction, generator)
    return TrainingData(images.subset(kept), images.subset(cut))


def load_test(name: str, root: Path | None = None) -> LabelledImages:
    """Load the test images with their labels: for the final evaluation only.

    Raises:
        ValueError: unknown dataset.
        DatasetMissing: the files are not in place.
    """
    return _load(name, root, "test")


def _load(name: str, root: Path | None, split: Split) -> LabelledImages:
    check_available(name, root)
    spec = DATASETS[name]
    strokes = read_digits(split) if spec.embedded else read_mnist(data_root(root), split)
    if spec.condition_dim is None:
        return strokes
    colours = draw_palette_colours(len(strokes), numpy_generator("background colour", name, split))
    return colour_backgrounds(strokes, colours)
