"""MNIST in the layout of torchvision, plain and on coloured backgrounds (ColorMNIST of CCL-K)."""

from dataclasses import replace
from pathlib import Path
from typing import cast

from torch import Tensor

from contrasweep.data.colour import COLOURS_OPTION, Colours, on_random_colours
from contrasweep.data.images import LabelledImages
from contrasweep.data.imbalance import IMBALANCE_OPTIONS, imbalanced, kept_counts
from contrasweep.data.root import check_files
from contrasweep.data.spec import COLOUR_NAME, DatasetFamily, DatasetSpec, Options, Split

MNIST_FOLDER = "MNIST/raw"

MNIST_FILES = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}
"""The four unpacked MNIST files and their sizes in bytes."""

TRAIN_COUNTS = (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
"""Training images of each digit."""

SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/ (unpack the four .gz files)"
LICENCE = "CC BY-SA 3.0 (LeCun, Cortes and Burges)"


def read_mnist(root: Path, split: Split) -> LabelledImages:
    """Read one split of MNIST, ``(N, 1, 28, 28)``, from ``root/MNIST/raw``, the layout of torchvision."""
    from torchvision import datasets

    stored = datasets.MNIST(str(root), train=split == "train", download=False)
    return LabelledImages(stored.data.unsqueeze(1), stored.targets.long())


def read_mnist_pixels(root: Path, split: Split) -> Tensor:
    """Read the images of one split, uint8 ``(N, 1, 28, 28)``, without its labels."""
    from torchvision.datasets import mnist

    prefix = "train" if split == "train" else "t10k"
    pixels: Tensor = mnist.read_image_file(str(root / MNIST_FOLDER / f"{prefix}-images-idx3-ubyte"))
    return pixels.unsqueeze(1)


def read_mnist_labels(root: Path, split: Split) -> Tensor:
    """Read the labels of one split, int64 ``(N,)``."""
    from torchvision.datasets import mnist

    prefix = "train" if split == "train" else "t10k"
    labels: Tensor = mnist.read_label_file(str(root / MNIST_FOLDER / f"{prefix}-labels-idx1-ubyte"))
    return labels


def check_mnist(name: str, root: Path) -> None:
    """Raise DatasetMissing for the dataset `name` unless the four files of MNIST are in place."""
    check_files(name, root, MNIST_FOLDER, MNIST_FILES, SOURCE)


def mnist_spec(name: str, summary: str, channels: int = 1) -> DatasetSpec:
    """Return the facts shared by all sets made from MNIST."""
    return DatasetSpec(
        name=name,
        summary=summary,
        classes=10,
        channels=channels,
        image_size=28,
        view_size=32,
        train_size=sum(TRAIN_COUNTS),
        test_size=10_000,
        licence=LICENCE,
        source=SOURCE,
        folder=MNIST_FOLDER,
    )


def _describe_mnist(root: Path, options: Options) -> DatasetSpec:
    train_size = sum(kept_counts(TRAIN_COUNTS, options))
    return replace(mnist_spec(MNIST.full_name(options), MNIST.summary), train_size=train_size)


def _read_mnist(root: Path, split: Split, options: Options) -> LabelledImages:
    images = read_mnist(root, split)
    return imbalanced(images, "mnist", TRAIN_COUNTS, options) if split == "train" else images


def _describe_colormnist(root: Path, options: Options) -> DatasetSpec:
    spec = mnist_spec(COLORMNIST.full_name(options), COLORMNIST.summary, channels=3)
    return replace(spec, condition_dim=3, condition_name=COLOUR_NAME)


def _read_colormnist(root: Path, split: Split, options: Options) -> LabelledImages:
    return on_random_colours(read_mnist(root, split), "colormnist", split, cast(Colours, options["colours"]))


MNIST = DatasetFamily(
    name="mnist",
    summary="70,000 handwritten digits of 28 x 28 pixels",
    describe=_describe_mnist,
    check=lambda root, options: check_mnist("mnist", root),
    read=_read_mnist,
    options=IMBALANCE_OPTIONS,
)

COLORMNIST = DatasetFamily(
    name="colormnist",
    summary="MNIST with black strokes on noisy background colours, as in CCL-K",
    describe=_describe_colormnist,
    check=lambda root, options: check_mnist("colormnist", root),
    read=_read_colormnist,
    options=COLOURS_OPTION,
)
