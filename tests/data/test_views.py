import math
from dataclasses import replace
from typing import Any

import pytest
import torch
from distances import largest_gap
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torchvision.transforms import RandomResizedCrop
from torchvision.transforms.v2 import functional as vision

from contrasweep.data import RandomViews, ViewParameters, torch_generator, whole_image
from contrasweep.data.resample import Interpolation


def _images(count: int, channels: int, height: int, width: int) -> Tensor:
    shape = (count, channels, height, width)
    return torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch_generator("images", *shape))


def _one_by_one(images: Tensor, parameters: ViewParameters, size: int) -> Tensor:
    """Views by torchvision's functions, image by image."""
    views = []
    for image, box, flip in zip(
        images.float() / 255, parameters.boxes.tolist(), parameters.flip, strict=True
    ):
        view = vision.resized_crop(image, *box, [size, size], antialias=True)
        views.append(vision.horizontal_flip(view) if flip else view)
    return torch.stack(views)


@settings(max_examples=25, deadline=None)
@given(
    channels=st.sampled_from([1, 3]),
    height=st.integers(1, 40),
    width=st.integers(1, 40),
    size=st.integers(1, 40),
    min_crop=st.floats(0.01, 1.0),
)
def test_views_equal_torchvision_for_the_drawn_parameters(
    channels: int, height: int, width: int, size: int, min_crop: float
) -> None:
    images = _images(6, channels, height, width)
    views = RandomViews(size, min_crop)
    parameters = views.draw(6, (height, width), torch_generator("views", height, width, size))
    made = views.apply(images, parameters)
    assert made.shape == (6, channels, size, size)
    torch.testing.assert_close(made, _one_by_one(images, parameters, size), rtol=0, atol=2e-5)


@pytest.mark.parametrize(("stored", "size"), [(8, 8), (28, 32), (32, 32), (96, 64)])
def test_the_sizes_in_use_equal_torchvision(stored: int, size: int) -> None:
    images = _images(64, 3, stored, stored)
    views = RandomViews(size, 0.08)
    parameters = views.draw(64, stored, torch_generator("views", stored))
    assert 10 < int(parameters.flip.sum()) < 54
    made = views.apply(images, parameters)
    torch.testing.assert_close(made, _one_by_one(images, parameters, size), rtol=0, atol=2e-5)


@pytest.mark.parametrize(
    ("source", "scale", "ratio"),
    [
        ((28, 28), (0.08, 1.0), (3 / 4, 4 / 3)),
        ((28, 40), (0.1, 0.5), (1.2, 2.5)),  # wide crops only: height and width have their roles
        ((20, 60), (0.3, 0.9), (3 / 4, 4 / 3)),  # many draws do not fit: retries and the central box
        ((60, 20), (0.9, 1.0), (3 / 4, 4 / 3)),  # none fits: always the central box
    ],
)
def test_boxes_follow_torchvision_s_distribution(
    source: tuple[int, int], scale: tuple[float, float], ratio: tuple[float, float]
) -> None:
    count = 3000
    views = RandomViews(32, *scale, *ratio)
    ours = views.draw(count, source, torch_generator("distribution", *source)).boxes.double()
    image = torch.empty(1, *source)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        drawn = [RandomResizedCrop.get_params(image, list(scale), list(ratio)) for _ in range(count)]
    theirs = torch.tensor(drawn).double()
    # The Kolmogorov-Smirnov distance that equal distributions exceed once in a million.
    limit = math.sqrt(math.log(2 / 1e-6) / 2 * 2 / count)
    for column in range(4):
        assert largest_gap(ours[:, column], theirs[:, column]) < limit
    assert largest_gap(ours[:, 2] * ours[:, 3], theirs[:, 2] * theirs[:, 3]) < limit
    assert largest_gap(ours[:, 3] / ours[:, 2], theirs[:, 3] / theirs[:, 2]) < limit


@pytest.mark.parametrize(("stored", "padding"), [(32, 4), (24, 4), (40, 31), (32, 1)])
@pytest.mark.parametrize("flip", [0.0, 0.5])
def test_a_padded_crop_equals_torchvision_s_of_the_padded_image(
    stored: int, padding: int, flip: float
) -> None:
    """Resize, RandomCrop(32, padding) and flip, as in FairKL's released code."""
    images = _images(48, 3, stored, stored)
    views = RandomViews(32, 1.0, flip=flip, padding=padding)
    drawn = views.draw(48, stored, torch_generator("padded", stored))
    expected = []
    for image, (down, right), mirrored in zip(
        images.float() / 255, drawn.shift.tolist(), drawn.flip, strict=True
    ):
        padded = vision.pad(vision.resize(image, [32, 32], antialias=True), [padding] * 4)
        view = vision.crop(padded, padding + down, padding + right, 32, 32)
        expected.append(vision.horizontal_flip(view) if mirrored else view)
    torch.testing.assert_close(views.apply(images, drawn), torch.stack(expected), rtol=0, atol=2e-5)
    assert len(drawn.shift.unique(dim=0)) > min(8, (2 * padding + 1) ** 2 - 1)


@pytest.mark.parametrize("interpolation", ["bilinear", "bicubic"])
def test_a_crop_is_resized_and_then_shifted(interpolation: Interpolation) -> None:
    images = _images(20, 3, 30, 22)
    plain = RandomViews(16, 0.3, interpolation=interpolation)
    shifted = replace(plain, padding=5)
    one, other = (views.draw(20, (30, 22), torch_generator("shifted")) for views in (plain, shifted))
    # Whatever the padding, crops and flips are those without it.
    assert torch.equal(one.boxes, other.boxes)
    assert torch.equal(one.flip, other.flip)
    assert not bool(one.shift.any())
    moved = []
    for view, (down, right), mirrored in zip(
        plain.apply(images, one), other.shift.tolist(), one.flip, strict=True
    ):
        right = -right if mirrored else right
        moved.append(vision.crop(view, down, right, 16, 16))
    torch.testing.assert_close(shifted.apply(images, other), torch.stack(moved), rtol=0, atol=2e-5)


def test_every_shift_is_as_likely() -> None:
    shift = RandomViews(32, 1.0, padding=4).draw(9000, 32, torch_generator("shift")).shift
    for column in shift.unbind(1):
        places, seen = column.unique(return_counts=True)
        assert places.tolist() == list(range(-4, 5))
        # Chi squared of 8 degrees of freedom exceeds 43 less than once in a million.
        assert float(((seen - 1000) ** 2 / 1000).sum()) < 43
    pairs = torch.corrcoef(shift.T.double())
    assert abs(float(pairs[0, 1])) < 5 / math.sqrt(9000)


def test_every_sample_has_its_own_parameters_inside_the_image() -> None:
    drawn = RandomViews(32, 0.2).draw(2000, (28, 24), torch_generator("own"))
    top, left, height, width = drawn.boxes.unbind(1)
    assert bool((top >= 0).all() and (left >= 0).all() and (height >= 1).all() and (width >= 1).all())
    assert bool((top + height <= 28).all() and (left + width <= 24).all())
    assert len(torch.unique(drawn.boxes, dim=0)) > 500
    assert 900 < int(drawn.flip.sum()) < 1100
    # Boxes that touch each border do occur: positions cover the whole image.
    assert int((top + height).max()) == 28
    assert int((left + width).max()) == 24


@pytest.mark.parametrize(("flip", "expected"), [(0.0, 0), (1.0, 200), (0.25, 50)])
def test_the_flip_probability_is_kept(flip: float, expected: int) -> None:
    drawn = RandomViews(8, 0.5, flip=flip).draw(200, 8, torch_generator("flip"))
    assert abs(int(drawn.flip.sum()) - expected) <= (25 if 0 < flip < 1 else 0)


def test_draws_repeat_and_use_no_global_state() -> None:
    before = torch.get_rng_state()
    views = RandomViews(8, 0.5)
    first = views.draw(50, 8, torch_generator("a", 0))
    again = views.draw(50, 8, torch_generator("a", 0))
    other = views.draw(50, 8, torch_generator("a", 1))
    assert torch.equal(first.boxes, again.boxes)
    assert torch.equal(first.flip, again.flip)
    assert not torch.equal(first.boxes, other.boxes)
    assert torch.equal(before, torch.get_rng_state())


def test_the_generator_advances_alike_whatever_is_searched() -> None:
    after = []
    for min_crop in (0.08, 0.9):
        generator = torch_generator("advance")
        RandomViews(8, min_crop, flip=min_crop / 2).draw(10, (8, 30), generator)
        after.append(float(torch.rand(1, generator=generator)))
    assert after[0] == after[1]


def test_ranks_that_slice_the_global_batch_make_its_views() -> None:
    images = _images(10, 3, 28, 28)
    views = RandomViews(32, 0.3)
    drawn = views.draw(10, 28, torch_generator("ranks"))
    assert len(drawn[:4]) == 4
    parts = [views.apply(images[rows], drawn[rows]) for rows in (slice(0, 4), slice(4, 10))]
    torch.testing.assert_close(torch.cat(parts), views.apply(images, drawn), rtol=0, atol=1e-6)


def test_a_full_crop_of_the_stored_size_is_the_image() -> None:
    images = _images(5, 3, 8, 8)
    views = RandomViews(8, 1.0, min_aspect=1.0, max_aspect=1.0, flip=0.0)
    made = views.apply(images, views.draw(5, 8, torch_generator("full")))
    torch.testing.assert_close(made, images / 255.0, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("height", "width", "size"), [(28, 28, 32), (8, 8, 8), (40, 30, 16), (1, 5, 4)])
def test_whole_images_equal_torchvision_s_resize(height: int, width: int, size: int) -> None:
    images = _images(7, 3, height, width)
    expected = vision.resize(images.float() / 255, [size, size], antialias=True)
    torch.testing.assert_close(whole_image(images, size), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("stored", "resized", "size"), [(96, 70, 64), (256, 256, 224), (224, 256, 224), (50, 32, 32), (9, 8, 7)]
)
def test_the_centre_of_whole_images_equals_torchvision_s_resize_and_crop(
    stored: int, resized: int, size: int
) -> None:
    images = _images(2, 3, stored, stored)
    expected = vision.center_crop(vision.resize(images.float() / 255, [resized], antialias=True), [size])
    for centre in (size / resized, size / (resized + 0.4), min(1.0, size / (resized - 0.4))):
        torch.testing.assert_close(whole_image(images, size, centre=centre), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("centre", [0.0, 1.01, float("nan")])
def test_the_centre_is_a_share(centre: float) -> None:
    with pytest.raises(ValueError, match=r"centre must be above 0 and at most 1"):
        whole_image(_images(1, 3, 8, 8), 8, centre=centre)


def test_no_images_give_no_views() -> None:
    views = RandomViews(8, 0.5)
    empty = _images(2, 3, 8, 8)[:0]
    assert views.apply(empty, views.draw(0, 8, torch_generator("none"))).shape == (0, 3, 8, 8)
    assert whole_image(empty, 4).shape == (0, 3, 4, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"size": 0},
        {"min_crop": 0.0},
        {"min_crop": 0.9, "max_crop": 0.5},
        {"max_crop": 1.1},
        {"min_crop": float("nan")},
        {"min_aspect": 2.0},
        {"min_aspect": 0.0},
        {"max_aspect": float("inf")},
        {"flip": 1.5},
        {"flip": float("nan")},
    ],
)
def test_values_out_of_range_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong)).split("_")[-1]):
        RandomViews(**{"size": 8, "min_crop": 0.2, **wrong})


def test_images_that_do_not_fit_the_parameters_are_refused() -> None:
    views = RandomViews(8, 0.5)
    drawn = views.draw(2, 8, torch_generator("fit"))
    with pytest.raises(ValueError, match=r"for 2 images of \(8, 8\) pixels, got 3"):
        views.apply(_images(3, 1, 8, 8), drawn)
    with pytest.raises(ValueError, match=r"got 2 of \(9, 8\)"):
        views.apply(_images(2, 1, 9, 8), drawn)
    with pytest.raises(ValueError, match="images must be uint8"):
        views.apply(_images(2, 1, 8, 8).float(), drawn)
    with pytest.raises(ValueError, match="images must be uint8"):
        whole_image(_images(2, 1, 8, 8)[0], 8)
    with pytest.raises(ValueError, match="at least 1 pixel"):
        whole_image(_images(2, 1, 8, 8), 0)
    with pytest.raises(ValueError, match="count"):
        views.draw(-1, 8, torch_generator("fit"))
    with pytest.raises(ValueError, match="positive"):
        views.draw(1, (0, 8), torch_generator("fit"))
