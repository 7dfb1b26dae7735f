"""Coloured backgrounds for greyscale strokes: black strokes as in ColorMNIST, white ones as in Biased-MNIST.

Sources: Tsai et al., "Conditional Contrastive Learning with Kernel" (ICLR 2022) and its released generator;
Bahng et al., "Learning De-biased Representations with Biased Representations" (ICML 2020).
"""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.images import LabelledImages
from contrasweep.data.options import DatasetOption
from contrasweep.data.seeds import numpy_generator

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

NOISE_LEVEL = 40.0
"""Standard deviation of the noise on each colour channel, in 8-bit levels."""

Colours = Literal["palette", "uniform"]
"""The law of background colours: a noisy base colour, or uniform over the RGB cube."""

COLOURS_OPTION: Mapping[str, DatasetOption] = {
    "colours": DatasetOption(
        "background colours: ten noisy base colours, or even over RGB", str, "palette", get_args(Colours)
    )
}
"""The option of every family whose background colours are independent of the class."""

_CHUNK = 4096


def draw_palette_colours(count: int, generator: np.random.Generator) -> Tensor:
    """Draw one background colour per image: a base colour plus N(0, 40^2) on each channel, clipped.

    The base colour is drawn independently of the image, so the colour is independent of the class. Returns
    float32 ``(count, 3)``, RGB in 0..255, not rounded.
    """
    base = np.asarray(BASE_COLOURS, dtype=np.float64)
    chosen = base[generator.integers(len(base), size=count)]
    noisy = chosen + NOISE_LEVEL * generator.standard_normal((count, 3))
    return torch.from_numpy(noisy.clip(0.0, 255.0)).float()


def draw_uniform_colours(count: int, generator: np.random.Generator) -> Tensor:
    """Draw colours like `draw_palette_colours`, but each channel uniform in 0..255."""
    return torch.from_numpy(generator.uniform(0.0, 255.0, size=(count, 3))).float()


def colour_backgrounds(strokes: LabelledImages, colours: Tensor) -> LabelledImages:
    """Paint black strokes on coloured backgrounds: ``(255 - stroke) / 255 * colour``, rounded.

    Of the greyscale images ``(N, 1, H, W)``, 0 is background and 255 is full stroke; ``colours`` are float32
    ``(N, 3)``, RGB in 0..255. Returns RGB images ``(N, 3, H, W)`` with the same labels and the colours as
    ``condition``.

    Raises:
        ValueError: the strokes are not greyscale, or there is not one colour in 0..255 for each image.
    """
    _require_paintable(strokes, colours)
    count, _, height, width = strokes.pixels.shape
    painted = torch.empty((count, 3, height, width), dtype=torch.uint8)
    # In chunks: the float images of all of MNIST would take four times the memory of the result.
    for start in range(0, count, _CHUNK):
        rows = slice(start, start + _CHUNK)
        paper = (255 - strokes.pixels[rows]).float() / 255.0
        painted[rows] = (paper * colours[rows, :, None, None]).round_()
    return LabelledImages(painted, strokes.labels, colours)


def white_on_colour(strokes: LabelledImages, colours: Tensor, threshold: int) -> LabelledImages:
    """Paint white strokes: each pixel is white from ``threshold`` on, or has the colour of the background.

    Arguments, result and errors are otherwise those of `colour_backgrounds`.
    """
    _require_paintable(strokes, colours)
    paper = colours.round().to(torch.uint8)[:, :, None, None]
    painted = torch.where(strokes.pixels >= threshold, torch.full_like(paper, 255), paper)
    return LabelledImages(painted, strokes.labels, colours)


def on_random_colours(
    strokes: LabelledImages, name: str, split: str, colours: Colours = "palette"
) -> LabelledImages:
    """Return black strokes on colours; only the dataset's bare name, the split and the law determine them."""
    if colours == "palette":
        drawn = draw_palette_colours(len(strokes), numpy_generator("background colour", name, split))
    else:
        drawn = draw_uniform_colours(len(strokes), numpy_generator("uniform colour", name, split))
    return colour_backgrounds(strokes, drawn)


def _require_paintable(strokes: LabelledImages, colours: Tensor) -> None:
    count, channels = strokes.pixels.shape[:2]
    if channels != 1:
        raise ValueError(f"only greyscale strokes (one channel) can be coloured, got {channels} channels")
    if colours.shape != (count, 3):
        raise ValueError(f"one RGB colour per image is needed, {(count, 3)}, got {tuple(colours.shape)}")
    if count and not bool(((colours >= 0.0) & (colours <= 255.0)).all()):
        raise ValueError(f"colours must be in 0..255, got {float(colours.min()):g}..{float(colours.max()):g}")
