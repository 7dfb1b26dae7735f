"""Evaluate a check: on many resamples of the runs at once, or once on exact numbers.

Shapes: B resamples. Means are floats; where all are `Fraction`s (B = 1), the arithmetic is exact.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.tuning.tables.checks import (
    STAR,
    Call,
    Cells,
    Comparison,
    CurveCall,
    Node,
    Number,
    Point,
    Text,
    walk,
)
from contrasweep.tuning.tables.curves import Curve, cells_read, measure_curves
from contrasweep.tuning.tables.results import Key

Values = NDArray[Any]
ALIKE = 0.1
"""`similar(a, b)`: a and b differ by at most this share of the larger one. The bound is ours."""

BEST_ROW = ("argmax", "argmin")


class MissingCells(LookupError):
    """A check needs cells that were not measured; the message names them."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of one table that a check can read.

    Attributes:
        rows, columns: all keys of the table, in its order.
        means: the means `(B,)`, by (row, column).
        stds: the sample standard deviations `(B,)`, by (row, column).
        curves: the curves by name.
        tolerance: the largest difference between equal cells: half a unit of the last printed digit.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    means: Mapping[Key, Values]
    stds: Mapping[Key, Values] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    tolerance: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Whether the check is true on each resample, `(B,)`, and which rows and columns were left out."""

    true: NDArray[np.bool_]
    left_out: tuple[str, ...]


def evaluate(
    tree: Node, tables: Mapping[str, Numbers], own: str, columns: Sequence[str] | None = None
) -> Outcome:
    """Return the outcome of a check of table `own`; `[:]` stands for each of `columns` (None: all).

    A group leaves out rows that have no value, as long as two remain (or it names one alone). `[:]` leaves
    out columns in which nothing was measured.

    Raises:
        MissingCells: a cell or a group was not measured.
        NoCurve: a curve, or a place on it, was not measured.
    """
    exact = all(values.dtype == object for n in tables.values() for values in n.means.values())
    number: Callable[[int | float], Any] = _exact if exact else float
    reading = _Reading(tables, own, number)
    if not any(isinstance(node, Cells) and node.column == STAR for node in walk(tree)):
        return Outcome(_boolean(reading.value(tree)), tuple(reading.left_out))
    wanted = tables[own].columns if columns is None else tuple(columns)
    measured = {column for _, column in tables[own].means}
    there = [column for column in wanted if column in measured]
    if not there:
        raise MissingCells(f"columns {', '.join(wanted)}")
    parts = [_boolean(replace(reading, column=column).value(tree)) for column in there]
    left_out = [f"column {column}" for column in wanted if column not in there]
    return Outcome(np.logical_and.reduce(np.broadcast_arrays(*parts)), (*left_out, *reading.left_out))


def needed_cells(
    tree: Node, tables: Mapping[str, Numbers], own: str, columns: Sequence[str] | None = None
) -> list[tuple[str, Key]]:
    """Return (table, (row, column)) of every measured cell that a check reads, cells of curves included."""
    found: dict[tuple[str, Key], None] = {}
    for node in walk(tree):
        if isinstance(node, CurveCall):
            found |= {(own, key): None for key in cells_read(node, tables[own].curves)}
        if isinstance(node, Cells):
            table = own if node.table is None else node.table
            if table not in tables:
                continue
            chosen = tables[own].columns if columns is None else columns
            wanted = chosen if node.column == STAR else (node.column,)
            keys = ((row, column) for row in _rows(node, tables[table]) for column in wanted)
            found |= {(table, key): None for key in keys if key in tables[table].means}
    return list(found)


@dataclass(frozen=True)
class _Reading:
    """Evaluates nodes; the column `[:]` stands for `column`."""

    tables: Mapping[str, Numbers]
    own: str
    number: Callable[[int | float], Any]
    column: str | None = None
    left_out: dict[str, None] = field(default_factory=dict)

    def value(self, node: Node) -> Any:
        if isinstance(node, Number):
            return self.number(node.value)
        if isinstance(node, Text):
            return node.value
        if isinstance(node, Point):
            return np.array([[node.x, node.y]])
        if isinstance(node, Cells):
            return self._group(node)[1][0] if not node.group else self._group(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, CurveCall):
            return measure_curves(node, self.tables[self.own].curves)
        if isinstance(node, Comparison):
            return self._comparison(node)
        parts = [self.value(part) for part in node.parts]
        return _OPERATORS[node.operator](parts)

    def _group(self, node: Cells) -> tuple[list[str], list[Values]]:
        """Return the rows that were measured in the group's column, and their values."""
        table = self.own if node.table is None else node.table
        if table not in self.tables:
            raise MissingCells(f"table {table}")
        numbers = self.tables[table]
        column = self.column if node.column == STAR else node.column
        assert column is not None, "evaluate sets the column that [:] stands for"
        values = numbers.stds if node.std else numbers.means
        wanted = _rows(node, numbers)
        there = [row for row in wanted if (row, column) in values]
        missing = [row for row in wanted if row not in there]
        where = f"in {column}" + (f" of {table}" if table != self.own else "")
        if not there or (missing and not node.group) or len(there) < min(2, len(wanted)):
            raise MissingCells(f"{', '.join(missing)} {where}")
        self.left_out.update({f"{row} {where}": None for row in missing})
        return there, [values[row, column] for row in there]

    def _call(self, node: Call) -> Any:
        if node.name in BEST_ROW:
            keys, values = self.value(node.parts[0])
            stacked = np.stack(np.broadcast_arrays(*values))
            best = stacked.argmax(axis=0) if node.name == "argmax" else stacked.argmin(axis=0)
            return np.array(keys)[best]
        parts: list[Any] = []
        for argument in node.parts:
            value = self.value(argument)
            parts += value[1] if isinstance(value, tuple) else [value]
        if node.name == "abs":
            return np.abs(parts[0])
        if node.name == "approx":
            return np.abs(parts[0] - parts[1]) <= parts[2]
        if node.name == "similar":
            return np.abs(parts[0] - parts[1]) <= ALIKE * np.maximum(*map(np.abs, parts))
        if node.name in ("max", "min"):
            return (np.maximum if node.name == "max" else np.minimum).reduce(np.broadcast_arrays(*parts))
        steps = [
            left < right if node.name == "order_asc" else left > right for left, right in pairwise(parts)
        ]
        return np.logical_and.reduce(np.broadcast_arrays(*steps))

    def _comparison(self, node: Comparison) -> NDArray[np.bool_]:
        sides = [self.value(part) for part in node.parts]
        self._require_named_rows(node.parts)
        tolerance = self.tables[self.own].tolerance
        neighbours = zip(node.operators, pairwise(sides), strict=True)
        found = [_compare(sign, *pair, tolerance) for sign, pair in neighbours]
        joined: NDArray[np.bool_] = np.logical_and.reduce(np.broadcast_arrays(*found))
        return joined

    def _require_named_rows(self, nodes: Sequence[Node]) -> None:
        """Refuse `argmax(group) == "key"` where the row `key` was not run: it could never be the best."""
        named = [node.value for node in nodes if isinstance(node, Text)]
        groups = [node.parts[0] for node in nodes if isinstance(node, Call) and node.name in BEST_ROW]
        for group in groups:
            assert isinstance(group, Cells), "the parser lets only groups through"
            there = self._group(group)[0]
            for row in named:
                if row not in there:
                    raise MissingCells(f"{row} in {self.column if group.column == STAR else group.column}")


def _rows(node: Cells, numbers: Numbers) -> tuple[str, ...]:
    if node.rows is not None:
        return node.rows
    return tuple(row for row in numbers.rows if row not in node.but)


_ORDERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _compare(sign: str, left: Any, right: Any, tolerance: float) -> Any:
    if sign == "==":
        if np.asarray(left).dtype.kind == "U":
            return left == right
        if np.ndim(left) == 2 or np.ndim(right) == 2:
            return np.isclose(left, right).all(axis=1)
        return np.abs(left - right) <= tolerance
    return _ORDERS[sign](left, right)


def _boolean(value: Any) -> NDArray[np.bool_]:
    return np.atleast_1d(np.asarray(value)).astype(bool)


def _exact(value: float) -> Fraction:
    """Return a number as it is written: 0.1 is a tenth, not the float next to it."""
    return Fraction(str(value))


_OPERATORS: Mapping[str, Callable[[list[Any]], Any]] = {
    "+": lambda sides: sides[0] + sides[1],
    "-": lambda sides: sides[0] - sides[1],
    "*": lambda sides: sides[0] * sides[1],
    "/": lambda sides: sides[0] / sides[1],
    "and": lambda parts: np.logical_and.reduce(np.broadcast_arrays(*map(_boolean, parts))),
    "or": lambda parts: np.logical_or.reduce(np.broadcast_arrays(*map(_boolean, parts))),
}
