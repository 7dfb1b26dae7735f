"""Jitter, greyscale, blur and normalisation against torchvision's functions with equal parameters."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torchvision.transforms.v2 import functional as vision

from contrasweep.data import RandomViews, ViewParameters, normalise, torch_generator

OPERATIONS = ("brightness", "contrast", "saturation", "hue")
TORCHVISION = (
    vision.adjust_brightness,
    vision.adjust_contrast,
    vision.adjust_saturation,
    vision.adjust_hue,
)
STRONG: dict[str, Any] = {"brightness": 1.5, "contrast": 1.2, "saturation": 2.0, "hue": 0.5}
PLAIN: dict[str, Any] = {"min_crop": 1.0, "flip": 0.0}
SIZE = 8


def _images(count: int, channels: int = 3, size: int = SIZE) -> Tensor:
    """Noise, and images with equal colours: grey, few levels, black and white, one colour."""
    shape = (count, channels, size, size)
    generator = torch_generator("colours", *shape)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)
    images[0] = images[0, :1]
    images[1] = images[1] // 128 * 255
    images[2] = images[2] // 64 * 85
    images[3, 1:] = images[3, :1] // 2
    images[4], images[5] = 0, 255
    return images


def _drawn(views: RandomViews, count: int, *key: str | int) -> ViewParameters:
    return views.draw(count, SIZE, torch_generator("colours", *key))


def _chain(image: Tensor, factors: Tensor, order: Tensor, names: tuple[str, ...]) -> Tensor:
    for operation in order.tolist():
        if OPERATIONS[operation] in names:
            image = TORCHVISION[operation](image, float(factors[operation]))
    return image


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("name", OPERATIONS)
def test_one_operation_equals_torchvision(name: str, channels: int) -> None:
    images = _images(64, channels)
    views = RandomViews(SIZE, **PLAIN, **{name: STRONG[name]}, jitter_probability=1.0)
    drawn = _drawn(views, 64, name)
    column = OPERATIONS.index(name)
    assert len(drawn.factors[:, column].unique()) > 50
    expected = [
        TORCHVISION[column](image, float(factor))
        for image, factor in zip(images / 255.0, drawn.factors[:, column], strict=True)
    ]
    torch.testing.assert_close(views.apply(images, drawn), torch.stack(expected), rtol=0, atol=1e-5)


@pytest.mark.parametrize("shift", [-0.5, -1 / 3, -1 / 6, 0.0, 1 / 6, 1 / 3, 0.5])
def test_every_corner_of_the_hues_turns_as_torchvision_s(shift: float) -> None:
    corners = torch.tensor(list(itertools.product([0, 85, 128, 255], repeat=3)), dtype=torch.uint8)
    images = corners[:, :, None, None].expand(-1, -1, 2, 2).contiguous()
    views = RandomViews(2, **PLAIN, hue=0.5, jitter_probability=1.0)
    drawn = views.draw(len(images), 2, torch_generator("corners"))
    factors = drawn.factors.clone()
    factors[:, 3] = shift
    made = views.apply(images, replace(drawn, factors=factors))
    torch.testing.assert_close(made, vision.adjust_hue(images / 255.0, shift), rtol=0, atol=2e-6)


def test_all_24_orders_equal_torchvision_s() -> None:
    images = _images(120)
    views = RandomViews(SIZE, **PLAIN, **STRONG, jitter_probability=0.8)
    drawn = _drawn(views, 120, "orders")
    orders = torch.tensor(list(itertools.permutations(range(4)))).repeat(5, 1)
    drawn = replace(drawn, order=orders)
    expected = [
        _chain(image, factors, order, OPERATIONS) if jitter else image
        for image, factors, order, jitter in zip(
            images / 255.0, drawn.factors, orders, drawn.jitter, strict=True
        )
    ]
    assert 70 < int(drawn.jitter.sum()) < 115
    torch.testing.assert_close(views.apply(images, drawn), torch.stack(expected), rtol=0, atol=5e-5)


@pytest.mark.parametrize("names", [("brightness", "saturation"), ("contrast", "hue"), ("hue",)])
def test_operations_that_are_off_leave_out_their_turn(names: tuple[str, ...]) -> None:
    images = _images(40)
    strengths = {name: STRONG[name] for name in names}
    views = RandomViews(SIZE, **PLAIN, **strengths, jitter_probability=1.0)
    drawn = _drawn(views, 40, *names)
    expected = [
        _chain(image, factors, order, names)
        for image, factors, order in zip(images / 255.0, drawn.factors, drawn.order, strict=True)
    ]
    torch.testing.assert_close(views.apply(images, drawn), torch.stack(expected), rtol=0, atol=2e-5)


@pytest.mark.parametrize("channels", [1, 3])
def test_the_whole_chain_equals_torchvision(channels: int) -> None:
    size, count = 24, 40
    images = _images(count, channels, 28)
    mean, std = (0.4, 0.5, 0.3)[:channels], (0.2, 0.25, 0.3)[:channels]
    views = RandomViews(size, 0.2, **STRONG, grayscale=0.4, blur=0.5, mean=mean, std=std)
    drawn = views.draw(count, 28, torch_generator("chain", channels))
    expected = []
    for image, p in zip(images / 255.0, (drawn[i : i + 1] for i in range(count)), strict=True):
        image = vision.resized_crop(image, *p.boxes[0].tolist(), [size, size], antialias=True)
        image = vision.horizontal_flip(image) if p.flip else image
        image = _chain(image, p.factors[0], p.order[0], OPERATIONS) if p.jitter else image
        image = vision.rgb_to_grayscale(image, num_output_channels=channels) if p.grayscale else image
        image = vision.gaussian_blur(image, [3, 3], [float(p.sigma)]) if p.blur else image
        expected.append(vision.normalize(image, list(mean), list(std)))
    for flag in (drawn.flip, drawn.jitter, drawn.grayscale, drawn.blur):
        assert 5 < int(flag.sum()) < 38
    torch.testing.assert_close(views.apply(images, drawn), torch.stack(expected), rtol=0, atol=5e-4)


@pytest.mark.parametrize(("size", "width"), [(20, 3), (32, 3), (40, 5), (64, 7), (224, 23)])
def test_the_blur_spans_a_tenth_of_the_view(size: int, width: int) -> None:
    count = 6 if size < 100 else 2
    images = _images(6, 3, size)[-count:]
    views = RandomViews(size, **PLAIN, blur=1.0)
    drawn = views.draw(count, size, torch_generator("blur", size))
    expected = [
        vision.gaussian_blur(image, [width, width], [float(sigma)])
        for image, sigma in zip(images / 255.0, drawn.sigma, strict=True)
    ]
    torch.testing.assert_close(views.apply(images, drawn), torch.stack(expected), rtol=0, atol=1e-5)


def test_images_of_one_channel_have_no_colour_to_lose() -> None:
    images = _images(20, 1)
    views = RandomViews(SIZE, **PLAIN, saturation=0.9, hue=0.5, jitter_probability=1.0, grayscale=1.0)
    assert torch.equal(
        views.apply(images, _drawn(views, 20)), RandomViews(SIZE, **PLAIN).apply(images, _drawn(views, 20))
    )


def test_operations_that_are_off_change_nothing() -> None:
    images = _images(50)
    plain = RandomViews(SIZE, 0.3)
    drawn = _drawn(plain, 50)
    expected = plain.apply(images, drawn)
    off = replace(plain, **STRONG, jitter_probability=0.0)
    assert torch.equal(off.apply(images, _drawn(off, 50)), expected)
    unused = replace(plain, jitter_probability=1.0)
    assert torch.equal(unused.apply(images, _drawn(unused, 50)), expected)


def test_a_batch_in_many_parts_gives_the_views_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    images = _images(200)
    views = RandomViews(SIZE, 0.3, **STRONG, grayscale=0.2)
    drawn = _drawn(views, 200)
    whole = views.apply(images, drawn)
    monkeypatch.setattr("contrasweep.data.views._COLOURED_AT_ONCE", 0)
    monkeypatch.setattr("contrasweep.data.resample._CROPPED_AT_ONCE", 0)
    torch.testing.assert_close(views.apply(images, drawn), whole, rtol=0, atol=1e-6)


def test_ranks_that_slice_the_global_batch_make_its_colours() -> None:
    images = _images(30, 3, 24)
    views = RandomViews(24, 0.3, **STRONG, grayscale=0.3, blur=0.5, mean=(0.5,) * 3, std=(0.1, 0.2, 0.3))
    drawn = views.draw(30, 24, torch_generator("ranks"))
    parts = [slice(0, 7), slice(7, 30)]
    made = [views.apply(images[part], drawn[part]) for part in parts]
    torch.testing.assert_close(torch.cat(made), views.apply(images, drawn), rtol=0, atol=1e-5)
    some = torch.tensor([25, 3, 11])
    torch.testing.assert_close(
        views.apply(images[some], drawn[some]), views.apply(images, drawn)[some], rtol=0, atol=1e-5
    )


def test_the_images_stay_as_they_are() -> None:
    images = _images(20)
    before = images.clone()
    views = RandomViews(SIZE, 0.3, **STRONG, grayscale=0.5)
    drawn = _drawn(views, 20)
    first = views.apply(images, drawn)
    assert torch.equal(first, views.apply(images, drawn))
    assert torch.equal(images, before)


def test_no_images_have_no_colours() -> None:
    views = RandomViews(24, 0.5, **STRONG, grayscale=0.5, blur=0.5, mean=(0.5,) * 3, std=(1.0,) * 3)
    empty = _images(6, 3, 24)[:0]
    assert views.apply(empty, views.draw(0, 24, torch_generator("none"))).shape == (0, 3, 24, 24)


def test_normalise_wants_a_number_for_each_channel() -> None:
    images = torch.rand(2, 3, 4, 4)
    made = normalise(images, (0.1, 0.2, 0.3), (1.0, 2.0, 4.0))
    expected = vision.normalize(images, [0.1, 0.2, 0.3], [1.0, 2.0, 4.0])
    torch.testing.assert_close(made, expected)
    with pytest.raises(ValueError, match="got 1 and 1 for 3 channels"):
        normalise(images, (0.5,), (0.5,))
    views = RandomViews(SIZE, 0.5, mean=(0.5,), std=(0.5,))
    with pytest.raises(ValueError, match="got 1 and 1 for 3 channels"):
        views.apply(_images(6), _drawn(views, 6))


@pytest.mark.parametrize("setting", [{"hue": 0.1}, {"grayscale": 0.2}, {"contrast": 0.4}])
def test_colours_of_two_channels_are_refused(setting: dict[str, Any]) -> None:
    views = RandomViews(SIZE, 0.5, **setting)
    with pytest.raises(ValueError, match="1 or 3 channels, got 2"):
        views.apply(_images(6, 2), _drawn(views, 6))
    plain = RandomViews(SIZE, 0.5, mean=(0.5, 0.5), std=(1.0, 1.0))
    assert plain.apply(_images(6, 2), _drawn(plain, 6)).shape == (6, 2, SIZE, SIZE)
