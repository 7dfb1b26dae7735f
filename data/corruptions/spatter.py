"""Spatter: drops of water at the three lower levels, mud at the two upper ones, after ImageNet-C's formulas.

The water takes OpenCV's edges, distances and equalised levels of the drops; they are written out here for
batches of small images, so that OpenCV is not needed.
"""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from contrasweep.data.corruptions.corruption import Corruption, Pixels
from contrasweep.data.corruptions.filters import Array, gaussian

SPATTER = (
    (0.62, 0.1, 0.7, 0.7, 0.5, "water"),
    (0.65, 0.1, 0.8, 0.7, 0.5, "water"),
    (0.65, 0.3, 1, 0.69, 0.5, "water"),
    (0.65, 0.1, 0.7, 0.69, 0.6, "mud"),
    (0.65, 0.1, 0.5, 0.68, 0.6, "mud"),
)
"""By level: mean, deviation and smoothing of the liquid, where a drop begins, the strength of water or the
smoothing of mud, and the kind."""

WATER_COLOUR = (175 / 255.0, 238 / 255.0, 238 / 255.0)
"""Pale turquoise, red, green and blue in 0..1."""

MUD_COLOUR = (63 / 255.0, 42 / 255.0, 20 / 255.0)

EDGES = (50, 150)
"""Canny's thresholds: of the gradient of an edge's pixels, and of at least one of them."""

FARTHEST = 20
"""Distances from an edge count up to this, in pixels."""

_STRAIGHT, _DIAGONAL, _KNIGHT = 1.0, 1.4, 2.1969
"""The lengths of a step to a neighbour and of a knight's move, with which OpenCV measures distances."""

_RELIEF = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]], dtype=float)
_SOBEL = np.array([[-1, 0, 1], [-2, 0, 2], [-1, 0, 1]], dtype=float)


def _spatter(pixels: Pixels, level: int, noise: Array) -> Array:
    mean, deviation, smooth, beginning, amount, kind = SPATTER[level]
    liquid = gaussian(mean + deviation * noise, smooth)
    drops = np.where(liquid < beginning, 0.0, liquid)
    images = pixels.astype(np.float32) / np.float32(255)
    if kind == "water":
        mask = wetness((drops * 255).astype(np.int64).astype(np.uint8)) * np.float32(amount)
        colour = np.array(WATER_COLOUR, dtype=np.float32)
        return (images + mask[..., None] * colour).clip(0, 1) * 255
    mud = gaussian((drops > beginning).astype(np.float32), amount)[..., None]
    mud = np.where(mud < 0.8, np.float32(0), mud)
    return (images * (1 - mud) + np.array(MUD_COLOUR) * mud).clip(0, 1) * 255


def wetness(drops: Pixels) -> NDArray[np.float32]:
    """Return how much light each pixel of the drops, uint8 ``(N, S, S)``, reflects, in 0..1."""
    distance = np.minimum(distance_to(canny(drops)), FARTHEST)
    levels = equalised(_box(distance).astype(np.float32).astype(np.uint8))
    relief = ndimage.correlate(levels.astype(float), _RELIEF[None], mode="mirror").clip(0, 255)
    light = (drops * np.rint(_box(relief))).astype(np.float32)
    most = light.max(axis=(1, 2), keepdims=True)
    most[most == 0] = 1
    light /= most
    return light


def _box(images: Array) -> Array:
    """Return the mean of each pixel and its eight neighbours."""
    total = ndimage.correlate(images, np.ones((1, 3, 3)), mode="mirror")
    mean: Array = total * (1 / 9)
    return mean


def canny(images: Pixels) -> NDArray[np.bool_]:
    """Return the edges of uint8 images ``(N, S, S)`` with the thresholds `EDGES`.

    A pixel may lie on an edge if the sum of its two absolute derivatives exceeds the lower threshold and is a
    maximum across the edge. It does if such pixels lead from it to one above the upper threshold.
    """
    levels = images.astype(float)
    right = ndimage.correlate(levels, _SOBEL[None], mode="nearest")
    down = ndimage.correlate(levels, _SOBEL.T[None], mode="nearest")
    size = np.abs(right) + np.abs(down)
    edge = (size > EDGES[0]) & _is_ridge(size, right, down)
    eight = np.zeros((3, 3, 3), dtype=bool)
    eight[1] = True
    part, _ = ndimage.label(edge, structure=eight)
    strong = np.unique(part[edge & (size > EDGES[1])])
    return np.isin(part, strong[strong > 0])


def _is_ridge(size: Array, right: Array, down: Array) -> NDArray[np.bool_]:
    """Return where the gradient's size exceeds that of the neighbours on both sides along the gradient.

    Of two equal neighbours in a row or a column, the first counts.
    """
    padded = np.pad(size, ((0, 0), (1, 1), (1, 1)))
    S = size.shape[1]

    def neighbour(y: int, x: int) -> Array:
        part: Array = padded[:, 1 + y : 1 + y + S, 1 + x : 1 + x + S]
        return part

    # OpenCV's tan 22.5 degrees, in its fixed point.
    tangent = round(0.4142135623730950488016887242097 * (1 << 15)) / (1 << 15)
    wide, tall = np.abs(right), np.abs(down)
    level = (size > neighbour(0, -1)) & (size >= neighbour(0, 1))
    upright = (size > neighbour(-1, 0)) & (size >= neighbour(1, 0))
    falling = (size > neighbour(-1, -1)) & (size > neighbour(1, 1))
    rising = (size > neighbour(-1, 1)) & (size > neighbour(1, -1))
    oblique = np.where((right < 0) == (down < 0), falling, rising)
    is_upright = tall > wide * (tangent + 2)
    ridge: NDArray[np.bool_] = np.where(tall < wide * tangent, level, np.where(is_upright, upright, oblique))
    return ridge


def distance_to(marked: NDArray[np.bool_]) -> Array:
    """Return the distance of each pixel to the nearest marked one of its image ``(N, S, S)``, in pixels.

    A way is made of steps to neighbours and of knight's moves. Without a marked pixel, it is infinite.
    """
    size = marked.shape[1]
    distance = np.where(marked, 0.0, np.inf)
    # Forwards and backwards: a way never turns back, so two passes find the shortest.
    for turned in (False, True):
        field = distance[:, ::-1, ::-1] if turned else distance
        padded = np.pad(field, ((0, 0), (2, 0), (2, 2)), constant_values=np.inf)
        for y in range(2, size + 2):
            near, far = padded[:, y - 1], padded[:, y - 2]
            steps = [near[:, 2:-2] + _STRAIGHT]
            for x in (-1, 1):
                steps.append(near[:, 2 + x : size + 2 + x] + _DIAGONAL)
                steps.append(near[:, 2 + 2 * x : size + 2 + 2 * x] + _KNIGHT)
                steps.append(far[:, 2 + x : size + 2 + x] + _KNIGHT)
            line = np.minimum.reduce([padded[:, y, 2:-2], *steps])
            for x in range(1, size):
                np.minimum(line[:, x], line[:, x - 1] + _STRAIGHT, out=line[:, x])
            padded[:, y, 2:-2] = line
        found = padded[:, 2:, 2:-2]
        distance = found[:, ::-1, ::-1] if turned else found
    return distance


def equalised(images: Pixels) -> Pixels:
    """Return levels spread over 0..255 so that each image has about as many pixels of every level."""
    spread = np.empty_like(images)
    for row, image in enumerate(images):
        counts = np.bincount(image.ravel(), minlength=256)
        first = int(counts.nonzero()[0][0])
        others = image.size - counts[first]
        if not others:
            spread[row] = image
            continue
        scale = np.float32(255) / np.float32(others)
        counts[first] = 0
        spread[row] = np.rint(counts.cumsum().astype(np.float32) * scale).clip(0, 255)[image]
    return spread


SPATTER_OF_LIQUIDS = Corruption(
    "Spatter", _spatter, lambda generator, size: (generator.standard_normal((size, size)),)
)
