"""What a check states, split into single comparisons, so that each can be judged on its own.

A comparison is a margin: the number that is positive where the comparison is true. `max` and `min` stay
unevaluated until they are compared: `a > max(b, c)` becomes `a > b` and `a > c`, `max(b, c) > a` becomes one
or the other. Shapes: B samples of the runs; values are scalars or `(B,)`, exact where they are `Fraction`s.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.statistics import Floats


@dataclass(frozen=True)
class Quantity:
    """A number, as text and as values.

    Attributes:
        text: how a reader writes it.
        values: the number on each sample: a scalar or `(B,)`.
        constant: whether it stands in the check as a number, so that nothing in it was measured.
        margin: the smallest difference that counts; None for a constant, and where none is declared.
    """

    text: str
    values: Floats | float
    constant: bool = False
    margin: float | None = None


@dataclass(frozen=True)
class Extremum:
    """The largest or the smallest of several numbers."""

    largest: bool
    options: tuple["Number", ...]


Number = Quantity | Extremum


@dataclass(frozen=True)
class Comparison:
    """A single comparison.

    Attributes:
        text: the comparison as a reader writes it.
        margin: positive where it is true, `(B,)` or a scalar.
        scale: the size of the numbers that are compared; a margin far below it is rounding.
        strict: whether it is false where the margin is 0.
        same_within: two measured numbers count as equal if they differ by at most this; None where the
            comparison has a bound of its own.
    """

    text: str
    margin: Floats | float
    scale: float
    strict: bool = True
    same_within: float | None = None


@dataclass(frozen=True)
class All:
    """All parts are true."""

    parts: tuple["Statement", ...]


@dataclass(frozen=True)
class Either:
    """At least one part is true."""

    parts: tuple["Statement", ...]


Statement = Comparison | All | Either

ALWAYS, NEVER = All(()), Either(())
"""What is true, and what is false, whatever the runs are."""

_COMPUTE: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


_COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {">": operator.gt, ">=": operator.ge}


def number_text(value: Any) -> str:
    """Return a number of a check as a reader writes it: 1 for 1.0, and 1234567 in full."""
    return f"{float(value):.10g}"


def constant(value: Any) -> Quantity:
    """Return a number that stands in a check."""
    return Quantity(number_text(value), value, constant=True)


def arithmetic(sign: str, left: Number, right: Number) -> Number:
    """Return `left sign right`; a constant factor or summand moves into the options of a `max` or `min`.

    Raises:
        InputError: it divides by a constant 0.
    """
    if isinstance(left, Extremum) and (sign in "+-" or _is_constant(right)):
        flips = sign in "*/" and _negative(right)
        return Extremum(left.largest != flips, tuple(arithmetic(sign, one, right) for one in left.options))
    if isinstance(right, Extremum) and (sign in "+-" or (sign == "*" and _is_constant(left))):
        flips = sign == "-" or (sign == "*" and _negative(left))
        return Extremum(right.largest != flips, tuple(arithmetic(sign, left, one) for one in right.options))
    one, other = reduced(left), reduced(right)
    if sign == "-" and _same(one, other):
        return constant(0)
    text = f"{_factor(one, sign)} {sign} {_factor(other, sign, last=True)}"
    if sign == "/" and other.constant and other.values == 0:
        raise InputError(f"{text} divides by 0")
    margin = _margin_of_sum(one, other) if sign in "+-" else None
    # A quotient by 0 has no value, and what has none is neither supported nor contradicted.
    with np.errstate(divide="ignore", invalid="ignore"):
        values = _COMPUTE[sign](one.values, other.values)
    return Quantity(text, values, one.constant and other.constant, margin)


def absolute(number: Number) -> Number:
    """Return the absolute value: the larger one of a number and its negative."""
    return Extremum(True, (number, arithmetic("-", constant(0), number)))


def reduced(number: Number) -> Quantity:
    """Return a number with its `max` and `min` evaluated."""
    if isinstance(number, Quantity):
        return number
    options = [reduced(option) for option in number.options]
    choose = np.maximum if number.largest else np.minimum
    values = choose.reduce(np.broadcast_arrays(*(option.values for option in options)))
    name = "max" if number.largest else "min"
    known = all(option.constant for option in options)
    return Quantity(f"{name}({', '.join(option.text for option in options)})", values, constant=known)


def compare_sides(sign: str, left: Number, right: Number) -> Statement:
    """Return the statement `left sign right` of `<`, `<=`, `>` or `>=`."""
    if sign.startswith("<"):
        return compare_sides(sign.replace("<", ">"), right, left)
    if isinstance(left, Extremum):
        parts = [compare_sides(sign, option, right) for option in left.options]
        return either(*parts) if left.largest else every(*parts)
    if isinstance(right, Extremum):
        parts = [compare_sides(sign, left, option) for option in right.options]
        return every(*parts) if right.largest else either(*parts)
    if left.constant and right.constant:
        return ALWAYS if _COMPARE[sign](left.values, right.values) else NEVER
    if _same(left, right):
        return ALWAYS if sign == ">=" else NEVER
    within = None
    if not left.constant and not right.constant:
        within = _margin_of_sum(left, right)
    scale = max(_size(left.values), _size(right.values))
    text, margin = f"{left.text} {sign} {right.text}", left.values - right.values
    return Comparison(text, margin, scale, strict=sign == ">", same_within=within)


def _size(values: Floats | float) -> float:
    """Return the largest absolute value that is finite, 0 if there is none."""
    sizes = np.abs(np.asarray(values, dtype=float))
    return float(sizes[np.isfinite(sizes)].max(initial=0.0))


def every(*parts: Statement) -> Statement:
    """Return the statement that all parts are true; what needs no runs to be true is left out.

    The parts of an `All` become parts of the result, so that brackets change no correction for their number.
    """
    inner = (part.parts if isinstance(part, All) else (part,) for part in parts)
    return NEVER if NEVER in parts else All(tuple(chain.from_iterable(inner)))


def either(*parts: Statement) -> Statement:
    """Return the statement that a part is true; what is false whatever the runs are is left out.

    The parts of an `Either` become parts of the result, as in `every`.
    """
    inner = (part.parts if isinstance(part, Either) else (part,) for part in parts)
    return ALWAYS if ALWAYS in parts else Either(tuple(chain.from_iterable(inner)))


def alike(left: Number, right: Number, tolerance: Number) -> Statement:
    """Return the statement that two numbers differ by at most `tolerance`."""
    return compare_sides("<=", absolute(arithmetic("-", left, right)), tolerance)


def best(keys: Sequence[str], numbers: Sequence[Number], named: str, *, largest: bool) -> Statement:
    """Return the statement that the number with key `named` is the first largest (or smallest) of all."""
    place = keys.index(named)
    own, parts = numbers[place], []
    for index, other in enumerate(numbers):
        if index != place:
            sign = "<" if index < place else "<="
            parts.append(compare_sides(sign, other, own) if largest else compare_sides(sign, own, other))
    return every(*parts)


def comparisons(statement: Statement) -> Iterator[Comparison]:
    """Yield the single comparisons of a statement."""
    if isinstance(statement, Comparison):
        yield statement
        return
    for part in statement.parts:
        yield from comparisons(part)


def truth(statement: Statement) -> NDArray[np.bool_]:
    """Return whether a statement is true on each sample, `(B,)`."""
    match statement:
        case Comparison():
            margin = np.atleast_1d(np.asarray(statement.margin))
            return np.asarray(margin > 0 if statement.strict else margin >= 0).astype(bool)
        case All():
            return _joined(np.logical_and, statement.parts)
        case Either():
            return _joined(np.logical_or, statement.parts)


def _joined(join: np.ufunc, parts: Sequence[Statement]) -> NDArray[np.bool_]:
    empty = np.array([join.identity], dtype=bool)
    found: NDArray[np.bool_] = join.reduce(np.broadcast_arrays(empty, *map(truth, parts)))
    return found


def _same(one: Quantity, other: Quantity) -> bool:
    """Return whether two numbers are one; keys may hold dots, so that the same text can name two cells."""
    return one.text == other.text and np.array_equal(one.values, other.values)


def _is_constant(number: Number) -> bool:
    return isinstance(number, Quantity) and number.constant


def _negative(number: Number) -> bool:
    return bool(reduced(number).values < 0)


def _factor(number: Quantity, sign: str, last: bool = False) -> str:
    """Return the text of an operand, in brackets where it is a sum that the operator would tear apart."""
    is_sum = " + " in number.text or " - " in number.text
    return f"({number.text})" if is_sum and (sign in "*/" or (sign == "-" and last)) else number.text


def _margin_of_sum(one: Quantity, other: Quantity) -> float | None:
    """Return the difference that counts in a sum of two numbers: theirs, if they share it."""
    if one.constant or other.constant:
        return other.margin if one.constant else one.margin
    return one.margin if one.margin == other.margin else None
