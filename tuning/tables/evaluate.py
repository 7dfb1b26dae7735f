"""A check evaluated on numbers: once on the printed cells, or on many resamples of runs at a time.

Shapes: B resamples, G cells of a group, X places of a curve. Printed cells are `Fraction`s (B = 1), so their
arithmetic is exact; resampled means are floats.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.search_spaces.tables import Table
from contrasweep.tuning.tables.checks import (
    STAR,
    Arithmetic,
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
"""`a ~ b`: they differ by at most this share of the larger one. The bound is ours."""


BEST_ROW = ("argmax", "argmin")


class MissingCells(LookupError):
    """A check needs cells that are not there; `str` names them."""


@dataclass(frozen=True)
class Numbers:
    """What a check can read of one table.

    Attributes:
        rows, columns: the table's keys in its order, run or not.
        means: by (row, column), each `(B,)`.
        stds: the same of standard deviations.
        curves: by name.
        tolerance: cells are equal if they differ by no more: half a unit of the last printed digit.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    means: Mapping[Key, Values]
    stds: Mapping[Key, Values] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    tolerance: float = 0.0


@dataclass(frozen=True)
class Outcome:
    """Whether the check is true, `(B,)`, and what of the table it could not take into account."""

    true: NDArray[np.bool_]
    left_out: tuple[str, ...]


def printed_numbers(table: Table) -> Numbers:
    """Return the printed cells of a table, exactly."""
    means, stds = {}, {}
    for row in table.rows:
        for cell in row.cells:
            if cell.mean is not None:
                means[row.key, cell.column] = _exact(cell.mean)
            if cell.std is not None:
                stds[row.key, cell.column] = _exact(cell.std)
    return Numbers(tuple(r.key for r in table.rows), tuple(c.key for c in table.columns), means, stds)


def evaluate(
    tree: Node, tables: Mapping[str, Numbers], own: str, columns: Sequence[str] | None = None
) -> Outcome:
    """Return the outcome of a check for table `own` of `tables`; `*` is each of `columns` (None: all).

    A group leaves out rows that have no value, as long as two remain (or it names one alone); `*` leaves out
    columns in which nothing was measured.

    Raises:
        MissingCells: a cell, a group or a curve is not there.
    """
    exact = all(values.dtype == object for n in tables.values() for values in n.means.values())
    number: Callable[[str], Any] = Fraction if exact else float
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
    """Return (table, (row, column)) of every measured cell that a check reads; of its curves too."""
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
    """Evaluates nodes for one meaning of `*`."""

    tables: Mapping[str, Numbers]
    own: str
    number: Callable[[str], Any]
    column: str | None = None
    left_out: dict[str, None] = field(default_factory=dict)

    def value(self, node: Node) -> Any:
        if isinstance(node, Number):
            return self.number(node.text)
        if isinstance(node, Text):
            return node.value
        if isinstance(node, Point):
            return np.array([[float(node.x.text), float(node.y.text)]])
        if isinstance(node, Cells):
            return self._group(node)[1][0] if not node.group else self._group(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, CurveCall):
            return measure_curves(node, self.tables[self.own].curves)
        if isinstance(node, Arithmetic):
            return _arithmetic(node.operator, self.value(node.left), self.value(node.right))
        if isinstance(node, Comparison):
            return self._comparison(node)
        parts = [_boolean(self.value(part)) for part in node.parts]
        return (np.logical_and if node.operator == "and" else np.logical_or).reduce(
            np.broadcast_arrays(*parts)
        )

    def _group(self, node: Cells) -> tuple[list[str], list[Values]]:
        """Return the keys of the rows that have the cell, and their values."""
        table = self.own if node.table is None else node.table
        if table not in self.tables:
            raise MissingCells(f"table {table}")
        numbers = self.tables[table]
        column = self.column if node.column == STAR else node.column
        assert column is not None, "evaluate says what the star stands for"
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
            keys, values = self.value(node.arguments[0])
            stacked = np.stack(np.broadcast_arrays(*values))
            best = stacked.argmax(axis=0) if node.name == "argmax" else stacked.argmin(axis=0)
            return np.array(keys)[best]
        parts: list[Any] = []
        for argument in node.arguments:
            value = self.value(argument)
            parts += value[1] if isinstance(value, tuple) else [value]
        if node.name == "abs":
            return np.abs(parts[0])
        if node.name == "approx":
            return np.abs(parts[0] - parts[1]) <= parts[2]
        if node.name in ("max", "min"):
            return (np.maximum if node.name == "max" else np.minimum).reduce(np.broadcast_arrays(*parts))
        steps = [left < right if node.name == "order_asc" else left > right for left, right in _pairs(parts)]
        return np.logical_and.reduce(np.broadcast_arrays(*steps))

    def _comparison(self, node: Comparison) -> NDArray[np.bool_]:
        nodes = [node.first, *(right for _, right in node.rest)]
        sides = [self.value(one) for one in nodes]
        self._require_named_rows(nodes)
        tolerance = self.tables[self.own].tolerance
        signs = [sign for sign, _ in node.rest]
        found = [_compare(s, *pair, tolerance) for s, pair in zip(signs, _pairs(sides), strict=True)]
        joined: NDArray[np.bool_] = np.logical_and.reduce(np.broadcast_arrays(*found))
        return joined

    def _require_named_rows(self, nodes: Sequence[Node]) -> None:
        """Refuse `argmax(group) == "key"` where the row `key` was not run: it could not be the best one."""
        named = [node.value for node in nodes if isinstance(node, Text)]
        groups = [node.arguments[0] for node in nodes if isinstance(node, Call) and node.name in BEST_ROW]
        for group in groups:
            assert isinstance(group, Cells), "argmax and argmin take a group"
            there = self._group(group)[0]
            for row in named:
                if row not in there:
                    raise MissingCells(f"{row} in {self.column if group.column == STAR else group.column}")


def _rows(node: Cells, numbers: Numbers) -> tuple[str, ...]:
    if node.rows is not None:
        return node.rows
    return tuple(row for row in numbers.rows if row not in node.but)


def _arithmetic(operator: str, left: Any, right: Any) -> Any:
    if operator == "+":
        return left + right
    if operator == "-":
        return left - right
    return left * right if operator == "*" else left / right


def _compare(sign: str, left: Any, right: Any, tolerance: float) -> Any:
    if sign == "==":
        if isinstance(right, str):
            return left == right
        if np.ndim(left) == 2 or np.ndim(right) == 2:
            return np.isclose(left, right).all(axis=1)
        return np.abs(left - right) <= tolerance
    if sign == "~":
        return np.abs(left - right) <= ALIKE * np.maximum(np.abs(left), np.abs(right))
    if sign in ("<", ">"):
        return left < right if sign == "<" else left > right
    return left <= right if sign == "<=" else left >= right


def _pairs(values: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(pairwise(values))


def _boolean(value: Any) -> NDArray[np.bool_]:
    return np.atleast_1d(np.asarray(value)).astype(bool)


def _exact(value: float) -> Values:
    """Return a printed number as it is printed: 0.1 is a tenth, not the float next to it."""
    exact = np.empty(1, dtype=object)
    exact[0] = Fraction(str(value))
    return exact
