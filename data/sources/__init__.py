"""The families of datasets, one module each; nothing here downloads."""

from data.sources.bffhq import BFFHQ
from data.sources.biased import BIASED_DIGITS, BIASED_MNIST
from data.sources.cifar import CIFAR10, CIFAR100
from data.sources.corrupted_cifar10 import CORRUPTED_CIFAR10
from data.sources.cub import CUB
from data.sources.digits import COLOUR_DIGITS, DIGITS
from data.sources.hub_parquet import HUB_PARQUET
from data.sources.image_folder import IMAGE_FOLDER
from data.sources.imagenet import IMAGENET1K, IMAGENET100
from data.sources.imagenet9 import IMAGENET9
from data.sources.mnist import COLORMNIST, MNIST
from data.sources.noisy import NOISY_MNIST
from data.sources.stl10 import STL10
from data.sources.wider import WIDER_ATTRIBUTE
from data.sources.zappos import UT_ZAPPOS50K
from data.spec import DatasetFamily

FAMILIES: tuple[DatasetFamily, ...] = (
    DIGITS,
    COLOUR_DIGITS,
    MNIST,
    COLORMNIST,
    BIASED_DIGITS,
    BIASED_MNIST,
    NOISY_MNIST,
    CIFAR10,
    CIFAR100,
    STL10,
    CORRUPTED_CIFAR10,
    BFFHQ,
    IMAGENET9,
    UT_ZAPPOS50K,
    CUB,
    WIDER_ATTRIBUTE,
    IMAGENET100,
    IMAGENET1K,
    HUB_PARQUET,
    IMAGE_FOLDER,
)
"""Every family, in the order in which users see them."""
