"""Noise on greyscale images: Noisy-MNIST, for one view or for two views with different noise.

Source: Zheng et al., "Contrastive Learning with Complex Heterogeneity" (KDD 2022), Sections 4.1 and 4.4.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal, cast

import torch
from torch import Tensor

from contrasweep.data.images import LabelledImages
from contrasweep.data.seeds import numpy_generator
from contrasweep.data.sources.mnist import check_mnist, mnist_spec, read_mnist
from contrasweep.data.spec import DatasetFamily, DatasetOption, DatasetSpec, Options, Split

Law = Literal["uniform", "gaussian"]

MNIST_MEAN = 0.13066047627384283
"""Mean of all pixels of MNIST's training images, in 0..1."""

MNIST_STD = 0.3081078039450204
"""The (population) standard deviation of these pixels."""

_CHUNK = 256


@dataclass(frozen=True)
class Noise:
    """Noise for pixels in 0..1. The sum is clipped to 0..1 and rounded to 8 bits.

    Attributes:
        law: uniform in 0..1, or gaussian with `mean` and `std`.
        level: the probability that a pixel gets noise; 1 means all pixels. The noise of a pixel is the same
            at every level at which it gets noise.
        mean: the mean of the gaussian law.
        std: the standard deviation of the gaussian law.

    Raises:
        ValueError: the law is unknown, or the level is outside 0..1.
    """

    law: Law = "uniform"
    level: float = 1.0
    mean: float = MNIST_MEAN
    std: float = MNIST_STD

    def __post_init__(self) -> None:
        if self.law not in ("uniform", "gaussian"):
            raise ValueError(f"the noise's law must be uniform or gaussian, got {self.law!r}")
        if not 0.0 <= self.level <= 1.0:
            raise ValueError(f"the noise's level must be in 0..1, got {self.level}")

    def add(self, images: Tensor, *name: str | int) -> Tensor:
        """Return noisy images.

        Args:
            images: uint8 ``(N, C, H, W)`` on the CPU.
            *name: the name of the random stream, such as the dataset, the split and the view.

        Returns:
            uint8 of the same shape.
        """
        values, chances = numpy_generator("noise", self.law, *name), numpy_generator("noise where", *name)
        noisy = torch.empty_like(images)
        # In chunks, in the order of the draws: draws for all of MNIST at once would take 0.8 GB.
        for start in range(0, len(images), _CHUNK):
            pixels = images[start : start + _CHUNK]
            shape = tuple(pixels.shape)
            drawn = (
                values.random(shape) if self.law == "uniform" else values.normal(self.mean, self.std, shape)
            )
            falls = torch.from_numpy(chances.random(shape) < self.level)
            levels = pixels + torch.where(falls, torch.from_numpy(drawn), 0.0) * 255.0
            noisy[start : start + _CHUNK] = levels.clamp_(0.0, 255.0).round_()
        return noisy


def noise_options(law: Law, level: float = 1.0) -> Mapping[str, DatasetOption]:
    """Return the options of a family of noisy images, with these defaults."""
    return MappingProxyType(
        {
            "noise": DatasetOption(
                "uniform in 0..1, or gaussian with the pixels' mean and standard deviation",
                str,
                law,
                choices=("uniform", "gaussian"),
            ),
            "level": DatasetOption("share of the pixels that it falls on", float, level, low=0.0, high=1.0),
        }
    )


def noise_of(options: Options, mean: float = MNIST_MEAN, std: float = MNIST_STD) -> Noise:
    """Return the noise for the values of `noise_options`."""
    return Noise(cast(Law, options["noise"]), float(options["level"]), mean, std)


def _describe_noisy_mnist(root: Path, options: Options) -> DatasetSpec:
    return mnist_spec(NOISY_MNIST.full_name(options), NOISY_MNIST.summary)


def _read_noisy_mnist(root: Path, split: Split, options: Options) -> LabelledImages:
    clean = read_mnist(root, split)
    return replace(clean, images=noise_of(options).add(clean.pixels, "mnist", split, 1))


NOISY_MNIST = DatasetFamily(
    name="noisy-mnist",
    summary="MNIST with noise on a share of the pixels, as in HeroCon",
    describe=_describe_noisy_mnist,
    check=lambda root, options: check_mnist("noisy-mnist", root),
    read=_read_noisy_mnist,
    options=noise_options("uniform"),
)
