"""The operators and functions of checks: what each takes, gives and computes. `docs/claims.md` defines them.

Shapes: B resamples, X places of a curve. A number is a scalar or `(B,)`, a truth `(B,)`, a point `(B, 2)`.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from contrasweep.data.conditioning import crossing

ALIKE = 0.1
"""`similar(a, b)`: a and b differ by at most this share of the larger one. The bound is ours."""

FLAT = 0.05
"""A flat curve varies by at most this share of its mean. The bound is ours."""

STRAIGHT = 0.95
"""The best line explains at least this share of the variance of a linear curve; the bound is ours."""

ENDS = ("smallest", "largest")

Kind = Literal["truth", "number", "group", "key", "point"]
"""What an expression gives; a group is the cells of several rows, a key names a row."""

MORE = "..."
"""Behind the last argument of a function: there may be more of its kind."""


class NotMeasured(LookupError):
    """A check needs cells, a curve, or a place on a curve, that were not measured; the message names them."""


@dataclass(frozen=True)
class Function:
    """What a function or an operator gives, what its arguments are, and how it is computed from them."""

    gives: Kind
    takes: tuple[str, ...]
    compute: Callable[..., Any]


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

    def at(self, place: float | str) -> "Curve":
        """Return the curve at one place alone: `smallest`, `largest`, a word or a number.

        Raises:
            NotMeasured: the curve has no such place.
        """
        if place not in self.xs and place not in ENDS:
            raise NotMeasured(f"place {place} of a curve over {', '.join(map(str, self.xs))}")
        ends = {"smallest": 0, "largest": len(self.xs) - 1}
        index = ends[place] if isinstance(place, str) and place in ends else self.xs.index(place)
        return Curve(self.xs[index : index + 1], self.heights[:, [index]], keys=self.keys[index : index + 1])


def truths(value: Any) -> NDArray[np.bool_]:
    """Return a truth, or one for each resample, as `(B,)`."""
    return np.atleast_1d(np.asarray(value)).astype(bool)


def all_of(*parts: Any) -> NDArray[np.bool_]:
    """Return whether all truths hold, `(B,)`."""
    joined: NDArray[np.bool_] = np.logical_and.reduce(np.broadcast_arrays(*map(truths, parts)))
    return joined


def equal(left: Any, right: Any, tolerance: float) -> Any:
    """Return whether two numbers, keys or points are equal; numbers may differ by `tolerance`."""
    if np.asarray(left).dtype.kind == "U":
        return left == right
    if np.ndim(left) == 2 or np.ndim(right) == 2:
        return np.isclose(left, right).all(axis=1)
    return np.abs(left - right) <= tolerance


def _row_of(place: Callable[..., Any]) -> Callable[[list[str], list[Any]], Any]:
    """Return a function that gives the key of the row at `place` (np.argmax or np.argmin)."""
    return lambda keys, values: np.array(keys)[place(np.stack(np.broadcast_arrays(*values)), axis=0)]


def _ordered(compare: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *values: all_of(*(compare(*pair) for pair in pairwise(values)))


def _rising(heights: NDArray[Any]) -> Any:
    """Whether a curve never falls and ends higher than it starts."""
    return (np.diff(heights, axis=1) >= 0).all(axis=1) & (heights[:, -1] > heights[:, 0])


def _one_top(curve: Curve) -> Any:
    """Whether a curve has its top inside, never falls before it and never rises after it."""
    heights = curve.heights
    top = heights.argmax(axis=1)[:, None]
    steps, places = np.diff(heights, axis=1), np.arange(heights.shape[1] - 1)
    right = np.where(places < top, steps >= 0, steps <= 0).all(axis=1)
    return right & (top[:, 0] > 0) & (top[:, 0] < heights.shape[1] - 1)


def _flat(curve: Curve) -> Any:
    return np.ptp(curve.heights, axis=1) <= FLAT * np.abs(curve.heights.mean(axis=1))


def _polynomial(degree: int) -> Callable[[Curve], Any]:
    """Return whether the best polynomial of this degree explains enough of a curve's variance."""

    def explains(curve: Curve) -> Any:
        xs, heights = _numbers(curve), curve.heights
        fitted = np.polynomial.polynomial.polyfit(xs, heights.T, degree)
        rest = heights - np.polynomial.polynomial.polyval(xs, fitted)
        spread = heights - heights.mean(axis=1, keepdims=True)
        return 1 - (rest**2).sum(axis=1) / (spread**2).sum(axis=1) >= STRAIGHT

    return explains


def _place_of_top(curve: Curve) -> Any:
    if curve.ys is None:
        raise NotMeasured("argmax_xy takes a map over two axes")
    best = curve.heights.argmax(axis=1)
    return np.stack([_numbers(curve)[best], np.array(curve.ys)[best]], axis=1)


def _above(overs: Sequence[Curve], unders: Sequence[Curve]) -> NDArray[np.bool_]:
    pairs = [(over, under, set(over.xs) & set(under.xs)) for over in overs for under in unders]
    if not all(shared for *_, shared in pairs):
        raise NotMeasured("the curves have no place in common")
    return all_of(*(_height(a.at(x)) > _height(b.at(x)) for a, b, shared in pairs for x in shared))


def _crossing(rising: Curve, falling: Curve) -> NDArray[Any]:
    """Return where the first curve, rescaled to 0..1, first reaches the second; NaN where it does not."""
    xs = _numbers(rising).tolist()
    if min(xs) <= 0:
        raise NotMeasured("crossing_x interpolates over log x, and x is not above 0 everywhere")
    both = zip(rising.heights.tolist(), falling.heights.tolist(), strict=True)
    found = [crossing(xs, up, down) for up, down in both]
    return np.array([np.nan if one is None else one[0] for one in found])


def _numbers(curve: Curve) -> NDArray[Any]:
    if any(isinstance(x, str) for x in curve.xs):
        raise NotMeasured("a curve over words has no x")
    return np.array(curve.xs, dtype=float)


def _height(curve: Curve) -> NDArray[Any]:
    """Return the height `(B,)` of a curve that has one place."""
    return curve.heights[:, 0]


def _reduced(reduce: Callable[..., Any]) -> Callable[[Curve], Any]:
    return lambda curve: reduce(curve.heights, axis=1)


_TWO = ("number", "number")

OPERATORS: Mapping[str, Function] = {
    "+": Function("number", _TWO, operator.add),
    "-": Function("number", _TWO, operator.sub),
    "*": Function("number", _TWO, operator.mul),
    "/": Function("number", _TWO, operator.truediv),
    "<": Function("truth", _TWO, operator.lt),
    "<=": Function("truth", _TWO, operator.le),
    ">": Function("truth", _TWO, operator.gt),
    ">=": Function("truth", _TWO, operator.ge),
    "==": Function("truth", ("number, key or point", "the same", "tolerance"), equal),
    "and": Function("truth", ("truth", MORE), all_of),
    "or": Function("truth", ("truth", MORE), lambda *p: np.logical_or.reduce([*map(truths, p)])),
}

FUNCTIONS: Mapping[str, Function] = {
    "max": Function("number", ("values", MORE), lambda *v: np.maximum.reduce(np.broadcast_arrays(*v))),
    "min": Function("number", ("values", MORE), lambda *v: np.minimum.reduce(np.broadcast_arrays(*v))),
    "argmax": Function("key", ("group",), _row_of(np.argmax)),
    "argmin": Function("key", ("group",), _row_of(np.argmin)),
    "approx": Function("truth", ("number", *_TWO), lambda a, b, tolerance: np.abs(a - b) <= tolerance),
    "similar": Function("truth", _TWO, lambda a, b: np.abs(a - b) <= ALIKE * np.maximum(abs(a), abs(b))),
    "order_asc": Function("truth", ("values", MORE), _ordered(operator.lt)),
    "order_desc": Function("truth", ("values", MORE), _ordered(operator.gt)),
    "abs": Function("number", ("number",), np.abs),
}
"""Functions of cells; `values` are numbers or groups. A group is computed from its keys and its values."""

CURVE_FUNCTIONS: Mapping[str, Function] = {
    "at": Function("number", ("curve", "place"), _height),
    "max_at": Function(
        "number", ("place", "curves?"), lambda curves: np.max([*map(_height, curves)], axis=0)
    ),
    "above": Function("truth", ("curves", "curves"), _above),
    "increasing": Function("truth", ("curve",), lambda curve: _rising(curve.heights)),
    "decreasing": Function("truth", ("curve",), lambda curve: _rising(-curve.heights)),
    "rises_then_falls": Function("truth", ("curve",), _one_top),
    "flat": Function("truth", ("curve",), _flat),
    "linear_in_x": Function("truth", ("curve",), _polynomial(1)),
    "quadratic_in_x": Function("truth", ("curve",), _polynomial(2)),
    "argmax_x": Function("number", ("curve",), lambda curve: _numbers(curve)[curve.heights.argmax(axis=1)]),
    "argmax_xy": Function("point", ("curve",), _place_of_top),
    "crossing_x": Function("number", ("curve", "curve"), _crossing),
    "highest": Function("number", ("curve",), _reduced(np.max)),
    "lowest": Function("number", ("curve",), _reduced(np.min)),
    "mean": Function("number", ("curve",), _reduced(np.mean)),
    "std": Function("number", ("curve",), _reduced(np.std)),
}
"""Functions of curves; `curves` are one name or a list of names, an argument with `?` may be left out.

A place is not passed on: the curves are cut to it before.
"""
