"""Evaluate a check: on many resamples of the runs at once, or once on exact numbers.

Shapes: B resamples. Means are floats; where all are `Fraction`s (B = 1), the arithmetic is exact.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from contrasweep.tuning.tables.checks import STAR, Call, Cells, Constant, CurveCall, Node, walk
from contrasweep.tuning.tables.functions import (
    CURVE_FUNCTIONS,
    ENDS,
    FUNCTIONS,
    OPERATORS,
    Curve,
    NotMeasured,
    all_of,
)
from contrasweep.tuning.tables.results import Key

Values = NDArray[Any]


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
    """The outcome of a check.

    Attributes:
        true: whether the check is true on each resample, `(B,)`.
        left_out: the rows and columns that were left out.
        read: (table, (row, column)) of every cell that was read, cells of curves included.
    """

    true: NDArray[np.bool_]
    left_out: tuple[str, ...]
    read: tuple[tuple[str, Key], ...]


def evaluate(
    tree: Node, tables: Mapping[str, Numbers], own: str, columns: Sequence[str] | None = None
) -> Outcome:
    """Return the outcome of a check of table `own`; `[:]` stands for each of `columns` (None: all).

    A group leaves out rows that have no value, as long as two remain (or it names one alone). `[:]` leaves
    out columns in which nothing was measured.

    Raises:
        NotMeasured: a cell, a group, a curve, or a place on it, was not measured.
    """
    exact = all(values.dtype == object for n in tables.values() for values in n.means.values())
    # A number as it is written: 0.1 is a tenth, not the float next to it.
    reading = _Reading(tables, own, (lambda value: Fraction(str(value))) if exact else float)
    wanted: Sequence[str | None] = [None]
    if any(isinstance(node, Cells) and node.column == STAR for node in walk(tree)):
        named = tables[own].columns if columns is None else tuple(columns)
        measured = {column for _, column in tables[own].means}
        wanted = [column for column in named if column in measured]
        if not wanted:
            raise NotMeasured(f"columns {', '.join(named)}")
        reading.left_out.update({f"column {column}": None for column in named if column not in measured})
    true = all_of(*(replace(reading, column=column).value(tree) for column in wanted))
    return Outcome(true, tuple(reading.left_out), tuple(reading.read))


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
            case Constant(value=str(key)):
                return key
            case Constant(value=(x, y)):
                return np.array([[x, y]])
            case Constant(value=int(number) | float(number)):
                return self.number(number)
            case Cells():
                keys, values = self._group(node)
                return (keys, values) if node.group else values[0]
            case CurveCall():
                return self._of_curves(node)
            case Call():
                return self._call(node)

    def _group(self, node: Cells) -> tuple[list[str], list[Values]]:
        """Return the rows that were measured in the group's column, and their values."""
        table = self.own if node.table is None else node.table
        if table not in self.tables:
            raise NotMeasured(f"table {table}")
        numbers = self.tables[table]
        column = self.column if node.column == STAR else node.column
        assert column is not None, "evaluate sets the column that [:] stands for"
        values = numbers.stds if node.std else numbers.means
        wanted = [row for row in numbers.rows if row not in node.but] if node.rows is None else node.rows
        there = [row for row in wanted if (row, column) in values]
        missing = [row for row in wanted if row not in there]
        where = f"in {column}" + (f" of {table}" if table != self.own else "")
        if not there or (missing and not node.group) or len(there) < min(2, len(wanted)):
            raise NotMeasured(f"{', '.join(missing)} {where}")
        self.left_out.update({f"{row} {where}": None for row in missing})
        self.read.update({(table, (row, column)): None for row in there})
        return there, [values[row, column] for row in there]

    def _call(self, node: Call) -> Any:
        parts = [self.value(part) for part in node.parts]
        if node.name == "==":
            self._require_named_rows(node.parts)
            parts.append(self.tables[self.own].tolerance)
        function = {**OPERATORS, **FUNCTIONS}[node.name]
        if function.takes == ("group",):
            return function.compute(*parts[0])
        return function.compute(
            *(v for part in parts for v in (part[1] if isinstance(part, tuple) else [part]))
        )

    def _require_named_rows(self, nodes: Sequence[Node]) -> None:
        """Refuse `argmax(group) == "key"` where the row `key` was not run: it could never be the best."""
        named = [node.value for node in nodes if isinstance(node, Constant)]
        best = [node for node in nodes if isinstance(node, Call) and node.name in ("argmax", "argmin")]
        for group in (node.parts[0] for node in best):
            assert isinstance(group, Cells), "the parser lets only groups through"
            missing = [row for row in named if row not in self._group(group)[0]]
            if missing:
                raise NotMeasured(f"{missing[0]} in {self.column if group.column == STAR else group.column}")

    def _of_curves(self, call: CurveCall) -> Any:
        """Return the value of a function of curves; `max_at` of a place alone reads all of them."""
        named = call.curves or [tuple(self.tables[self.own].curves)]
        if not all(named):
            raise NotMeasured("any curve")
        sides = [[self._curve(name, call.place) for name in side] for side in named]
        self.read.update({(self.own, key): None for side in sides for curve in side for key in curve.keys})
        function = CURVE_FUNCTIONS[call.name]
        kinds = [kind for kind in function.takes if kind != "place"]
        pairs = zip(kinds, sides, strict=True)
        return function.compute(*(side[0] if kind == "curve" else side for kind, side in pairs))

    def _curve(self, name: str, place: float | str | None) -> Curve:
        """Return a curve, cut to `place`; a gap could change its shape or its ends, but no other place."""
        curve = self.tables[self.own].curves.get(name)
        if curve is None or not curve.xs:
            raise NotMeasured(f"curve {name}")
        if curve.missing and (place is None or place in ENDS):
            raise NotMeasured(f"curve {name} at {', '.join(' in '.join(key) for key in curve.missing)}")
        return curve if place is None else curve.at(place)
