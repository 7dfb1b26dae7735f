"""MNIST as torchvision lays it out, plain and on coloured backgrounds (ColorMNIST of CCL-K)."""

from pathlib import Path

from data.colour import COLOUR_NAME, on_palette_colours
from data.images import LabelledImages
from data.root import check_files
from data.spec import DatasetFamily, DatasetSpec, Options, Split

MNIST_FOLDER = "MNIST/raw"

MNIST_FILES = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}
"""The four unpacked MNIST files and their sizes in bytes."""

SOURCE = "https://ossci-datasets.s3.amazonaws.com/mnist/ (unpack the four .gz files)"


def read_mnist(root: Path, split: Split) -> LabelledImages:
    """Read one split of MNIST, ``(N, 1, 28, 28)``, from ``root/MNIST/raw`` as torchvision lays it out."""
    from torchvision import datasets

    stored = datasets.MNIST(str(root), train=split == "train", download=False)
    return LabelledImages(stored.data.unsqueeze(1), stored.targets.long())


def check_mnist(name: str, root: Path) -> None:
    """Raise DatasetMissing unless the four files are in place, for the dataset `name` made from them."""
    check_files(name, root, MNIST_FOLDER, MNIST_FILES, SOURCE)


def _describe(name: str, summary: str, channels: int, condition_dim: int | None) -> DatasetSpec:
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
        condition_name=COLOUR_NAME if condition_dim else None,
        licence="CC BY-SA 3.0 (LeCun, Cortes and Burges)",
        source=SOURCE,
        folder=MNIST_FOLDER,
    )


_PLAIN = _describe("mnist", "70,000 handwritten digits of 28 x 28 pixels", 1, None)
_COLOUR = _describe("colormnist", "MNIST with black strokes on noisy background colours, as in CCL-K", 3, 3)


def _read_colormnist(root: Path, split: Split, options: Options) -> LabelledImages:
    return on_palette_colours(read_mnist(root, split), "colormnist", split)


MNIST = DatasetFamily(
    name="mnist",
    summary=_PLAIN.summary,
    describe=lambda root, options: _PLAIN,
    check=lambda root, options: check_mnist("mnist", root),
    read=lambda root, split, options: read_mnist(root, split),
)

COLORMNIST = DatasetFamily(
    name="colormnist",
    summary=_COLOUR.summary,
    describe=lambda root, options: _COLOUR,
    check=lambda root, options: check_mnist("colormnist", root),
    read=_read_colormnist,
)
