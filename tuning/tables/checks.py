"""The language of the checks: text to a tree. `docs/claims.md` defines it, `evaluate` runs it.

A check reads cells, `row[herocon-u].scene_f1`, groups of them, `rows[* except ce].rho99`, and the curves of
figures, `increasing(I(Z;T))`. Keys and names of curves are no Python names, hence a parser of our own.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from contrasweep.search_spaces.tables import Claim
from contrasweep.tuning.errors import unknown_name

STAR = "*"


class ClaimError(ValueError):
    """A check that cannot be read; the message shows where."""


@dataclass(frozen=True)
class Number:
    """A number as it is written, so that arithmetic on it can be exact."""

    text: str


@dataclass(frozen=True)
class Text:
    """A quoted word: the key of a row."""

    value: str


@dataclass(frozen=True)
class Point:
    """A place in a map over two axes."""

    x: Number
    y: Number


@dataclass(frozen=True)
class Cells:
    """One cell or a group: of `rows` (None: all, less `but`) in `column` (`*`: each in turn).

    `table` None is the claim's own; `group` says whether `rows[...]` was written; `std` reads deviations.
    """

    rows: tuple[str, ...] | None
    column: str
    group: bool
    but: tuple[str, ...] = ()
    table: str | None = None
    std: bool = False


@dataclass(frozen=True)
class Call:
    """A function of expressions."""

    name: str
    arguments: tuple["Node", ...]


@dataclass(frozen=True)
class CurveCall:
    """A function of a figure's curves: its arguments are names as written, lists of names, or places."""

    name: str
    arguments: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Arithmetic:
    """`left` + - * / `right`."""

    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True)
class Comparison:
    """`first` < `second` <= ...: all of them hold; `rest` pairs an operator with its right side."""

    first: "Node"
    rest: tuple[tuple[str, "Node"], ...]


@dataclass(frozen=True)
class Logic:
    """`and` or `or` of its parts."""

    operator: str
    parts: tuple["Node", ...]


Node = Number | Text | Point | Cells | Call | CurveCall | Arithmetic | Comparison | Logic

FUNCTIONS = ("max", "min", "argmax", "argmin", "approx", "order_asc", "order_desc", "abs")
CURVE_FUNCTIONS = (
    "at",
    "max_at",
    "above",
    "increasing",
    "decreasing",
    "rises_then_falls",
    "flat",
    "linear_in_x",
    "quadratic_in_x",
    "argmax_x",
    "argmax_xy",
    "crossing_x",
    "highest",
    "lowest",
    "mean",
    "std",
)

_CELLS = re.compile(
    r"(?:table\[(?P<table>[^\]]+)\]\.)?(?P<kind>rows?)\[(?P<rows>[^\]]*)\]\.(?P<column>\*|\w+)(?P<std>\.std\b)?"
)
_TOKEN = re.compile(
    r"(?P<number>\d+(?:\.\d+)?)|\"(?P<text>[^\"]*)\"|(?P<operator><=|>=|==|[-+*/<>~(),])|(?P<word>[A-Za-z_]\w*)"
)
_COMPARISONS = ("<", "<=", ">", ">=", "==", "~")


def parse_check(text: str) -> Node:
    """Return the tree of a check.

    Raises:
        ClaimError: it is none; the message quotes it and says where reading stopped.
        InputError: a function that there is not (with the nearest).
    """
    reader = _Reader(text)
    tree = reader.either()
    if reader.kind != "end":
        raise reader.error("an operator or the end")
    return tree


def walk(tree: Node) -> Iterator[Node]:
    """Yield a tree's nodes, itself first."""
    yield tree
    inner: tuple[Node, ...] = ()
    if isinstance(tree, Call):
        inner = tree.arguments
    elif isinstance(tree, Arithmetic):
        inner = (tree.left, tree.right)
    elif isinstance(tree, Comparison):
        inner = (tree.first, *(right for _, right in tree.rest))
    elif isinstance(tree, Logic):
        inner = tree.parts
    for node in inner:
        yield from walk(node)


def with_columns(tree: Node, instead: Mapping[str, str]) -> Node:
    """Return a tree that reads other columns of its own table; those of other tables and `*` stay."""
    if isinstance(tree, Cells):
        own = tree.table is None and tree.column in instead
        return replace(tree, column=instead[tree.column]) if own else tree
    if isinstance(tree, Call):
        return replace(tree, arguments=tuple(with_columns(node, instead) for node in tree.arguments))
    if isinstance(tree, Arithmetic):
        left, right = with_columns(tree.left, instead), with_columns(tree.right, instead)
        return Arithmetic(tree.operator, left, right)
    if isinstance(tree, Comparison):
        rest = tuple((sign, with_columns(node, instead)) for sign, node in tree.rest)
        return Comparison(with_columns(tree.first, instead), rest)
    if isinstance(tree, Logic):
        return replace(tree, parts=tuple(with_columns(node, instead) for node in tree.parts))
    return tree


def columns_read(tree: Node, star: Sequence[str]) -> list[str]:
    """Return the columns of its own table that a check reads; `*` are those of `star`."""
    cells = (node for node in walk(tree) if isinstance(node, Cells) and node.table is None)
    found = (name for node in cells for name in (star if node.column == STAR else (node.column,)))
    return list(dict.fromkeys(found))


def tables_read(claims: Iterable[Claim]) -> list[str]:
    """Return the ids of the other tables that claims refer to."""
    checks = [parse_check(claim.check) for claim in claims if claim.check is not None]
    nodes = (node for check in checks for node in walk(check))
    found = (node.table for node in nodes if isinstance(node, Cells) and node.table is not None)
    return list(dict.fromkeys(found))


@dataclass
class _Reader:
    """Reads a check from left to right; `kind` and `value` are the token at hand."""

    source: str
    position: int = 0
    start: int = 0
    kind: str = ""
    value: str = ""
    cells: Cells | None = field(default=None)

    def __post_init__(self) -> None:
        self.advance()

    def error(self, wanted: str) -> ClaimError:
        found = repr(self.value) if self.kind != "end" else "the end"
        return ClaimError(f"check {self.source!r}: at {self.start}, {wanted} was expected, found {found}")

    def advance(self) -> None:
        while self.source[self.position : self.position + 1].isspace():
            self.position += 1
        self.start = self.position
        if self.position == len(self.source):
            self.kind, self.value = "end", ""
            return
        match = _CELLS.match(self.source, self.position)
        if match is not None:
            self.kind, self.cells = "cells", _cells(match)
        else:
            match = _TOKEN.match(self.source, self.position)
            if match is None:
                self.value = self.source[self.position]
                raise self.error("a cell, a number or a word")
            self.kind = str(match.lastgroup)
        self.value = match[0] if self.kind in ("cells", "operator") else match[self.kind]
        self.position = match.end()

    def take(self, *values: str) -> str | None:
        """Return the token at hand and step over it if it is one of these operators or words."""
        if self.kind not in ("operator", "word") or self.value not in values:
            return None
        value = self.value
        self.advance()
        return value

    def require(self, value: str) -> None:
        if self.take(value) is None:
            raise self.error(repr(value))

    def either(self) -> Node:
        return self._joined("or", self._both)

    def _both(self) -> Node:
        return self._joined("and", self._compared)

    def _joined(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self.take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Logic(word, tuple(parts))

    def _compared(self) -> Node:
        first, rest = self._sum(), []
        while sign := self.take(*_COMPARISONS):
            rest.append((sign, self._sum()))
        return Comparison(first, tuple(rest)) if rest else first

    def _sum(self) -> Node:
        left = self._product()
        while sign := self.take("+", "-"):
            left = Arithmetic(sign, left, self._product())
        return left

    def _product(self) -> Node:
        left = self._single()
        while sign := self.take("*", "/"):
            left = Arithmetic(sign, left, self._single())
        return left

    def _single(self) -> Node:
        if self.take("-"):
            return Arithmetic("-", Number("0"), self._single())
        if self.take("("):
            return self._bracketed()
        value, kind = self.value, self.kind
        if kind == "number":
            self.advance()
            return Number(value)
        if kind == "text":
            self.advance()
            return Text(value)
        if kind == "cells":
            assert self.cells is not None, "the token before holds its cells"
            cells = self.cells
            self.advance()
            return cells
        if kind == "word":
            return self._call(value)
        raise self.error("a cell, a number or a function")

    def _bracketed(self) -> Node:
        inner = self.either()
        if self.take(","):
            point = Point(_number(inner, self), _number(self.either(), self))
            self.require(")")
            return point
        self.require(")")
        return inner

    def _call(self, name: str) -> Node:
        if name in CURVE_FUNCTIONS:
            return self._curve_call(name)
        if name not in FUNCTIONS:
            raise unknown_name("function of a check", name, (*FUNCTIONS, *CURVE_FUNCTIONS))
        self.advance()
        self.require("(")
        arguments = [self.either()]
        while self.take(","):
            arguments.append(self.either())
        self.require(")")
        return Call(name, tuple(arguments))

    def _curve_call(self, name: str) -> Node:
        # Names of curves hold brackets, bars and spaces: `-H(Z|T)`, `I(Z;T) pcl`. They end at a comma or a
        # bracket of this call.
        opening = self.source.find("(", self.position)
        if opening < 0 or self.source[self.position : opening].strip():
            self.advance()
            raise self.error("'('")
        end = _closing(self.source, opening)
        if end is None:
            raise ClaimError(f"check {self.source!r}: the bracket at {opening} is not closed")
        parts = _split(self.source[opening + 1 : end])
        arguments = tuple(tuple(_split(p[1:-1])) if p.startswith("[") else (p,) for p in parts)
        self.position = end + 1
        self.advance()
        return CurveCall(name, arguments)


def _number(node: Node, reader: _Reader) -> Number:
    if isinstance(node, Number):
        return node
    raise reader.error("a point of two numbers")


def _cells(match: re.Match[str]) -> Cells:
    group = match["kind"] == "rows"
    given, but = match["rows"], ""
    if group and given.startswith(STAR):
        given, _, but = given.partition(" except ")
    rows = None if group and given.strip() == STAR else _names(given)
    return Cells(rows, match["column"], group, _names(but), match["table"], match["std"] is not None)


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return place
    return None


def _split(text: str) -> list[str]:
    """Split at commas outside all brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
