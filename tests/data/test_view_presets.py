from dataclasses import asdict

import pytest
import torch

from contrasweep.data import VIEW_PRESETS, RandomViews, preset_views, torch_generator, whole_image


@pytest.mark.parametrize("name", VIEW_PRESETS)
def test_every_preset_makes_views_of_its_sizes(name: str) -> None:
    preset = VIEW_PRESETS[name]
    assert preset.source
    images = torch.randint(0, 256, (4, 3, 40, 40), dtype=torch.uint8, generator=torch_generator(name))
    for size in [size for size in preset.sizes if size < 100] or [32]:
        views = preset_views(name, size)
        made = views.apply(images, views.draw(4, 40, torch_generator(name)))
        assert made.shape == (4, 3, size, size)
        assert bool(made.isfinite().all())


def test_presets_hold_what_the_papers_say() -> None:
    jitter = {"brightness": 0.4, "contrast": 0.4, "saturation": 0.4, "hue": 0.1}
    usual = {**jitter, "jitter_probability": 0.8, "grayscale": 0.2, "flip": 0.5, "blur": 0.0}
    cclk = asdict(preset_views("cclk", 32))
    assert cclk.items() >= {**usual, "min_crop": 0.08, "interpolation": "bicubic", "mean": None}.items()
    zappos = asdict(preset_views("cl-infonce-zappos", 32))
    assert zappos.items() >= {**usual, "min_crop": 0.4, "interpolation": "bilinear"}.items()
    stl10 = asdict(preset_views("cacr-stl10", 64))
    assert stl10.items() >= {**usual, "min_crop": 0.08, "hue": 0.4, "jitter_probability": 1.0}.items()
    assert asdict(preset_views("cacr-cifar10", 32))["min_crop"] == 0.2
    assert asdict(preset_views("moco-v2", 224)).items() >= {**usual, "min_crop": 0.2, "blur": 0.5}.items()
    assert preset_views("cclk-colormnist", 32) == RandomViews(32, 0.08)
    padded = {"min_crop": 1.0, "padding": 4, "flip": 0.5, "brightness": 0.0, "grayscale": 0.0}
    for name, size in (("fairkl-corrupted-cifar10", 32), ("fairkl-bffhq", 224)):
        assert asdict(preset_views(name, size)).items() >= padded.items()


def test_the_preset_without_augmentation_is_a_resize() -> None:
    images = torch.randint(0, 256, (20, 3, 20, 48), dtype=torch.uint8, generator=torch_generator("none"))
    for name, expected in [
        ("none", whole_image(images, 32)),
        ("fairkl-biased-mnist", whole_image(images, 32) * 2 - 1),
    ]:
        views = preset_views(name, 32)
        made = views.apply(images, views.draw(20, (20, 48), torch_generator("none")))
        torch.testing.assert_close(made, expected, rtol=0, atol=2e-6)


def test_an_unknown_preset_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ValueError, match=r"unknown view preset 'cacr-cifar'.* mean 'cacr-cifar10'"):
        preset_views("cacr-cifar", 32)


def test_a_size_that_a_preset_cannot_blur_is_refused() -> None:
    with pytest.raises(ValueError, match="blur needs a size of 20"):
        preset_views("moco-v2", 16)


def test_presets_cannot_be_changed_by_accident() -> None:
    with pytest.raises(TypeError):
        VIEW_PRESETS["mine"] = VIEW_PRESETS["none"]  # type: ignore[index]
