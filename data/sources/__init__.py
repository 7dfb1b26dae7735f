"""The families of datasets, one module each; nothing here downloads, except that `hf` asks its library to."""

from contrasweep.data.sources.biased import BIASED_DIGITS, BIASED_MNIST
from contrasweep.data.sources.biased_files import BFFHQ, CORRUPTED_CIFAR10
from contrasweep.data.sources.celeba import CELEBA
from contrasweep.data.sources.cifar import CIFAR10, CIFAR100
from contrasweep.data.sources.cub import CUB
from contrasweep.data.sources.digits import COLORMNIST, COLOUR_DIGITS, DIGITS, MNIST
from contrasweep.data.sources.hf import HF
from contrasweep.data.sources.hub_parquet import HUB_PARQUET
from contrasweep.data.sources.image_folder import IMAGE_FOLDER
from contrasweep.data.sources.imagenet import IMAGENET1K, IMAGENET100
from contrasweep.data.sources.imagenet9 import IMAGENET9
from contrasweep.data.sources.noisy import NOISY_MNIST, NOISY_MNIST_1V, NOISY_MNIST_2V, TWO_VIEW_DIGITS
from contrasweep.data.sources.scene import SCENE
from contrasweep.data.sources.stl10 import STL10
from contrasweep.data.sources.tar_shards import TAR_SHARDS
from contrasweep.data.sources.wider import WIDER_ATTRIBUTE
from contrasweep.data.sources.xrmb import XRMB
from contrasweep.data.sources.zappos import UT_ZAPPOS50K
from contrasweep.data.spec import DatasetFamily
from contrasweep.data.transductive import TransductiveFamily

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
    TAR_SHARDS,
    HF,
)
"""Every family of labelled images, in the order in which users see them."""

TRANSDUCTIVE_FAMILIES: tuple[TransductiveFamily, ...] = (
    TWO_VIEW_DIGITS,
    SCENE,
    NOISY_MNIST_1V,
    NOISY_MNIST_2V,
    XRMB,
    CELEBA,
)
"""Every transductive family; users see them behind the others."""
