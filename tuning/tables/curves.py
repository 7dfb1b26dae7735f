"""The functions of curves that checks call. `docs/claims.md` defines each of them.

Shapes: B resamples, X places of a curve.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.data.conditioning import crossing
from contrasweep.tuning.tables.checks import CurveCall

FLAT = 0.05
"""A flat curve varies by at most this share of its mean. The bound is ours."""

STRAIGHT = 0.95
"""The best line (or parabola) explains at least this share of the variance of a linear (or quadratic) curve.

The bound is ours.
"""


ENDS = ("smallest", "largest")


class NoCurve(LookupError):
    """A check names a curve, or a place on a curve, that was not measured."""


@dataclass(frozen=True)
class Curve:
    """A figure's curve, or a map over two axes.

    Attributes:
        xs: the places: numbers in rising order, or words.
        heights: `(B, X)`.
        ys: the second coordinate of each place of a map; None for a curve.
        keys: the (row, column) of the cell at each place.
        missing: the (row, column) of the planned places that were not measured.
    """

    xs: tuple[float | str, ...]
    heights: NDArray[Any]
    ys: tuple[float, ...] | None = None
    keys: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()


def cells_read(call: CurveCall, curves: Mapping[str, Curve]) -> list[tuple[str, str]]:
    """Return (row, column) of the measured places that a curve function reads."""
    read = [curves[name] for name in _names(call, curves) if name in curves]
    if call.place is None:
        return [key for curve in read for key in curve.keys]
    indices = [(curve, _index(curve, call.place)) for curve in read]
    return [curve.keys[index] for curve, index in indices if index is not None]


def measure_curves(call: CurveCall, curves: Mapping[str, Curve]) -> Any:
    """Return the value of a curve function: `(B,)` numbers or truths; `argmax_xy` gives `(B, 2)`.

    Raises:
        NoCurve: a curve or a place was not measured. Only `at` and `max_at` of a number take a curve with
            gaps.
    """
    if call.place is not None:
        get = _whole if call.place in ENDS else _curve
        names = _names(call, curves)
        if not names:
            raise NoCurve("any curve")
        return np.max([_at(get(curves, name), call.place) for name in names], axis=0)
    sides = [[_whole(curves, name) for name in side] for side in call.curves]
    if call.name == "above":
        return np.logical_and.reduce([_above(over, under) for over in sides[0] for under in sides[1]])
    if call.name == "crossing_x":
        return _crossing(sides[0][0], sides[1][0])
    return _shape(call.name, sides[0][0])


def _names(call: CurveCall, curves: Mapping[str, Curve]) -> list[str]:
    """Return the curves that a function reads; `max_at` of a place alone reads all."""
    return [name for side in call.curves for name in side] or list(curves)


def _shape(name: str, curve: Curve) -> Any:
    heights = curve.heights
    if name == "increasing":
        return _rising(heights)
    if name == "decreasing":
        return _rising(-heights)
    if name == "rises_then_falls":
        return _one_top(heights)
    if name == "flat":
        return np.ptp(heights, axis=1) <= FLAT * np.abs(heights.mean(axis=1))
    if name in ("linear_in_x", "quadratic_in_x"):
        return _explained(_numbers(curve), heights, degree=1 if name == "linear_in_x" else 2) >= STRAIGHT
    if name == "argmax_x":
        return _numbers(curve)[heights.argmax(axis=1)]
    if name == "argmax_xy":
        if curve.ys is None:
            raise NoCurve("argmax_xy takes a map over two axes")
        best = heights.argmax(axis=1)
        return np.stack([_numbers(curve)[best], np.array(curve.ys)[best]], axis=1)
    reduced: dict[str, Callable[..., Any]] = {
        "highest": np.max,
        "lowest": np.min,
        "mean": np.mean,
        "std": np.std,
    }
    return reduced[name](heights, axis=1)


def _rising(heights: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a curve never falls and ends higher than it starts."""
    rising: NDArray[np.bool_] = (np.diff(heights, axis=1) >= 0).all(axis=1) & (heights[:, -1] > heights[:, 0])
    return rising


def _one_top(heights: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether a curve has its top inside, never falls before it and never rises after it."""
    top = heights.argmax(axis=1)[:, None]
    steps, places = np.diff(heights, axis=1), np.arange(heights.shape[1] - 1)
    right = np.where(places < top, steps >= 0, steps <= 0).all(axis=1)
    inside: NDArray[np.bool_] = right & (top[:, 0] > 0) & (top[:, 0] < heights.shape[1] - 1)
    return inside


def _explained(xs: NDArray[Any], heights: NDArray[Any], degree: int) -> NDArray[Any]:
    """Return the share of each curve's variance that the best polynomial of this degree explains."""
    fitted = np.polynomial.polynomial.polyfit(xs, heights.T, degree)
    rest = heights - np.polynomial.polynomial.polyval(xs, fitted)
    spread = heights - heights.mean(axis=1, keepdims=True)
    explained: NDArray[Any] = 1 - (rest**2).sum(axis=1) / (spread**2).sum(axis=1)
    return explained


def _above(over: Curve, under: Curve) -> NDArray[np.bool_]:
    shared = [x for x in over.xs if x in under.xs]
    if not shared:
        raise NoCurve("the curves have no place in common")
    higher: NDArray[np.bool_] = np.logical_and.reduce([_at(over, x) > _at(under, x) for x in shared])
    return higher


def _crossing(rising: Curve, falling: Curve) -> NDArray[Any]:
    """Return where the first curve, rescaled to 0..1, first reaches the second; NaN where it does not."""
    xs = _numbers(rising).tolist()
    if min(xs) <= 0:
        raise NoCurve("crossing_x interpolates over log x, and x is not above 0 everywhere")
    both = zip(rising.heights.tolist(), falling.heights.tolist(), strict=True)
    found = [crossing(xs, up, down) for up, down in both]
    return np.array([np.nan if one is None else one[0] for one in found])


def _curve(curves: Mapping[str, Curve], name: str) -> Curve:
    if name not in curves or not curves[name].xs:
        raise NoCurve(f"curve {name}")
    return curves[name]


def _whole(curves: Mapping[str, Curve], name: str) -> Curve:
    """Return a curve without gaps: a missing place could change its shape or its ends."""
    curve = _curve(curves, name)
    if curve.missing:
        raise NoCurve(f"curve {name} at {', '.join(' in '.join(key) for key in curve.missing)}")
    return curve


def _at(curve: Curve, place: float | str) -> NDArray[Any]:
    index = _index(curve, place)
    if index is None:
        raise NoCurve(f"place {place} of a curve over {', '.join(map(str, curve.xs))}")
    return curve.heights[:, index]


def _index(curve: Curve, place: float | str) -> int | None:
    """Return the index of a place: `smallest`, `largest`, a word or a number; None where there is none."""
    if place in ENDS:
        return (0 if place == "smallest" else len(curve.xs) - 1) if curve.xs else None
    return curve.xs.index(place) if place in curve.xs else None


def _numbers(curve: Curve) -> NDArray[Any]:
    if any(isinstance(x, str) for x in curve.xs):
        raise NoCurve("a curve over words has no x")
    return np.array(curve.xs, dtype=float)
