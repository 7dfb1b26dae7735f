"""Draws for the colours of views: ranges, probabilities, orders, and their random streams."""

import math
from collections import Counter
from typing import Any

import pytest
import torch
from distances import largest_gap
from torchvision.transforms import ColorJitter

from contrasweep.data import RandomViews, ViewParameters, torch_generator
from contrasweep.data.boxes import TRIES, crop_boxes
from contrasweep.data.jitter import orders

COUNT = 6000


def _draw(count: int = COUNT, **settings: Any) -> ViewParameters:
    return RandomViews(32, 0.2, **settings).draw(count, 32, torch_generator("draws"))


@pytest.mark.parametrize("strength", [0.4, 1.5])
@pytest.mark.parametrize("column", range(4))
def test_factors_follow_torchvision_s_distribution(column: int, strength: float) -> None:
    names = ("brightness", "contrast", "saturation", "hue")
    strength = strength if column < 3 else strength / 3
    ours = _draw(3000, **{names[column]: strength}).factors
    jitter = ColorJitter(**{names[column]: strength})
    ranges = jitter.brightness, jitter.contrast, jitter.saturation, jitter.hue
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = [ColorJitter.get_params(*ranges)[1 + column] for _ in range(3000)]
    assert largest_gap(ours[:, column].double(), torch.tensor(theirs, dtype=torch.float64)) < math.sqrt(
        math.log(2 / 1e-6) / 3000
    )
    others = [other for other in range(4) if other != column]
    assert torch.equal(ours[:, others], torch.tensor([1.0, 1.0, 1.0, 0.0])[others].expand(3000, 3))


@pytest.mark.parametrize("probability", [0.0, 0.2, 0.8, 1.0])
@pytest.mark.parametrize(
    ("setting", "drawn"), [("jitter_probability", "jitter"), ("grayscale", "grayscale"), ("blur", "blur")]
)
def test_probabilities_are_kept(setting: str, drawn: str, probability: float) -> None:
    share = float(getattr(_draw(**{setting: probability}), drawn).double().mean())
    # Five standard deviations; exact at 0 and 1.
    assert abs(share - probability) <= 5 * math.sqrt(probability * (1 - probability) / COUNT)


def test_every_order_is_as_likely() -> None:
    orders = Counter(tuple(order) for order in _draw().order.tolist())
    assert all(sorted(order) == [0, 1, 2, 3] for order in orders)
    assert len(orders) == 24
    # Chi squared of 23 degrees of freedom exceeds 75 less than once in a million.
    assert sum((seen - COUNT / 24) ** 2 / (COUNT / 24) for seen in orders.values()) < 75


def test_the_blur_has_its_range() -> None:
    sigma = _draw(blur=0.5).sigma
    assert 0.1 <= float(sigma.min()) < 0.11
    assert 1.99 < float(sigma.max()) <= 2.0
    assert abs(float(sigma.mean()) - 1.05) < 0.05


def test_draws_are_independent_of_each_other() -> None:
    drawn = _draw(brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, grayscale=0.2, blur=0.5)
    columns = [
        drawn.flip,
        drawn.jitter,
        drawn.grayscale,
        drawn.blur,
        drawn.sigma,
        *drawn.factors.unbind(1),
        drawn.order[:, 0],
        drawn.boxes[:, 0],
    ]
    related = torch.corrcoef(torch.stack([column.double() for column in columns]))
    assert float((related - torch.eye(len(columns))).abs().max()) < 5 / math.sqrt(COUNT)


def test_colours_leave_crops_and_flips_alone_and_draws_repeat() -> None:
    plain, first, again = _draw(50), _draw(50, hue=0.1, blur=0.5), _draw(50, hue=0.1, blur=0.5)
    assert torch.equal(plain.boxes, first.boxes)
    assert torch.equal(plain.flip, first.flip)
    for name in ("jitter", "factors", "order", "grayscale", "blur", "sigma"):
        assert torch.equal(getattr(first, name), getattr(again, name))


def test_crops_and_flips_are_those_of_runs_without_colours() -> None:
    """Fixed numbers: results are comparable with earlier versions only if these crops stay."""
    drawn = _draw(4)
    assert drawn.boxes.tolist() == [[9, 8, 15, 19], [5, 3, 20, 21], [1, 1, 30, 25], [0, 12, 19, 18]]
    assert drawn.flip.tolist() == [True, False, False, True]


def test_the_generator_advances_alike_whatever_is_on() -> None:
    after = []
    for settings in (
        {},
        {"hue": 0.1, "brightness": 0.4, "grayscale": 0.2, "blur": 0.5},
        {"flip": 0.1},
        {"padding": 4},
    ):
        generator = torch_generator("advance")
        RandomViews(32, 0.2, **settings).draw(10, 32, generator)
        after.append(float(torch.rand(1, generator=generator)))
    assert after[0] == after[1] == after[2]


@pytest.mark.parametrize("settings", [{"padding": 4}, {"min_crop": 1.0}])
def test_views_drawn_together_are_those_drawn_one_by_one(settings: dict[str, Any]) -> None:
    views = RandomViews(32, **{"min_crop": 0.2, "hue": 0.1, **settings})

    def generators() -> list[torch.Generator]:
        return [torch_generator("together", number) for number in range(3)]

    together = views.draw_all(70, (32, 24), generators())
    for number, generator in enumerate(generators()):
        alone, part = views.draw(70, (32, 24), generator), together[70 * number : 70 * (number + 1)]
        for name, value in vars(alone).items():
            assert name == "source_size" or torch.equal(value, getattr(part, name))


def test_a_box_is_that_of_the_first_try_that_fits() -> None:
    """Worked out one by one; of these boxes, some fit at the first try, some later, and some never."""
    source, area, aspect = (30, 64), (0.5, 1.0), (1.2, 1.5)
    chance = torch.rand((3, 2 * TRIES + 2, 80), dtype=torch.float64, generator=torch_generator("boxes"))

    def box(draws: list[float]) -> tuple[int, list[int]]:
        for number in range(TRIES):
            pixels = source[0] * source[1] * (area[0] + (area[1] - area[0]) * draws[number])
            ratio = aspect[0] * (aspect[1] / aspect[0]) ** draws[TRIES + number]
            height, width = round(math.sqrt(pixels / ratio)), round(math.sqrt(pixels * ratio))
            if height <= source[0] and width <= source[1]:
                top, left = draws[-2] * (source[0] - height + 1), draws[-1] * (source[1] - width + 1)
                return number, [int(top), int(left), height, width]
        return TRIES, [0, 9, 30, 45]

    tries, boxes = zip(*map(box, chance.transpose(1, 2).flatten(0, 1).tolist()), strict=True)
    assert {0, 1, 2, TRIES} <= set(tries)
    assert crop_boxes(chance, source, area, aspect).tolist() == list(boxes)


def test_orders_sort_four_draws_and_keep_equal_ones() -> None:
    draws = torch.cartesian_prod(*[torch.arange(4.0)] * 4)
    assert torch.equal(orders(draws.T.numpy()), draws.argsort(dim=1, stable=True))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"brightness": -0.1}, "brightness must be finite and not negative, got -0.1"),
        ({"contrast": float("inf")}, "contrast must be finite"),
        ({"saturation": float("nan")}, "saturation must be finite"),
        ({"hue": 0.6}, r"hue must be in 0\.\.0\.5, got 0\.6"),
        ({"hue": -0.1}, "hue must be in"),
        ({"jitter_probability": 1.1}, "jitter_probability must be a probability"),
        ({"grayscale": -0.1}, "grayscale must be a probability"),
        ({"blur": float("nan")}, "blur must be a probability"),
        ({"blur": 0.5, "size": 19}, "blur needs a size of 20 pixels or more"),
        ({"padding": -1}, r"padding must be in 0\.\.size - 1, 31 pixels, got -1"),
        ({"padding": 32}, "padding must be in"),
        ({"mean": (0.5,)}, "neither"),
        ({"std": (0.5,)}, "neither"),
        ({"mean": (0.5, 0.5), "std": (0.5,)}, "one number for each channel"),
        ({"mean": (0.5,), "std": (0.0,)}, "std must be above 0"),
        ({"mean": (float("nan"),), "std": (1.0,)}, "mean must be finite"),
    ],
)
def test_settings_out_of_range_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        RandomViews(**{"size": 32, "min_crop": 0.2, **wrong})
