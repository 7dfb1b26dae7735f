"""Biased-MNIST: digits with a background colour that reveals the class in training, but not in the test.

Sources: Bahng et al., "Learning De-biased Representations with Biased Representations" (ICML 2020); Barbano
et al., "Unbiased Supervised Contrastive Learning" (ICLR 2023), Appendix B.2.1 and its released code.
"""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import torch
from torch import Tensor

from contrasweep.data.colour import white_on_colour
from contrasweep.data.images import LabelledImages
from contrasweep.data.options import DatasetOption, Options
from contrasweep.data.seeds import torch_generator
from contrasweep.data.sources.digits import MNIST_DIGITS, ON_COLOURS, SMALL_DIGITS, Digits
from contrasweep.data.spec import DatasetFamily, Split

BIAS_COLOURS = (
    (255, 0, 0),
    (0, 255, 0),
    (0, 0, 255),
    (225, 225, 0),
    (225, 0, 225),
    (0, 255, 255),
    (255, 128, 0),
    (255, 0, 128),
    (128, 0, 255),
    (50, 255, 128),
)
"""The ten colours, RGB 0..255; colour c is the usual one of class c."""

MNIST_STROKE = 1
"""The smallest MNIST value painted white: as released, any value but 0."""

DIGITS_STROKE = 128
"""The smallest value of the 8 x 8 digits painted white: half full. Their strokes fade into the background, so
the rule of MNIST would paint most of the image."""

VALIDATION_RHO = 0.1
"""The share of the own colour among recoloured validation images: as in the test, the colour says nothing of
the class. So are the validation images in the released code of Hong & Yang (NeurIPS 2021)."""


def bias_counts(images: int, rho: float) -> list[int]:
    """Return the number of a class's images with each colour: its own first, then the others, falling.

    ``floor(rho * images)`` images have the own colour, with rho as a decimal number. The other colours share
    the rest evenly; a remainder goes, one image each, to as many of them. (The released code gives the others
    ``ceil(rest / 9)`` each, and the last of them what is left.)

    Args:
        images: the number of images of the class.
        rho: the share of the own colour, 0..1.

    Returns:
        Ten numbers that add up to ``images``.

    Raises:
        ValueError: rho is outside 0..1.
    """
    if not 0.0 <= rho <= 1.0:
        raise ValueError(f"rho must be in 0..1, got {rho}")
    others = len(BIAS_COLOURS) - 1
    own = int(Fraction(str(rho)) * images)
    even, left = divmod(images - own, others)
    return [own, *(even + (position < left) for position in range(others))]


def draw_bias(labels: Tensor, rho: float, name: str, stream: str) -> Tensor:
    """Return the colour of each image; each class has exactly the counts of `bias_counts`.

    The dataset's name and the stream determine which image gets which colour, and which colours get one more
    where the others cannot share evenly: those are drawn for each class, as in the released code. An image
    with its class's own colour at one rho has it at every larger rho.

    Args:
        labels: int64 ``(N,)``, classes 0..9.
        rho: the share of the own colour, 0..1.
        name: the dataset's bare name.
        stream: train, test, or the number of a validation set in words.

    Returns:
        int64 ``(N,)``, 0..9.

    Raises:
        ValueError: rho is outside 0..1.
    """
    bias = torch.empty_like(labels)
    for label in range(len(BIAS_COLOURS)):
        members = (labels == label).nonzero().flatten()
        order = torch.randperm(len(members), generator=torch_generator("bias colour", name, stream, label))
        counts = torch.tensor(bias_counts(len(members), rho))
        others = torch.randperm(9, generator=torch_generator("bias remainder", name, stream, label))
        colours = torch.cat([torch.tensor([label]), (label + 1 + others) % len(BIAS_COLOURS)])
        bias[members[order]] = colours.repeat_interleave(counts)
    return bias


def biased(strokes: LabelledImages, rho: float, name: str, stream: str, stroke: int) -> LabelledImages:
    """Return white strokes on biased colours; ``bias`` is the colour's number and ``condition`` its RGB."""
    bias = draw_bias(strokes.labels, rho, name, stream)
    colours = torch.tensor(BIAS_COLOURS, dtype=torch.float32)[bias]
    return replace(white_on_colour(strokes, colours, stroke), bias=bias)


def _family(digits: Digits, name: str, summary: str, rho: float, stroke: int) -> DatasetFamily:
    """Return the biased sets made from these digits; `rho` is the default."""
    facts = {**ON_COLOURS, "view_size": digits.facts.image_size, "bias_classes": len(BIAS_COLOURS)}
    # Revision 1 gave the remainder of a class to the colours that follow its own in the palette.
    facts |= {"recolourable": True, "revision": 2}

    def paint(strokes: LabelledImages, split: Split, options: Options) -> LabelledImages:
        share = float(options["rho" if split == "train" else "test_rho"])
        return biased(strokes, share, name, split, stroke)

    options = {
        "rho": DatasetOption(
            "share of a class's training images with its own colour", float, rho, low=0.0, high=1.0
        ),
        "test_rho": DatasetOption("the same of the test images", float, 0.1, low=0.0, high=1.0),
    }

    def recoloured(root: Path, given: Options, rows: Tensor, seed: int) -> LabelledImages:
        strokes = digits.read(root, "train").subset(rows)
        return biased(strokes, VALIDATION_RHO, name, f"validation {seed}", stroke)

    family = digits.family(name, summary, paint, options, lambda options: facts)
    return replace(family, recoloured=recoloured)


BIASED_MNIST = _family(
    MNIST_DIGITS,
    "biased-mnist",
    "MNIST with white strokes on ten colours that give the class away in training",
    rho=0.997,
    stroke=MNIST_STROKE,
)

BIASED_DIGITS = _family(
    SMALL_DIGITS,
    "biased-digits",
    "digits with white strokes on ten colours that give the class away in training",
    rho=0.9,
    stroke=DIGITS_STROKE,
)
