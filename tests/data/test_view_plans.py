"""The plan for an accelerator makes the views that a CPU makes; here its tensors stay on the CPU."""

from typing import Any

import pytest
import torch
from torch import Tensor

from contrasweep.data import RandomViews, torch_generator
from contrasweep.data.jitter import StagedJitter
from contrasweep.data.view_plan import ViewParameters, ViewPlan

ACCELERATOR = torch.device("cuda")
STRONG: dict[str, Any] = {"brightness": 0.8, "contrast": 0.8, "saturation": 0.8, "hue": 0.5}
JITTERS: dict[str, dict[str, Any]] = {
    "all": STRONG,
    "all of every view": {**STRONG, "jitter_probability": 1.0},
    "none chosen": {**STRONG, "jitter_probability": 0.0},
    "no hue": {**STRONG, "hue": 0.0},
    "hue": {"hue": 0.5},
    "brightness": {"brightness": 0.8},
    "contrast and hue": {"contrast": 0.8, "hue": 0.3},
    "off": {},
}


def _images(count: int, channels: int) -> Tensor:
    shape = (count, channels, 26, 22)
    images = torch.randint(0, 256, shape, dtype=torch.uint8, generator=torch_generator("plans", *shape))
    # Colours without a hue, and one that fills the image.
    images[: count // 4] = images[: count // 4, :1]
    images[count // 4 : count // 3] = 0
    return images


def _drawn(views: RandomViews, count: int, numbers: int = 1) -> ViewParameters:
    return views.draw_all(count, (26, 22), [torch_generator("plans", number) for number in range(numbers)])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("jitter", JITTERS)
def test_both_plans_make_the_same_views(jitter: str, channels: int) -> None:
    views = RandomViews(24, 0.3, **JITTERS[jitter], grayscale=0.3, blur=0.5, padding=3)
    images = _images(60, channels)
    drawn = _drawn(views, 60, 3)
    expected = torch.cat([views.apply(images, drawn[start : start + 60]) for start in (0, 60, 120)])
    plan = views.plan(drawn, channels, ACCELERATOR, first=[0, 0, 0])
    assert len(plan.parts) == 1
    assert isinstance(plan.parts[0].colours, StagedJitter) == (jitter not in _without_effect(channels))
    torch.testing.assert_close(views.make(images, plan), expected, rtol=0, atol=3e-6)


def _without_effect(channels: int) -> tuple[str, ...]:
    return ("off",) if channels == 3 else ("off", "hue")


@pytest.mark.parametrize("limit", [1, 3 * 26 * 26 * 7, 2**26])
def test_an_accelerator_takes_equal_parts_that_fit(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    views, images = RandomViews(24, 0.3, **STRONG), _images(10, 3)
    drawn = _drawn(views, 5, 2)
    # Each view shows other images.
    expected = views.apply(images, drawn)
    monkeypatch.setattr("contrasweep.data.resample._FLOATS_AT_ONCE", limit)
    plan = views.plan(drawn, 3, ACCELERATOR, first=[0, 5])
    assert [len(part.axes[0, 0]) for part in plan.parts] == {1: [1] * 10, 2**26: [10]}.get(limit, [5, 5])
    torch.testing.assert_close(views.make(images, plan), expected, rtol=0, atol=3e-6)


def test_few_views_and_none() -> None:
    views = RandomViews(24, 0.3, **STRONG, grayscale=0.5, blur=0.5, mean=(0.5,) * 3, std=(1.0,) * 3)
    for count in (0, 1, 2):
        images = _images(2, 3)[:count]
        drawn = _drawn(views, count)
        made = views.make(images, views.plan(drawn, 3, ACCELERATOR))
        torch.testing.assert_close(made, views.apply(images, drawn), rtol=0, atol=3e-6)
        assert made.shape == (count, 3, 24, 24)


def test_a_plan_for_other_images_is_refused() -> None:
    views = RandomViews(8, 0.5)
    plan: ViewPlan = views.plan(_drawn(views, 2), 3, torch.device("cpu"))
    with pytest.raises(ValueError, match=r"the plan is for images \(3, 26, 22\), got \(1, 26, 22\)"):
        views.make(_images(2, 1), plan)
