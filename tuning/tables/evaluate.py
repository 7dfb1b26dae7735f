"""Evaluate a check on numbers: on several samples of the runs at once, or once on exact printed figures.

Shapes: B samples. Means are floats; where all are `Fraction`s (B = 1), the arithmetic is exact.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.tables.checks import STAR, Call, Cells, Constant, CurveCall, Node, has_star, walk
from contrasweep.tuning.tables.functions import (
    CURVE_FUNCTIONS,
    ENDS,
    FUNCTIONS,
    OF_MAPS,
    OPERATORS,
    Curve,
    NotMeasured,
    by_top,
    top_at,
)
from contrasweep.tuning.tables.results import Key
from contrasweep.tuning.tables.statements import Quantity, Statement, best, constant, every, truth

ROUNDING = 1e-9
"""Numbers are called equal if they differ by at most this, where no smallest difference is declared."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of one table that a check can read.

    Attributes:
        rows, columns: all keys of the table, in its order.
        means: the means `(B,)`, by (row, column).
        stds: the sample standard deviations `(B,)`, by (row, column).
        curves: the curves by name.
        margins: the smallest difference that counts, by column; cells that are called equal differ by less.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    means: Mapping[Key, Floats]
    stds: Mapping[Key, Floats] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)
    margins: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class CheckOutcome:
    """The outcome of a check.

    Attributes:
        statement: what the check states, on each sample.
        left_out: the rows and columns that were left out.
        read: (table, (row, column)) of every cell that was read, cells of curves included.
    """

    statement: Statement
    left_out: tuple[str, ...]
    read: tuple[tuple[str, Key], ...]

    @property
    def true(self) -> NDArray[np.bool_]:
        """Whether the check is true on each sample, `(B,)`."""
        return truth(self.statement)


def evaluate(
    tree: Node, tables: Mapping[str, Numbers], own: str, columns: Sequence[str] | None = None
) -> CheckOutcome:
    """Return the outcome of a check of table `own`; `[:]` stands for each of `columns` (None: all).

    A group leaves out rows that have no value, as long as two remain (or it names one alone). `[:]` leaves
    out columns in which nothing was measured.

    Raises:
        NotMeasured: a cell, a group, a curve, or a place on it, was not measured.
        InputError: the check divides by a constant 0, has a tolerance below 0, or a function that cannot
            read its curve.
    """
    exact = all(values.dtype == object for n in tables.values() for values in n.means.values())
    # A number as it is written: 0.1 is a tenth, not the float next to it.
    reading = _Reading(tables, own, (lambda value: Fraction(str(value))) if exact else float)
    wanted: Sequence[str | None] = [None]
    if has_star(tree):
        named = tables[own].columns if columns is None else tuple(columns)
        measured = {column for _, column in tables[own].means}
        wanted = [column for column in named if column in measured]
        if not wanted:
            raise NotMeasured(f"columns {', '.join(named)}")
        reading.left_out.update({f"column {column}": None for column in named if column not in measured})
    parts = tuple(replace(reading, column=column).value(tree) for column in wanted)
    return CheckOutcome(
        every(*parts) if len(parts) > 1 else parts[0], tuple(reading.left_out), tuple(reading.read)
    )


@dataclass(frozen=True)
class _Reading:
    """Evaluates nodes; the column `[:]` stands for `column`."""

    tables: Mapping[str, Numbers]
    own: str
    number: Callable[[int | float], Any]
    column: str | None = None
    left_out: dict[str, None] = field(default_factory=dict)
    read: dict[tuple[str, Key], None] = field(default_factory=dict)

    def value(self, node: Node) -> Any:
        match node:
            case Constant(value=int(number) | float(number)):
                return constant(self.number(number))
            case Cells():
                numbers = self._group(node)
                return list(numbers.values()) if node.group else next(iter(numbers.values()))
            case CurveCall():
                return self._of_curves(node)
            case Call(name="==", parts=(Call(name="argmax" | "argmin") as call, Constant(value=str(key)))):
                return self._best(call, key)
            case Call(name="==", parts=(CurveCall(name="argmax_xy") as call, Constant(value=(x, y)))):
                return top_at(self._curve(call, call.curves[0][0]), x, y)
            case Call() if (top := _top_in(node)) is not None:
                curve = self._curve(top, top.curves[0][0])
                return by_top(curve, lambda x: self.value(_replaced(node, top, Constant(x))))
            case Call():
                return self._call(node)
            case _:
                raise AssertionError("the parser lets keys and points through only beside ==")

    def _group(self, node: Cells) -> dict[str, Quantity]:
        """Return the numbers in the group's column, by the rows that were measured."""
        table = self.own if node.table is None else node.table
        if table not in self.tables:
            raise NotMeasured(f"table {table}")
        numbers = self.tables[table]
        column = self.column if node.column == STAR else node.column
        assert column is not None, "evaluate sets the column that [:] stands for"
        values = numbers.stds if node.std else numbers.means
        wanted = node.rows_among(numbers.rows)
        there = [row for row in wanted if (row, column) in values]
        missing = [row for row in wanted if row not in there]
        where = f"in {column}" + (f" of {table}" if table != self.own else "")
        if not there or (missing and not node.group) or len(there) < min(2, len(wanted)):
            raise NotMeasured(f"{', '.join(missing)} {where}")
        self.left_out.update({f"{row} {where}": None for row in missing})
        self.read.update({(table, (row, column)): None for row in there})
        of = "" if table == self.own else f"{table}."
        kind, margin = (".std", None) if node.std else ("", numbers.margins.get(column))
        return {
            row: Quantity(f"{of}{row}.{column}{kind}", values[row, column], margin=margin) for row in there
        }

    def _call(self, node: Call) -> Any:
        given = [self.value(part) for part in node.parts]
        parts = [number for part in given for number in (part if isinstance(part, list) else [part])]
        if node.name == "==":
            margins = [one.margin for one in parts if isinstance(one, Quantity) and one.margin is not None]
            parts.append(constant(self.number(max(margins, default=ROUNDING))))
        compute = {**OPERATORS, **FUNCTIONS}[node.name].compute
        assert compute is not None, "argmax and argmin are read with their =="
        return compute(*parts)

    def _best(self, call: Call, key: str) -> Statement:
        """State which row is the best of a group; a row that was not run could never be."""
        (group,) = call.parts
        assert isinstance(group, Cells), "the parser lets only groups through"
        numbers = self._group(group)
        if key not in numbers:
            raise NotMeasured(f"{key} in {self.column if group.column == STAR else group.column}")
        return best(list(numbers), list(numbers.values()), key, largest=call.name == "argmax")

    def _of_curves(self, call: CurveCall) -> Any:
        """Return the value of a function of curves; `max_at` of a place alone reads all of them."""
        named = call.curves or [tuple(self.tables[self.own].curves)]
        if not all(named):
            raise NotMeasured("any curve")
        sides = [[self._curve(call, name) for name in side] for side in named]
        function = CURVE_FUNCTIONS[call.name]
        assert function.compute is not None, "argmax_xy is read with its =="
        kinds = [kind for kind in function.takes if kind != "place"]
        pairs = zip(kinds, sides, strict=True)
        return function.compute(*(side[0] if kind == "curve" else side for kind, side in pairs))

    def _curve(self, call: CurveCall, name: str) -> Curve:
        """Return a curve, cut to the place that a function reads of it.

        A gap could change the shape of a curve or its ends, but no other place.
        """
        curve, place = self.tables[self.own].curves.get(name), call.place
        if curve is None or not curve.xs:
            raise NotMeasured(f"curve {name}")
        if curve.missing and (place is None or place in ENDS):
            raise NotMeasured(f"curve {name} at {', '.join(' in '.join(key) for key in curve.missing)}")
        if curve.ys is not None and call.name not in OF_MAPS:
            raise InputError(f"{call.name} takes a curve over one axis; {name} is a map over two")
        found = curve if place is None else curve.at(place)
        self.read.update({(self.own, key): None for key in found.keys})
        return found


def _top_in(statement: Call) -> CurveCall | None:
    """Return an `argmax_x` in a single statement; None without one, and where statements are joined."""
    gives = {**OPERATORS, **FUNCTIONS}[statement.name].gives
    if gives != "truth" or statement.name in ("and", "or"):
        return None
    calls = (node for node in walk(statement) if isinstance(node, CurveCall))
    return next((call for call in calls if call.name == "argmax_x"), None)


def _replaced(node: Node, old: Node, new: Node) -> Node:
    """Return a tree with `new` wherever `old` stands."""
    if node == old:
        return new
    if isinstance(node, Call):
        return replace(node, parts=tuple(_replaced(part, old, new) for part in node.parts))
    return node
