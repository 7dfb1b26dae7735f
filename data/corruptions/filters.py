"""The image operations that corruptions are made of, each on a batch.

Shapes: N images, S the height and width, C = 3 channels; arrays are ``(N, S, S)`` or ``(N, S, S, C)``.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Array = NDArray[np.floating]


def gaussian(images: Array, sigma: float, *, truncate: float = 4.0, mode: str = "nearest") -> Array:
    """Blur each image, and each channel by itself; ``sigma`` in pixels, cut off at ``truncate * sigma``."""
    along = (0.0, sigma, sigma, 0.0)[: images.ndim]
    blurred: Array = ndimage.gaussian_filter(images, along, mode=mode, truncate=truncate)
    return blurred


def zoom_matrix(size: int, factor: float) -> Array:
    """Return the matrix ``(S, S)`` that enlarges the centre of a line of S pixels to S pixels.

    The centre has ``ceil(S / factor)`` pixels. Their enlargement, linear with the ends on the ends, has
    ``round(ceil(S / factor) * factor)``, of which the middle S are kept.
    """
    centre = int(np.ceil(size / factor))
    top = (size - centre) // 2
    enlarged = round(centre * factor)
    kept = np.arange(size) + (enlarged - size) // 2
    place = kept * ((centre - 1) / (enlarged - 1))
    low = np.minimum(place.astype(int), centre - 2)
    matrix = np.zeros((size, size))
    rows = np.arange(size)
    matrix[rows, top + low] = 1.0 - (place - low)
    matrix[rows, top + low + 1] = place - low
    return matrix


def zoomed(images: Array, factor: float) -> Array:
    """Return the enlarged centres of images, see `zoom_matrix`."""
    matrix = zoom_matrix(images.shape[1], factor).astype(images.dtype)
    tall = np.einsum("ih,nh...->ni...", matrix, images, optimize=True)
    wide: Array = np.einsum("jw,niw...->nij...", matrix, tall, optimize=True)
    return wide


def motion_blur(images: Array, radius: int, sigma: float, degrees: Array) -> Array:
    """Blur each image along a half line, as ImageMagick's `MotionBlurImage` does.

    Pixel i of the line, from 0 to ``2 * radius``, weighs ``exp(-i^2 / (2 sigma^2))``; its place is rounded
    to whole pixels, and outside of an image its border goes on.

    Args:
        images: levels 0..255.
        radius: half the length of the line in pixels.
        sigma: the standard deviation of the weights in pixels.
        degrees: the direction for each image, ``(N,)``, clockwise from the right.

    Returns:
        Whole levels: rounded to 16 bits, of which the upper 8 are kept, as in the PNG that ImageMagick gives.
    """
    size = images.shape[1]
    steps = np.arange(2 * radius + 1)
    weights = np.exp(-0.5 * np.square(steps / sigma))
    weights /= weights.sum()
    turn = np.deg2rad(degrees)[:, None]
    across = np.ceil(steps * np.cos(turn) - 0.5).astype(int)
    down = np.ceil(steps * np.sin(turn) - 0.5).astype(int)
    image, pixel = np.arange(len(images))[:, None, None], np.arange(size)
    blurred = np.zeros(images.shape)
    for step, weight in enumerate(weights):
        rows = (pixel + down[:, step, None]).clip(0, size - 1)
        columns = (pixel + across[:, step, None]).clip(0, size - 1)
        blurred += weight * images[image, rows[:, :, None], columns[:, None, :]]
    return np.floor(np.floor(blurred * 257 + 0.5) / 257)


def sampled(images: Array, down: Array, right: Array, border: Literal["reflect", "mirror"]) -> Array:
    """Return each image's values between its pixels, linear in both directions.

    Args:
        images: ``(N, S, S, C)``.
        down: places in pixels from the centre of the first row, ``(N, S, S)``.
        right: the same from the first column.
        border: beyond an edge the image is repeated backwards, with the edge pixel (`reflect`: c b a | a b c)
            or without it (`mirror`: c b | a b c).
    """
    size = images.shape[1]
    image = np.arange(len(images))[:, None, None]
    top, left = np.floor(down).astype(int), np.floor(right).astype(int)
    below = (down - top).astype(images.dtype)[..., None]
    beyond = (right - left).astype(images.dtype)[..., None]
    rows = [_inside(top + step, size, border) for step in (0, 1)]
    columns = [_inside(left + step, size, border) for step in (0, 1)]
    upper, lower = (
        images[image, row, columns[0]] * (1 - beyond) + images[image, row, columns[1]] * beyond
        for row in rows
    )
    blended: Array = upper * (1 - below) + lower * below
    return blended


def _inside(index: NDArray[np.int_], size: int, border: str) -> NDArray[np.int_]:
    """Return the pixel within 0..size-1 that stands for each index."""
    if border == "reflect":
        index = index % (2 * size)
        return np.minimum(index, 2 * size - 1 - index)
    index = index % (2 * size - 2)
    return np.minimum(index, 2 * size - 2 - index)


def luma(images: Array) -> Array:
    """Return ``0.299 R + 0.587 G + 0.114 B`` as ``(N, S, S, 1)``."""
    weights = np.array((0.299, 0.587, 0.114), dtype=images.dtype)
    return (images @ weights)[..., None]


def to_hsv(rgb: Array) -> Array:
    """Return hue (in turns), saturation and value, all in 0..1, of colours in 0..1."""
    red, green, blue = np.moveaxis(rgb, -1, 0)
    value = rgb.max(axis=-1)
    chroma = value - rgb.min(axis=-1)
    some = np.where(chroma > 0, chroma, 1.0)
    hue = np.where(value == red, (green - blue) / some, 0.0)
    hue = np.where(value == green, 2.0 + (blue - red) / some, hue)
    hue = np.where(value == blue, 4.0 + (red - green) / some, hue)
    hue = np.where(chroma > 0, (hue / 6.0) % 1.0, 0.0)
    saturation = np.where(chroma > 0, chroma / np.where(value > 0, value, 1.0), 0.0)
    return np.stack([hue, saturation, value], axis=-1)


def to_rgb(hsv: Array) -> Array:
    """Return the colours in 0..1 of `to_hsv`'s numbers."""
    hue, saturation, value = np.moveaxis(hsv, -1, 0)
    sector = np.floor(hue * 6.0)
    within = hue * 6.0 - sector
    low = value * (1.0 - saturation)
    falling = value * (1.0 - within * saturation)
    rising = value * (1.0 - (1.0 - within) * saturation)
    cases = [
        (value, rising, low),
        (falling, value, low),
        (low, value, rising),
        (low, falling, value),
        (rising, low, value),
        (value, low, falling),
    ]
    chosen = (sector.astype(int) % 6)[..., None]
    return np.select([chosen == number for number in range(6)], [np.stack(case, axis=-1) for case in cases])
