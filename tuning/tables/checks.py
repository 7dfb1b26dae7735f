"""Checks of claims: a Python expression becomes a typed tree. `docs/checks.md` defines the language.

`row["fair-cclk"].acc > row["infonce"].acc` is parsed by Python's `ast`. A whitelist turns the parsed nodes
into the tree that `evaluate` runs; no part of a check is executed as Python.
"""

import ast
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NoReturn

from contrasweep.search_spaces.tables import Claim
from contrasweep.tuning.errors import InputError, unknown_name
from contrasweep.tuning.tables.functions import CURVE_FUNCTIONS, FUNCTIONS, MORE, OPERATORS, Kind

STAR = "*"
"""The column of a cell that is written `[:]`: the check must be true for each column."""


class ClaimError(InputError):
    """A check cannot be read: the message shows the position, what was given and what is allowed."""


@dataclass(frozen=True)
class Constant:
    """A number as it is written, the key of a row, or a place on a map over two axes."""

    value: int | float | str | tuple[float, float]


@dataclass(frozen=True)
class Cells:
    """One cell, or a group of cells in one column.

    Attributes:
        rows: keys; None stands for all rows except `but`.
        column: a key, or `*` for each column in turn.
        group: whether `rows[...]` was written; a group leaves out rows that were not run.
        table: the id of another table; None stands for the claim's own.
        std: whether the sample standard deviation is read in place of the mean.
    """

    rows: tuple[str, ...] | None
    column: str
    group: bool
    but: tuple[str, ...] = ()
    table: str | None = None
    std: bool = False

    def rows_among(self, every: Iterable[str]) -> Sequence[str]:
        """Return the keys of the rows that are meant, of a table with these rows."""
        return [row for row in every if row not in self.but] if self.rows is None else self.rows


@dataclass(frozen=True)
class Call:
    """A function, or an operator between its parts."""

    name: str
    parts: tuple["Node", ...]


@dataclass(frozen=True)
class CurveCall:
    """A function of a figure's curves: for each argument the names of its curves, and the place it reads."""

    name: str
    curves: tuple[tuple[str, ...], ...]
    place: float | str | None = None


Node = Constant | Cells | Call | CurveCall

_KINDS: Mapping[str, Kind] = {
    name: function.gives for name, function in {**OPERATORS, **FUNCTIONS, **CURVE_FUNCTIONS}.items()
}

_ACCEPTED: Mapping[str, tuple[Kind, ...]]
_ACCEPTED = {"number": ("number",), "values": ("number", "group"), "group": ("group",)}
"""The kinds that the arguments of a function of cells may have."""

EXAMPLE = 'row["a"].acc > row["b"].acc'
SELECTORS = ("row", "rows", "rows_except", "table")

_ARITHMETIC: Mapping[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARISONS: Mapping[type[ast.cmpop], str]
_COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "=="}


def parse_check(text: str, instead: Mapping[str, str] | None = None, example: str = EXAMPLE) -> Node:
    """Return the tree of a check.

    Args:
        text: the check.
        instead: by column of the claim's own table, the column to read in its place.
        example: a check of the claim's table, for messages.

    Raises:
        ClaimError: the text is no check.
    """
    source = text.strip().replace("\n", " ")
    try:
        return _Reader(source, instead or {}, example).of_kind(_parsed(source, example), "truth")
    except (RecursionError, MemoryError):
        raise ClaimError(f"check {source[:60]!r}...: it is nested too deeply") from None


def _parsed(source: str, example: str) -> ast.expr:
    try:
        return ast.parse(source, mode="eval").body
    except (SyntaxError, ValueError) as error:
        place = max((getattr(error, "offset", None) or 1) - 1, 0)
        why = getattr(error, "msg", error)
        raise ClaimError(
            f"check {source!r}: at {place}, {why}; a check is a Python expression such as {example}"
        ) from None


def walk(tree: Node) -> Iterator[Node]:
    """Yield a tree's nodes, itself first."""
    yield tree
    for part in getattr(tree, "parts", ()):
        yield from walk(part)


def has_star(tree: Node) -> bool:
    """Return whether a check has a `[:]`."""
    return any(isinstance(node, Cells) and node.column == STAR for node in walk(tree))


def columns_read(tree: Node, star: Sequence[str]) -> list[str]:
    """Return the columns of its own table that a check reads; `star` are those that `[:]` stands for."""
    cells = (node for node in walk(tree) if isinstance(node, Cells) and node.table is None)
    found = (name for node in cells for name in (star if node.column == STAR else (node.column,)))
    return list(dict.fromkeys(found))


def tables_read(claims: Iterable[Claim]) -> list[str]:
    """Return the ids of the other tables that claims refer to."""
    checks = [parse_check(claim.check) for claim in claims if claim.check is not None]
    nodes = (node for check in checks for node in walk(check))
    found = (node.table for node in nodes if isinstance(node, Cells) and node.table is not None)
    return list(dict.fromkeys(found))


def _kind(tree: Node) -> Kind:
    match tree:
        case Call() | CurveCall():
            return _KINDS[tree.name]
        case Cells():
            return "group" if tree.group else "number"
        case Constant(value=str()):
            return "key"
        case Constant(value=tuple()):
            return "point"
        case Constant():
            return "number"


@dataclass(frozen=True)
class _Reader:
    """Turns nodes of `ast` into a tree; `instead` maps columns of the own table to those to read."""

    source: str
    instead: Mapping[str, str]
    example: str

    def _refuse_word(self, node: ast.expr, word: str) -> NoReturn:
        raise ClaimError(
            f"{self._at(node)}: {word} names no cell; a check compares cells of the runs, "
            f"such as {self.example}"
        )

    def refuse(self, node: ast.expr, wanted: str) -> NoReturn:
        given = ast.get_source_segment(self.source, node)
        raise ClaimError(f"{self._at(node)}, {wanted} was expected, given {given}")

    def _refuse_name(self, node: ast.expr, what: str, name: str, allowed: Iterable[str]) -> NoReturn:
        raise ClaimError(f"{self._at(node)}: {unknown_name(what, name, allowed)}")

    def _at(self, node: ast.expr) -> str:
        # Python counts bytes; a reader counts letters.
        place = len(self.source.encode()[: node.col_offset].decode())
        return f"check {self.source!r}: at {place}"

    def of_kind(self, node: ast.expr, *kinds: Kind) -> Node:
        tree = self._read(node)
        if _kind(tree) not in kinds:
            words = {"truth": "a comparison", "group": 'a group of cells, rows["a", "b"].column'}
            self.refuse(node, " or ".join(words.get(kind, f"a {kind}") for kind in kinds))
        return tree

    def _read(self, node: ast.expr) -> Node:
        match node:
            case ast.BoolOp():
                parts = tuple(self.of_kind(part, "truth") for part in node.values)
                return Call("and" if isinstance(node.op, ast.And) else "or", parts)
            case ast.Compare():
                return self._comparison(node)
            case ast.BinOp() if type(node.op) in _ARITHMETIC:
                sides = (self.of_kind(node.left, "number"), self.of_kind(node.right, "number"))
                return Call(_ARITHMETIC[type(node.op)], sides)
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
                return Constant(self._number(node))
            case ast.UnaryOp(op=ast.USub()):
                return Call("-", (Constant(0), self.of_kind(node.operand, "number")))
            case ast.Constant(value=value):
                return Constant(value if isinstance(value, str) else self._number(node))
            case ast.Tuple(elts=[x, y]):
                return Constant((float(self._number(x)), float(self._number(y))))
            case ast.Call(func=ast.Name(id=name)) if not node.keywords:
                return self._call(node, name)
            case ast.Attribute() | ast.Subscript():
                return self._cells(node)
            case ast.Name(id=word):
                self._refuse_word(node, word)
            case _:
                allowed = "a cell, a number, a quoted key, a function or one of + - * / and or < <= > >= =="
                self.refuse(node, allowed)

    def _comparison(self, node: ast.Compare) -> Node:
        """Read `a < b <= c`: every comparison of neighbours holds."""
        for operator, right in zip(node.ops, node.comparators, strict=True):
            if type(operator) not in _COMPARISONS:
                self.refuse(right, f"one of {' '.join(_COMPARISONS.values())} before this")
        signs = tuple(_COMPARISONS[type(operator)] for operator in node.ops)
        first, *others = node.left, *node.comparators
        tree = self.of_kind(first, "number", "key", "point")
        if (kind := _kind(tree)) != "number" and signs != ("==",):
            self.refuse(node, f"a single == of a {kind}")
        sides = [tree, *(self.of_kind(other, kind) for other in others)]
        if kind != "number":
            sides.sort(key=lambda side: isinstance(side, Constant))
            if [isinstance(side, Constant) for side in sides] != [False, True]:
                self.refuse(node, f"a function that gives a {kind}, and a {kind} to compare it with,")
        pairs = tuple(Call(sign, pair) for sign, pair in zip(signs, pairwise(sides), strict=True))
        return pairs[0] if len(pairs) == 1 else Call("and", pairs)

    def _number(self, node: ast.expr) -> int | float:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self._number(operand)
            case ast.Constant(value=int(value) | float(value)) if not isinstance(
                value, bool
            ) and math.isfinite(value):
                return value
        self.refuse(node, "a number")

    def _call(self, node: ast.Call, name: str) -> Node:
        known = {**FUNCTIONS, **CURVE_FUNCTIONS}
        if name not in known:
            self._refuse_name(node, "function of a check", name, known)
        takes = known[name].takes
        least, most = sum(not one.endswith(("?", MORE)) for one in takes), len(takes)
        given = len(node.args)
        if given < least or (given > most and MORE not in takes):
            self.refuse(node, f"{name}({', '.join(takes)})")
        if name in FUNCTIONS:
            kinds = _ACCEPTED[takes[0]]
            return Call(name, tuple(self.of_kind(argument, *kinds) for argument in node.args))
        curves: list[tuple[str, ...]] = []
        place: float | str | None = None
        for argument, kind in zip(node.args, takes, strict=False):
            if kind == "place":
                place = self._place(argument)
            else:
                curves.append(self._curves(argument, several=kind.startswith("curves")))
        return CurveCall(name, tuple(curves), place)

    def _place(self, node: ast.expr) -> float | str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        return float(self._number(node))

    def _curves(self, node: ast.expr, *, several: bool) -> tuple[str, ...]:
        if several and isinstance(node, ast.List) and node.elts:
            return tuple(self._word(one, "the name of a curve") for one in node.elts)
        return (self._word(node, "the name of a curve"),)

    def _word(self, node: ast.expr, what: str) -> str:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return node.value
        self.refuse(node, f"{what} in quotes")

    def _cells(self, node: ast.expr) -> Cells:
        """Read `[table["ID"].]SELECTOR[KEYS].COLUMN[.std]`; `["COLUMN"]` and `[:]` are columns too."""
        steps: list[str | ast.expr] = []
        inner = node
        while isinstance(inner, ast.Attribute | ast.Subscript):
            steps.insert(0, inner.attr if isinstance(inner, ast.Attribute) else inner.slice)
            inner = inner.value
        steps.insert(0, inner.id if isinstance(inner, ast.Name) else inner)
        table = None
        match steps:
            case ["table", ast.expr() as key, *rest]:
                table, steps = self._word(key, "the id of a table"), rest
        std = len(steps) == 4 and steps[-1] == "std"
        match steps[:-1] if std else steps:
            case [str(selector), ast.expr() as keys, (str() | ast.expr()) as written] if (
                selector in SELECTORS[:3]
            ):
                rows = self._rows(keys, single=selector == "row", every=selector == "rows")
                column = self._column(written, table)
                but = (rows or ()) if selector == "rows_except" else ()
                return Cells(None if but else rows, column, selector != "row", but, table, std)
            case [str(name), *columns] if name not in SELECTORS and all(isinstance(c, str) for c in columns):
                self._refuse_word(node, name)
            case [str(name), *_] if name not in SELECTORS:
                self._refuse_name(node, "name", name, SELECTORS)
            case _:
                self.refuse(node, 'a cell such as row["key"].column')

    def _rows(self, node: ast.expr, *, single: bool, every: bool) -> tuple[str, ...] | None:
        if every and _is_all(node):
            return None
        if isinstance(node, ast.Tuple) and node.elts and not single:
            return tuple(self._word(one, "the key of a row") for one in node.elts)
        return (self._word(node, "the key of a row"),)

    def _column(self, written: str | ast.expr, table: str | None) -> str:
        if isinstance(written, ast.expr) and _is_all(written):
            return STAR
        column = written if isinstance(written, str) else self._word(written, "the key of a column")
        return self.instead.get(column, column) if table is None else column


def _is_all(node: ast.expr) -> bool:
    return isinstance(node, ast.Slice) and node.lower is None and node.upper is None and node.step is None
