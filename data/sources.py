"""Reading the greyscale digits that everything else is derived from, one split at a time.

Nothing here downloads: a source is shipped with a library or lies under the data root.
"""

from pathlib import Path
from typing import Literal

import torch

from data.images import LabelledImages
from data.seeds import torch_generator
from data.splits import stratified_split

Split = Literal["train", "test"]

MNIST_FOLDER = "MNIST/raw"

MNIST_FILES = {
    "train-images-idx3-ubyte": 47_040_016,
    "train-labels-idx1-ubyte": 60_008,
    "t10k-images-idx3-ubyte": 7_840_016,
    "t10k-labels-idx1-ubyte": 10_008,
}
"""The four unpacked MNIST files and their sizes in bytes."""

_DIGITS_TEST_SHARE = 0.2


def read_digits(split: Split) -> LabelledImages:
    """Read scikit-learn's 1,797 handwritten digits, ``(N, 1, 8, 8)``, cut 80/20 by label.

    The set comes without a split of its own; this one is fixed by name and never changes.
    The stored levels 0..16 are spread over 0..255.
    """
    from sklearn.datasets import load_digits

    stored = load_digits()
    levels = torch.from_numpy(stored.images)
    labels = torch.from_numpy(stored.target).long()
    images = (levels * (255.0 / 16.0)).round().to(torch.uint8).unsqueeze(1)
    rows = stratified_split(labels, _DIGITS_TEST_SHARE, torch_generator("digits", "test split"))
    return LabelledImages(images, labels).subset(rows[0] if split == "train" else rows[1])


def read_mnist(root: Path, split: Split) -> LabelledImages:
    """Read one split of MNIST, ``(N, 1, 28, 28)``, from ``root/MNIST/raw`` as torchvision lays it out."""
    from torchvision.datasets import MNIST

    stored = MNIST(str(root), train=split == "train", download=False)
    return LabelledImages(stored.data.unsqueeze(1), stored.targets.long())
