"""The augmentation of each paper by name, as settings of `RandomViews` without the size.

What a paper leaves unsaid is taken from its released code. HeroCon has none: its two views are two kinds of
measurement or two noises, which belong to its data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from contrasweep.data.names import unknown
from contrasweep.data.views import RandomViews

Settings = Mapping[str, Any]


@dataclass(frozen=True)
class ViewPreset:
    """The views of one paper on one kind of data.

    Attributes:
        source: the paper or its released code.
        sizes: height and width in pixels of the published views.
        settings: fields of `RandomViews` but its size.
    """

    source: str
    sizes: tuple[int, ...]
    settings: Settings


def preset_views(name: str, size: int) -> RandomViews:
    """Return the views of a preset, `size` pixels high and wide.

    Raises:
        ValueError: there is no such preset (the nearest is named), or the size does not suit it.
    """
    if name not in VIEW_PRESETS:
        raise ValueError(unknown("view preset", name, VIEW_PRESETS))
    return RandomViews(size=size, **VIEW_PRESETS[name].settings)


def _jitter(
    brightness: float, contrast: float, saturation: float, hue: float, probability: float
) -> Settings:
    """Colour jitter of a share of the views, and greyscale of a fifth, which all of these papers have."""
    return {
        "brightness": brightness,
        "contrast": contrast,
        "saturation": saturation,
        "hue": hue,
        "jitter_probability": probability,
        "grayscale": 0.2,
    }


def _statistics(mean: tuple[float, ...], std: tuple[float, ...]) -> Settings:
    return {"mean": mean, "std": std}


_WHOLE: Settings = {"min_crop": 1.0, "min_aspect": 0.01, "max_aspect": 100.0, "flip": 0.0}
_PADDED: Settings = {"min_crop": 1.0, "padding": 4}
_USUAL = _jitter(0.4, 0.4, 0.4, 0.1, 0.8)
_CACR = _jitter(0.4, 0.4, 0.4, 0.4, 1.0)
_CIFAR10 = _statistics((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010))
_CIFAR100 = _statistics((0.5071, 0.4867, 0.4408), (0.2675, 0.2565, 0.2761))
_STL10 = _statistics((0.4409, 0.4279, 0.3868), (0.2683, 0.2610, 0.2687))
_IMAGENET = _statistics((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
_ZAPPOS = _statistics((0.8342, 0.8142, 0.8081), (0.2804, 0.3014, 0.3072))
_CUB = _statistics((0.4863, 0.4999, 0.4312), (0.2070, 0.2018, 0.2428))
_WIDER = _statistics((0.4772, 0.4405, 0.4100), (0.2960, 0.2876, 0.2935))

_CCLK = "Tsai et al. 2022, Conditional contrastive learning with kernel, released code"
_CL_INFONCE = "Tsai et al. 2022, Learning weakly-supervised contrastive representations, released code"
_CACR_SMALL = "Zheng et al. 2021, Contrastive attraction and contrastive repulsion, Algorithm 1"
_FAIRKL = "Barbano et al. 2023, Unbiased supervised contrastive learning"
_SIMCLR = "Chen et al. 2020, A simple framework for contrastive learning of visual representations"

_PRESETS: dict[str, ViewPreset] = {
    "none": ViewPreset("the whole image, resized", (), _WHOLE),
    "cclk": ViewPreset(_CCLK, (32, 224), {"min_crop": 0.08, "interpolation": "bicubic", **_USUAL}),
    "cclk-colormnist": ViewPreset(_CCLK, (32,), {"min_crop": 0.08}),
    "cl-infonce-zappos": ViewPreset(_CL_INFONCE, (32,), {"min_crop": 0.4, **_USUAL, **_ZAPPOS}),
    "cl-infonce-cub": ViewPreset(_CL_INFONCE, (224,), {"min_crop": 0.4, **_USUAL, **_CUB}),
    "cl-infonce-wider": ViewPreset(_CL_INFONCE, (224,), {"min_crop": 0.4, **_USUAL, **_WIDER}),
    "cl-infonce-imagenet100": ViewPreset(_CL_INFONCE, (224,), {"min_crop": 0.4, **_USUAL, **_IMAGENET}),
    "cacr-cifar10": ViewPreset(_CACR_SMALL, (32,), {"min_crop": 0.2, **_CACR, **_CIFAR10}),
    "cacr-cifar100": ViewPreset(_CACR_SMALL, (32,), {"min_crop": 0.2, **_CACR, **_CIFAR100}),
    "cacr-stl10": ViewPreset(_CACR_SMALL, (64,), {"min_crop": 0.08, **_CACR, **_STL10}),
    "fairkl-biased-mnist": ViewPreset(
        f"{_FAIRKL}, B.2 and released code: one view, no augmentation",
        (28,),
        {**_WHOLE, **_statistics((0.5,) * 3, (0.5,) * 3)},
    ),
    "fairkl-cifar10": ViewPreset(
        f"{_FAIRKL}, B.1 and released code", (32,), {"min_crop": 0.2, **_USUAL, **_CIFAR10}
    ),
    "fairkl-cifar100": ViewPreset(
        f"{_FAIRKL}, B.1 and released code", (32,), {"min_crop": 0.2, **_USUAL, **_CIFAR100}
    ),
    "fairkl-corrupted-cifar10": ViewPreset(f"{_FAIRKL}, released code", (32,), {**_PADDED, **_CIFAR10}),
    "fairkl-bffhq": ViewPreset(
        f"{_FAIRKL}, released code, with CIFAR-10's statistics", (224,), {**_PADDED, **_CIFAR10}
    ),
    "simclr": ViewPreset(
        f"{_SIMCLR}, appendix A",
        (224,),
        {"min_crop": 0.08, **_jitter(0.8, 0.8, 0.8, 0.2, 0.8), "blur": 0.5},
    ),
    "simclr-cifar": ViewPreset(
        f"{_SIMCLR}, B.9: half the strength, no blur", (32,), {"min_crop": 0.08, **_USUAL}
    ),
    "moco-v2": ViewPreset(
        "Chen et al. 2020, Improved baselines with momentum contrastive learning; CACR's Algorithm 2",
        (224,),
        {"min_crop": 0.2, **_USUAL, "blur": 0.5, **_IMAGENET},
    ),
}
VIEW_PRESETS: Mapping[str, ViewPreset] = MappingProxyType(_PRESETS)
