"""The families of datasets, one module each; nothing here downloads."""

from data.sources.digits import COLOUR_DIGITS, DIGITS
from data.sources.mnist import COLORMNIST, MNIST
from data.spec import DatasetFamily

FAMILIES: tuple[DatasetFamily, ...] = (DIGITS, COLOUR_DIGITS, MNIST, COLORMNIST)
"""Every family, in the order in which users see them."""
