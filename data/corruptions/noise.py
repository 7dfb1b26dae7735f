"""Gaussian, shot, impulse and speckle noise, after ImageNet-C's formulas for small images."""

import numpy as np
from numpy.typing import NDArray
from scipy import special

from contrasweep.data.corruptions.corruption import Corruption, Pixels
from contrasweep.data.corruptions.filters import Array

GAUSSIAN = (0.04, 0.06, 0.08, 0.09, 0.10)
"""By level: the standard deviation."""

SHOT = (500, 250, 100, 75, 50)
"""By level: the photons of a white pixel."""

IMPULSE = (0.01, 0.02, 0.03, 0.05, 0.07)
"""By level: the share of the values that become 0 or 255."""

SPECKLE = (0.06, 0.1, 0.12, 0.16, 0.2)
"""By level: the standard deviation, as a share of the value."""


def _gaussian(pixels: Pixels, level: int, noise: Array) -> Array:
    return (pixels / 255.0 + GAUSSIAN[level] * noise).clip(0, 1) * 255


def _shot(pixels: Pixels, level: int, chance: Array) -> Array:
    """Count photons, by Poisson's law: the least count whose probability to be reached exceeds `chance`."""
    photons = SHOT[level]
    counted = np.empty(pixels.shape)
    for value in np.unique(pixels):
        here = pixels == value
        counted[here] = np.searchsorted(_poisson(value / 255.0 * photons), chance[here], side="right")
    return (counted / photons).clip(0, 1) * 255


def _poisson(mean: float) -> NDArray[np.float64]:
    """Return the probability of at most 0, 1, ... counts, until it is all but 1."""
    most = int(mean + 12 * np.sqrt(mean) + 20)
    at_most: NDArray[np.float64] = special.gammaincc(np.arange(1, most + 1), mean)
    return at_most


def _impulse(pixels: Pixels, level: int, chance: Array, salt: Array) -> Array:
    images = np.where(chance <= IMPULSE[level], np.where(salt <= 0.5, 1.0, 0.0), pixels / 255.0)
    return images.clip(0, 1) * 255


def _speckle(pixels: Pixels, level: int, noise: Array) -> Array:
    images = pixels / 255.0
    return (images + images * SPECKLE[level] * noise).clip(0, 1) * 255


def _normal(generator: np.random.Generator, size: int) -> tuple[Array, ...]:
    return (generator.standard_normal((size, size, 3)),)


def _uniform(generator: np.random.Generator, size: int) -> tuple[Array, ...]:
    return (generator.random((size, size, 3)),)


NOISES = (
    Corruption("Gaussian Noise", _gaussian, _normal),
    Corruption("Shot Noise", _shot, _uniform),
    Corruption(
        "Impulse Noise", _impulse, lambda generator, size: tuple(generator.random((2, size, size, 3)))
    ),
    Corruption("Speckle Noise", _speckle, _normal),
)
