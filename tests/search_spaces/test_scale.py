"""The unit scale of a range equals a calculation by hand, and search, analyses and figures share it."""

import math

import numpy as np
import pytest
from optuna.distributions import FloatDistribution, IntDistribution

from contrasweep.search_spaces import Range, Scale, Space
from contrasweep.tuning.search.axes import axes_of
from contrasweep.tuning.search.sampler import scale_of


@pytest.mark.parametrize(
    ("scale", "value", "unit"),
    [
        (Scale(2.0, 6.0), 3.0, 0.25),
        (Scale(1.0, 1e4, is_log=True), 100.0, 0.5),
        # From 1 to 4, every whole number has a quarter of the scale; 1 lies in the middle of the first.
        (Scale(1, 4, is_integer=True), 1, 1 / 8),
        (Scale(1, 4, is_integer=True), 4, 7 / 8),
        # From 0.5 to 8 there are four doublings; 1 and 4 lie after one and after three of them.
        (Scale(1, 7.5, is_log=True, is_integer=True), 1, 1 / 4),
        (Scale(1, 7.5, is_log=True, is_integer=True), 4, 3 / 4),
    ],
)
def test_units_by_hand(scale: Scale, value: float, unit: float) -> None:
    assert scale.unit(value) == pytest.approx(unit)
    assert scale.value(unit) == pytest.approx(value)


def test_beyond_the_ends_is_the_nearest_end() -> None:
    assert Scale(2.0, 6.0).value(1.5) == 6.0
    assert Scale(1, 4, is_integer=True).value(0.0) == 1
    assert Scale(1.0, 10.0, is_log=True).unit(0.0) == -math.inf
    assert math.isnan(Scale(1.0, 10.0, is_log=True).unit(math.nan))


@pytest.mark.parametrize("form", ["uniform", "log", "int", "log_int"])
def test_search_and_analysis_see_one_scale(form: str) -> None:
    whole = "int" in form
    space = Space.parse({"x": {form: [1, 20] if whole else [1.0, 20.0], "default": 3 if whole else 3.0}})
    (parameter,), (axis,) = space.searched, axes_of(space)
    assert isinstance(parameter, Range)
    kind = IntDistribution if whole else FloatDistribution
    searched = kind(1, 20, log=parameter.is_log)  # type: ignore[operator]
    for value in (1, 5, 20):
        unit = parameter.scale.unit(value)
        assert scale_of(searched).unit(value) == unit
        assert axis.to_unit([value]) == np.array([unit])
        assert scale_of(searched).value(unit) == pytest.approx(value)
        assert type(scale_of(searched).value(unit)) is type(axis.value(unit)) is (int if whole else float)
