"""One corruption: what it draws for an image, and what it does with a batch of images and their draws."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contrasweep.data.corruptions.filters import Array

LEVELS = 5
"""The strengths of a corruption, 0..4, from the weakest."""

Pixels = NDArray[np.uint8]
Draw = Callable[[np.random.Generator, int], tuple[Array, ...]]
Apply = Callable[..., NDArray[np.generic]]


def nothing_drawn(generator: np.random.Generator, size: int) -> tuple[Array, ...]:
    """Draw nothing: the draw of a corruption that is no random one."""
    return ()


@dataclass(frozen=True)
class Corruption:
    """A way to spoil images.

    Attributes:
        name: the name in the released protocol.
        apply: `apply(pixels, level, *draws)` makes levels 0..255 of uint8 pixels ``(N, S, S, 3)``; a draw has
            a row for each image. Fractions of a level are cut off, as in the released code.
        draw: `draw(generator, size)` makes the draws for one image. They do not depend on the level, so an
            image has the same snowflakes at every level.
    """

    name: str
    apply: Apply
    draw: Draw = nothing_drawn

    def __call__(self, pixels: Pixels, level: int, draws: tuple[Array, ...]) -> Pixels:
        """Return the corrupted images, uint8 ``(N, S, S, 3)``; `draws` are those of `draw`, one row each."""
        levels = self.apply(pixels, level, *draws)
        return levels.astype(np.uint8)
