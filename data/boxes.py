"""The boxes of random crops, from uniform draws.

They are worked out with NumPy: for a few hundred numbers, its calls take half the time of torch's.

Shapes: V views, N images, H x W stored pixels.
"""

import math
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

TRIES = 10
_Floats = NDArray[np.float64]


def crop_boxes(
    chance: Tensor, source: tuple[int, int], area: tuple[float, float], aspect: tuple[float, float]
) -> Tensor:
    """Turn uniform draws into boxes, int64 ``(V * N, 4)``: top, left, height, width in stored pixels.

    The first of the tries of which the rounded height and width fit into the image is taken, or the largest
    central box of an allowed aspect.

    Args:
        chance: float64 ``(V, 2 * TRIES + 2, N)`` in [0, 1) on the CPU: for the area of each try, for its
            aspect, and for the top and the left of the box.
        source: the stored (height, width).
        area: the smallest and the largest share of the image's area in a box; a smallest one of 1 makes all
            boxes central.
        aspect: the smallest and the largest width / height.
    """
    central = _central_box(source, aspect)
    if area[0] == 1.0:
        # Drawn boxes could lose a row or column to rounding.
        return torch.tensor(central).repeat(len(chance) * chance.shape[2], 1)
    drawn: _Floats = chance.numpy()
    sides, fits = _sides(drawn[:, 0], drawn[:, TRIES], source, area, aspect)
    # Most boxes fit at the first try, so the other tries are worked out only for the rest.
    view, image = (~fits).nonzero()
    tries = drawn[view, : 2 * TRIES, image]
    tried, fits = _sides(tries[:, :TRIES], tries[:, TRIES:], source, area, aspect)
    first = fits.argmax(axis=1)
    sides[:, view, image] = tried[:, np.arange(len(first)), first]
    boxes = np.empty((4, *sides.shape[1:]), np.int64)
    boxes[:2] = drawn[:, -2:].transpose(1, 0, 2) * (_limits(source) - sides + 1)
    boxes[2:] = sides
    none = ~fits.any(axis=1)
    boxes[:, view[none], image[none]] = np.array(central)[:, None]
    return torch.from_numpy(boxes.reshape(4, -1)).T


def _sides(
    area_chance: _Floats,
    aspect_chance: _Floats,
    source: tuple[int, int],
    area: tuple[float, float],
    aspect: tuple[float, float],
) -> tuple[_Floats, NDArray[np.bool_]]:
    """Turn uniform draws, ``(m, n)``, into heights and widths, ``(2, m, n)``, and whether they fit."""
    pixels = (area[1] - area[0]) * area_chance
    pixels += area[0]
    pixels *= source[0] * source[1]
    lowest, highest = math.log(aspect[0]), math.log(aspect[1])
    logarithm = (highest - lowest) * aspect_chance
    logarithm += lowest
    # NumPy's exponential can have another last bit than torch's, with which all boxes so far were drawn.
    ratio = torch.from_numpy(logarithm).exp_().numpy()
    sides = np.empty((2, *pixels.shape))
    np.divide(pixels, ratio, out=sides[0])
    np.multiply(pixels, ratio, out=sides[1])
    np.rint(np.sqrt(sides, out=sides), out=sides)
    height, width = (sides >= 1) & (sides <= _limits(source))
    return sides, height & width


@lru_cache
def _limits(source: tuple[int, int]) -> _Floats:
    """Return the greatest height and width, ``(2, 1, 1)``; do not change it."""
    return np.array(source, np.float64)[:, None, None]


def _central_box(source: tuple[int, int], aspect: tuple[float, float]) -> tuple[int, int, int, int]:
    """Return the largest central box of an allowed aspect."""
    height, width = source
    if width / height < aspect[0]:
        height = max(1, round(width / aspect[0]))
    elif width / height > aspect[1]:
        width = max(1, round(height * aspect[1]))
    return (source[0] - height) // 2, (source[1] - width) // 2, height, width
