"""The numbers along an axis."""

import math

import pytest

from contrasweep.tuning.reports.style import MOST_TICKS, linear_ticks, log_ticks, plain
from contrasweep.tuning.sensitivity.paper import TICKS


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.01, 0.3, [0.01, 0.02, 0.05, 0.1, 0.2]),
        (1.0, 150.0, [1, 3, 10, 30, 100]),
        (1.0, 1e5, [1, 10, 100, 1000, 1e4, 1e5]),
        (1e-8, 1e2, [1e-8, 1e-6, 1e-4, 1e-2, 1, 100]),
        (5.0, 5.0, [5.0]),
        (3.0, 4.0, [3.0, 4.0]),
    ],
)
def test_logarithmic_ticks(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high) == pytest.approx(ticks)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.01, 1.0, [0.01, 0.1, 1.0]),
        (0.0010000000000000002, 0.9999999999999999, [0.001, 0.01, 0.1, 1.0]),
        (1e-4, 1e3, [1e-4, 1e-2, 1.0, 1e2]),
        (0.02, 0.6, [0.03, 0.1, 0.3]),
        (0.05, 0.5, [0.05, 0.1, 0.2, 0.5]),
    ],
)
def test_a_small_figure_has_few_round_numbers(low: float, high: float, ticks: list[float]) -> None:
    assert log_ticks(low, high, TICKS) == ticks
    assert len(ticks) <= TICKS


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (0.08, 0.8, [0.2, 0.4, 0.6, 0.8]),
        (-3.0, 40.0, [0, 10, 20, 30, 40]),
        (2.0, 2.0, [2]),
    ],
)
def test_linear_ticks(low: float, high: float, ticks: list[float]) -> None:
    assert linear_ticks(low, high) == pytest.approx(ticks)


def test_there_are_never_many() -> None:
    for power in range(1, 40):
        high = 1.3**power
        for found in (log_ticks(1.0, high), linear_ticks(1.0, high)):
            assert len(found) <= MOST_TICKS
            assert all(1 <= tick <= high * (1 + 1e-3) for tick in found)
            assert not any(math.isnan(tick) for tick in found)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01, "0.01"),
        (1000.0, "1000"),
        (1e5, "10⁵"),
        (3e-4, "3·10⁻⁴"),
        (0.0, "0"),
        (-2e6, "-2·10⁶"),
        (7, "7"),
    ],
)
def test_plain_numbers(value: object, text: str) -> None:
    assert plain(value) == text
