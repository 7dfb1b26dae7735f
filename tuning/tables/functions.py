"""The operators and functions of checks: what each takes, gives and computes. `docs/checks.md` defines them.

A function that gives a truth returns the `Statement` of its comparisons, one that gives a number a `Number`.
Shapes: B samples of the runs, X places of a curve.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any, Literal

import numpy as np

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.tables.statements import (
    Comparison,
    Extremum,
    Number,
    Quantity,
    Statement,
    absolute,
    alike,
    arithmetic,
    best,
    compare_sides,
    constant,
    either,
    every,
    number_text,
    reduced,
)

ALIKE = 0.1
"""`similar(a, b)`: a and b differ by at most this share of the larger one. The bound is ours."""

FLAT = 0.05
"""A flat curve varies by at most this share of its mean. The bound is ours."""

STRAIGHT = 0.95
"""The best line explains at least this share of the variance of a linear curve; the bound is ours."""

ENDS = ("smallest", "largest")

OF_MAPS = ("argmax_xy", "flat", "highest", "lowest", "mean", "std")
"""The functions of curves that also read a map over two axes; the others go along a single x."""

Kind = Literal["truth", "number", "group", "key", "point"]
"""What an expression gives; a group is the cells of several rows, a key names a row."""

MORE = "..."
"""Behind the last argument of a function: there may be more of its kind."""


class NotMeasured(LookupError):
    """A check needs cells, a curve, or a place on a curve, that were not measured; the message names them."""


@dataclass(frozen=True)
class Function:
    """What a function or an operator gives, what its arguments are, and how it is computed from them.

    `compute` is None for the functions that only stand beside `==`.
    """

    gives: Kind
    takes: tuple[str, ...]
    compute: Callable[..., Any] | None


@dataclass(frozen=True)
class Curve:
    """A figure's curve, or a map over two axes.

    Attributes:
        name: the curve's name.
        xs: the places: numbers in rising order, or words.
        heights: `(B, X)`.
        ys: the second coordinate of each place of a map; None for a curve.
        keys: the (row, column) of the cell at each place.
        missing: the (row, column) of the planned places that were not measured.
        margin: the smallest difference of heights that counts.
    """

    name: str
    xs: tuple[float | str, ...]
    heights: Floats
    ys: tuple[float, ...] | None = None
    keys: tuple[tuple[str, str], ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    margin: float | None = None

    @property
    def places(self) -> list[Quantity]:
        """The height at each place as a number."""
        names = [place_text(x) for x in self.xs]
        if self.ys is not None:
            names = [f"({x}, {place_text(y)})" for x, y in zip(names, self.ys, strict=True)]
        return [
            Quantity(f"{self.name} at {name}", self.heights[:, index], margin=self.margin)
            for index, name in enumerate(names)
        ]

    def at(self, place: float | str) -> "Curve":
        """Return the curve at one place alone: `smallest`, `largest`, a word or a number.

        Raises:
            NotMeasured: the curve has no such place.
        """
        if place not in self.xs and place not in ENDS:
            known = ", ".join(map(place_text, self.xs))
            raise NotMeasured(f"place {place_text(place)} of a curve over {known}")
        ends = {"smallest": 0, "largest": len(self.xs) - 1}
        index = ends[place] if isinstance(place, str) and place in ends else self.xs.index(place)
        found = slice(index, index + 1)
        return replace(
            self, xs=self.xs[found], heights=self.heights[:, found], ys=None, keys=self.keys[found]
        )


def place_text(place: float | str) -> str:
    """Return an x, or a y, as a reader writes it."""
    return place if isinstance(place, str) else number_text(place)


def _approx(left: Number, right: Number, tolerance: Number) -> Statement:
    """State that two numbers differ by at most `tolerance`.

    Raises:
        InputError: the tolerance is a constant below 0, within which no numbers are.
    """
    bound = reduced(tolerance)
    if bound.constant and bound.values < 0:
        raise InputError(f"approx: given the tolerance {bound.text}; allowed: at least 0")
    return alike(left, right, tolerance)


def _similar(left: Number, right: Number) -> Statement:
    larger = reduced(Extremum(True, (absolute(left), absolute(right))))
    bound = arithmetic("*", constant(ALIKE), larger)
    return compare_sides("<=", absolute(arithmetic("-", left, right)), bound)


def _ordered(sign: str, *numbers: Number) -> Statement:
    return every(*(compare_sides(sign, *pair) for pair in pairwise(numbers)))


def _rising(sign: str, curve: Curve) -> Statement:
    """State that a curve never falls (`<`) or rises (`>`), and ends on the other side of its start."""
    heights = curve.places
    steps = [compare_sides(f"{sign}=", *pair) for pair in pairwise(heights)]
    return every(*steps, compare_sides(sign, heights[0], heights[-1]))


def _one_top(curve: Curve) -> Statement:
    """State that a curve has its top inside, never falls before it and never rises after it.

    Raises:
        InputError: the curve has no place between its ends.
    """
    if len(curve.xs) < 3:
        raise InputError(f"rises_then_falls needs 3 places: no place of {curve.name} is between its ends")
    return either(*(_top_at(curve.places, top) for top in range(1, len(curve.xs) - 1)))


def _top_at(heights: Sequence[Quantity], top: int) -> Statement:
    signs = ["<=" if place < top else ">=" for place in range(len(heights) - 1)]
    steps = [compare_sides(sign, *pair) for sign, pair in zip(signs, pairwise(heights), strict=True)]
    return every(
        *steps, compare_sides("<", heights[0], heights[top]), compare_sides("<", heights[-1], heights[top])
    )


def _flat(curve: Curve) -> Statement:
    mean = Quantity(f"mean({curve.name})", np.abs(curve.heights.mean(axis=1)))
    bound = arithmetic("*", constant(FLAT), mean)
    gaps = (absolute(arithmetic("-", *pair)) for pair in combinations(curve.places, 2))
    return every(*(compare_sides("<=", gap, bound) for gap in gaps))


def _polynomial(degree: int, curve: Curve) -> Statement:
    """State that the best polynomial of this degree explains enough of a curve's variance.

    Raises:
        InputError: the curve has so few places that the polynomial passes through all of them.
    """
    xs, heights = _numbers(curve), curve.heights
    if len(xs) < degree + 2:
        name, shape = {1: ("linear_in_x", "line"), 2: ("quadratic_in_x", "parabola")}[degree]
        raise InputError(
            f"{name} needs {degree + 2} places: a {shape} passes through the {len(xs)} of {curve.name}"
        )
    fitted = np.polynomial.polynomial.polyfit(xs, heights.T, degree)
    rest = heights - np.polynomial.polynomial.polyval(xs, fitted)
    spread = heights - heights.mean(axis=1, keepdims=True)
    # A flat curve has no variance to explain.
    with np.errstate(invalid="ignore", divide="ignore"):
        explained = 1 - (rest**2).sum(axis=1) / (spread**2).sum(axis=1)
    kind = {1: "line", 2: "parabola"}[degree]
    text = f"a {kind} explains {STRAIGHT:.0%} of the variance of {curve.name}"
    return Comparison(text, explained - STRAIGHT, 1.0, strict=False)


def top_at(curve: Curve, x: float, y: float) -> Statement:
    """State that the highest place of a map is `(x, y)`.

    Raises:
        NotMeasured: the map has no such place.
        InputError: the curve is no map, or is one over words.
    """
    if curve.ys is None:
        raise InputError(f"argmax_xy takes a map over two axes; {curve.name} is a curve over one")
    places = list(zip(_numbers(curve).tolist(), curve.ys, strict=True))
    if (x, y) not in places:
        raise NotMeasured(f"place ({x:g}, {y:g}) of {curve.name}")
    heights = curve.places
    top = heights.pop(places.index((x, y)))
    return every(*(compare_sides(">", top, other) for other in heights))


def by_top(curve: Curve, statement: Callable[[float], Statement]) -> Statement:
    """State what is said about the x of a curve's top: some place is the top, and it is true of that x.

    The x itself jumps from place to place and may well be the same without each seed, so that it would have
    no spread where the heights have much. The heights are compared instead.

    Args:
        curve: the curve.
        statement: what is said, where the top is at this x.
    """
    names = [str(place) for place in range(len(curve.xs))]
    tops = (best(names, curve.places, name, largest=True) for name in names)
    xs = _numbers(curve).tolist()
    return either(*(every(top, statement(x)) for top, x in zip(tops, xs, strict=True)))


def _above(overs: Sequence[Curve], unders: Sequence[Curve]) -> Statement:
    return every(*(pair for over in overs for under in unders for pair in _higher(over, under)))


def _higher(over: Curve, under: Curve) -> Iterator[Statement]:
    shared = [x for x in over.xs if x in under.xs]
    if not shared:
        raise NotMeasured("the curves have no place in common")
    for x in shared:
        yield compare_sides(">", _height(over.at(x)), _height(under.at(x)))


def _crossing(rising: Curve, falling: Curve) -> Number:
    """Return where the first curve, rescaled to 0..1, first reaches the second; NaN where it does not."""
    # Imported here because `contrasweep.data` needs torch, which no other function does.
    from contrasweep.data.conditioning import crossing

    xs = _numbers(rising).tolist()
    if min(xs) <= 0:
        raise InputError(
            f"crossing_x interpolates over log x: {rising.name} has x = {min(xs):g}; allowed: above 0"
        )
    both = zip(rising.heights.tolist(), falling.heights.tolist(), strict=True)
    found = [crossing(xs, up, down) for up, down in both]
    values = np.array([np.nan if one is None else one[0] for one in found])
    return Quantity(f"the crossing of {rising.name} and {falling.name}", values)


def _numbers(curve: Curve) -> Floats:
    if any(isinstance(x, str) for x in curve.xs):
        words = ", ".join(map(str, curve.xs))
        raise InputError(f"{curve.name} is a curve over {words}; a function of x takes one over numbers")
    return np.array(curve.xs, dtype=float)


def _height(curve: Curve) -> Number:
    """Return the height of a curve that has one place."""
    return curve.places[0]


def _std(curve: Curve) -> Number:
    if len(curve.xs) < 2:
        raise InputError(f"std needs 2 places: the {len(curve.xs)} of {curve.name} has no deviation")
    return _over_places("std", np.std)(curve)


def _over_places(name: str, compute: Callable[..., Any]) -> Callable[[Curve], Number]:
    return lambda curve: Quantity(f"{name}({curve.name})", compute(curve.heights, axis=1))


_TWO = ("number", "number")


def _compared(sign: str) -> Function:
    return Function("truth", _TWO, partial(compare_sides, sign))


OPERATORS: Mapping[str, Function] = {
    **{sign: Function("number", _TWO, partial(arithmetic, sign)) for sign in "+-*/"},
    **{sign: _compared(sign) for sign in ("<", "<=", ">", ">=")},
    "==": Function("truth", ("number, key or point", "the same", "tolerance"), alike),
    "and": Function("truth", ("truth", MORE), every),
    "or": Function("truth", ("truth", MORE), either),
}

FUNCTIONS: Mapping[str, Function] = {
    "max": Function("number", ("values", MORE), lambda *numbers: Extremum(True, numbers)),
    "min": Function("number", ("values", MORE), lambda *numbers: Extremum(False, numbers)),
    "argmax": Function("key", ("group",), None),
    "argmin": Function("key", ("group",), None),
    "approx": Function("truth", ("number", *_TWO), _approx),
    "similar": Function("truth", _TWO, _similar),
    "order_asc": Function("truth", ("values", MORE), partial(_ordered, "<")),
    "order_desc": Function("truth", ("values", MORE), partial(_ordered, ">")),
    "abs": Function("number", ("number",), absolute),
}
"""Functions of cells; `values` are numbers or groups. `argmax` and `argmin` only stand beside `==`."""

CURVE_FUNCTIONS: Mapping[str, Function] = {
    "at": Function("number", ("curve", "place"), _height),
    "max_at": Function(
        "number", ("place", "curves?"), lambda curves: Extremum(True, tuple(map(_height, curves)))
    ),
    "above": Function("truth", ("curves", "curves"), _above),
    "increasing": Function("truth", ("curve",), partial(_rising, "<")),
    "decreasing": Function("truth", ("curve",), partial(_rising, ">")),
    "rises_then_falls": Function("truth", ("curve",), _one_top),
    "flat": Function("truth", ("curve",), _flat),
    "linear_in_x": Function("truth", ("curve",), partial(_polynomial, 1)),
    "quadratic_in_x": Function("truth", ("curve",), partial(_polynomial, 2)),
    "argmax_x": Function("number", ("curve",), None),
    "argmax_xy": Function("point", ("curve",), None),
    "crossing_x": Function("number", ("curve", "curve"), _crossing),
    "highest": Function("number", ("curve",), lambda curve: Extremum(True, tuple(curve.places))),
    "lowest": Function("number", ("curve",), lambda curve: Extremum(False, tuple(curve.places))),
    "mean": Function("number", ("curve",), _over_places("mean", np.mean)),
    "std": Function("number", ("curve",), _std),
}
"""Functions of curves; `curves` are one name or a list of names, an argument with `?` may be left out.

A place is not passed on: the curves are cut to it before. `argmax_xy` only stands beside `==`; `argmax_x` is
read by `by_top` with the comparison that it stands in.
"""
