"""Gaussian, defocus, glass, motion and zoom blur, after ImageNet-C's formulas for small images."""

import numpy as np
from scipy import ndimage

from contrasweep.data.corruptions.corruption import Corruption, Pixels
from contrasweep.data.corruptions.filters import Array, gaussian, motion_blur, zoom_matrix

GAUSSIAN = (0.4, 0.6, 0.7, 0.8, 1)
"""By level: the standard deviation in pixels."""

DEFOCUS = ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1))
"""By level: the radius of the disk, and the deviation that smooths its border, in pixels."""

GLASS = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))
"""By level: the deviation in pixels, and how often pixels are moved."""

MOTION = ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))
"""By level: radius and deviation in pixels."""

ZOOM = tuple(np.arange(1, end, 0.01) for end in (1.06, 1.11, 1.16, 1.21, 1.26))
"""By level: the enlargements whose mean is taken. As released, rounding lets some of them reach their end."""

_GLASS_MOVES = 2


def _gaussian(pixels: Pixels, level: int) -> Array:
    return gaussian(pixels / 255.0, GAUSSIAN[level]).clip(0, 1) * 255


def _defocus(pixels: Pixels, level: int) -> Array:
    kernel = disk(*DEFOCUS[level])[None, :, :, None]
    levels: Array = ndimage.correlate(pixels / 255.0, kernel, mode="mirror").clip(0, 1) * 255
    return levels


def disk(radius: float, sigma: float) -> Array:
    """Return the mean over a disk as a kernel ``(17, 17)``, smoothed within one pixel; radius up to 8."""
    offset = np.arange(-8, 9)
    inside = np.add.outer(offset**2, offset**2) <= radius**2
    line = np.exp(-0.5 * np.square(np.array([-1, 0, 1]) / sigma))
    smoothing = np.multiply.outer(line, line) / line.sum() ** 2
    kernel: Array = ndimage.correlate(inside / inside.sum(), smoothing, mode="mirror")
    return kernel


def _glass(pixels: Pixels, level: int, moves: Array) -> Array:
    """Blur, copy pixels from neighbours one after the other, and blur again.

    The released code means to swap two pixels. Its assignment copies the second one only, and so does this.
    `moves` in 0..1 are the steps of each pixel: below a half one step left or up.
    """
    sigma, times = GLASS[level]
    images = np.floor(gaussian(pixels / 255.0, sigma) * 255)
    steps = np.floor(2 * moves).astype(int) - 1
    image, last = np.arange(len(images)), images.shape[1] - 1
    for turn in steps.transpose(1, 2, 0, 3)[:times]:
        places = ((row, column) for row in range(last, 1, -1) for column in range(last, 1, -1))
        for (row, column), step in zip(places, turn, strict=True):
            images[:, row, column] = images[image, row + step[:, 1], column + step[:, 0]]
    return gaussian(images / 255.0, sigma).clip(0, 1) * 255


def _draw_glass(generator: np.random.Generator, size: int) -> tuple[Array, ...]:
    return (generator.random((_GLASS_MOVES, (size - 2) ** 2, 2)),)


def _motion(pixels: Pixels, level: int, turn: Array) -> Array:
    radius, sigma = MOTION[level]
    return motion_blur(pixels.astype(float), int(radius), sigma, -45 + 90 * turn[:, 0])


def _zoom(pixels: Pixels, level: int) -> Array:
    images = (pixels / 255.0).astype(np.float32)
    total = np.zeros_like(images)
    for factor in ZOOM[level]:
        matrix = zoom_matrix(images.shape[1], factor).astype(np.float32)
        total += np.einsum("ih,jw,nhwc->nijc", matrix, matrix, images, optimize=True)
    return ((images + total) / (len(ZOOM[level]) + 1)).clip(0, 1) * 255


BLURS = (
    Corruption("Gaussian Blur", _gaussian),
    Corruption("Defocus Blur", _defocus),
    Corruption("Glass Blur", _glass, _draw_glass),
    Corruption("Motion Blur", _motion, lambda generator, size: (generator.random(1),)),
    Corruption("Zoom Blur", _zoom),
)
