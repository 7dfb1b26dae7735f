"""Colour backgrounds for greyscale strokes: ColorMNIST as the CCL-K code generates it.

Source: Tsai et al., "Conditional Contrastive Learning with Kernel" (ICLR 2022) and its released generator.
"""

import numpy as np
import torch
from torch import Tensor

from data.images import LabelledImages
from data.seeds import numpy_generator

BASE_COLOURS = (
    (31, 119, 180),
    (255, 127, 14),
    (44, 160, 44),
    (214, 39, 40),
    (148, 103, 189),
    (140, 86, 75),
    (227, 119, 194),
    (127, 127, 127),
    (188, 189, 34),
    (23, 190, 207),
)
"""The ten base colours, RGB 0..255."""

COLOUR_NAME = "background RGB colour, 0..255"

NOISE_LEVEL = 40.0
"""Standard deviation of the noise on each colour channel, in 8-bit levels."""

_CHUNK = 4096


def draw_palette_colours(count: int, generator: np.random.Generator) -> Tensor:
    """Draw one background colour per image: a base colour plus N(0, 40^2) on each channel, clipped.

    The base colour is drawn independently of the image, so the colour says nothing about the class.

    Returns:
        float32 ``(count, 3)``, RGB in 0..255, not rounded.
    """
    base = np.asarray(BASE_COLOURS, dtype=np.float64)
    chosen = base[generator.integers(len(base), size=count)]
    noisy = chosen + NOISE_LEVEL * generator.standard_normal((count, 3))
    return torch.from_numpy(noisy.clip(0.0, 255.0)).float()


def colour_backgrounds(strokes: LabelledImages, colours: Tensor) -> LabelledImages:
    """Paint black strokes on coloured backgrounds: ``(255 - stroke) / 255 * colour``, rounded.

    Args:
        strokes: greyscale images ``(N, 1, H, W)``, where 0 is background and 255 is full stroke.
        colours: float32 ``(N, 3)``, RGB in 0..255.

    Returns:
        RGB images ``(N, 3, H, W)`` with the same labels; ``condition`` is ``colours``.

    Raises:
        ValueError: the strokes are not greyscale, or there is not one colour in 0..255 for each image.
    """
    count, channels, height, width = strokes.images.shape
    if channels != 1:
        raise ValueError(f"only greyscale strokes (one channel) can be coloured, got {channels} channels")
    if colours.shape != (count, 3):
        raise ValueError(f"one RGB colour per image is needed, {(count, 3)}, got {tuple(colours.shape)}")
    if count and not bool(((colours >= 0.0) & (colours <= 255.0)).all()):
        raise ValueError(f"colours must be in 0..255, got {float(colours.min()):g}..{float(colours.max()):g}")
    painted = torch.empty((count, 3, height, width), dtype=torch.uint8)
    # In chunks: the float image of all of MNIST at once would be four times the result.
    for start in range(0, count, _CHUNK):
        rows = slice(start, start + _CHUNK)
        paper = (255 - strokes.images[rows]).float() / 255.0
        painted[rows] = (paper * colours[rows, :, None, None]).round_()
    return LabelledImages(painted, strokes.labels, colours)


def on_palette_colours(strokes: LabelledImages, name: str, split: str) -> LabelledImages:
    """Return the strokes on palette colours that depend on the dataset's name and split alone."""
    colours = draw_palette_colours(len(strokes), numpy_generator("background colour", name, split))
    return colour_backgrounds(strokes, colours)
