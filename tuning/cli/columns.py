"""Rows as lines of text: aligned columns; a cell that does not fit is printed below its row, never cut."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rich.cells import cell_len

from contrasweep.tuning.results.numbers import cell_text

GAP = "  "
POINT = " · "
INDENT = "    "

_WORDS = re.compile(r"(?:`[^`]*`|[^ ])*(?: |$)")
"""A word and the space after it; a command in backticks is one word, so that it stays whole to be copied."""


@dataclass(frozen=True)
class Note:
    """A longer text about a row.

    Attributes:
        column: its column where each row is one line.
        text: what it says; None where there is nothing to say.
        named: whether the column stands before the text on the line below the row.
    """

    column: str
    text: str | None
    named: bool = True


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes:
        cells: by column; each is shown in its column where that fits.
        settings: by name; shown in columns if all of the table's fit, else on a line below, without those
            that are None. Those that are the same in all rows are said once.
        notes: longer texts, always on lines below.
    """

    cells: Mapping[str, Any]
    settings: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[Note] = ()


def text(value: Any) -> str:
    """Return the `cell_text` of a cell without separators of thousands: other programs read it too."""
    shown = cell_text(value)
    return shown.replace(",", "") if isinstance(value, float) else shown


def settings_line(values: Mapping[str, Any]) -> str:
    """Return values as text, `kernel rbf · lam 1`; values that are None are left out."""
    return POINT.join(f"{name} {text(value)}" for name, value in values.items() if value is not None)


def separated(rows: Sequence[Row]) -> list[str]:
    """Return the rows for other programs: one line each, cells separated by tabs, after a line of names."""
    names = _names(row.cells for row in rows)
    settings = [name for name in _names(row.settings for row in rows) if name not in names]
    whole = [{note.column: note.text for note in row.notes} for row in rows]
    notes = _names(whole)
    lines = [[*names, *settings, *notes]]
    for row, texts in zip(rows, whole, strict=True):
        values = [*map(row.cells.get, names), *map(row.settings.get, settings), *map(texts.get, notes)]
        lines.append([*map(text, values)])
    return ["\t".join(" ".join(cell.split()) for cell in line) for line in lines]


def table_lines(rows: Sequence[Row], width: int, heads: Sequence[str] = ()) -> list[str]:
    """Return the rows as lines of at most `width` columns; only a wider word exceeds them.

    Those of the columns `heads` that are the same in all rows are said once, in a line above the table. Where
    the others leave no room for all columns, rows with one value of the first of them are put together below
    that value, and so on with the next, until the columns fit.
    """
    constant = [name for name in heads if len({text(row.cells.get(name)) for row in rows}) == 1]
    above = settings_line({name: rows[0].cells.get(name) for name in constant})
    varying = [name for name in heads if name not in constant]
    table, grouped = _table_of([_without(row, constant) for row in rows], width), 0
    while not table.fits and grouped < len(varying):
        grouped += 1
        table = _table_of([_without(row, [*constant, *varying[:grouped]]) for row in rows], width)
    groups: dict[str, list[str]] = {}
    for row, lines in zip(rows, table.rows, strict=True):
        said = settings_line({name: row.cells.get(name) for name in varying[:grouped]})
        groups.setdefault(said, []).extend(lines)
    lines = [*wrapped(f"In all rows: {above}", width), ""] if above else []
    lines += table.head
    for number, (said, own) in enumerate(groups.items()):
        lines += ([""] if said and number else []) + (wrapped(said, width) if said else []) + own
    if table.common:
        lines += ["", *wrapped(f"In all rows: {settings_line(table.common)}", width)]
    return lines


@dataclass(frozen=True)
class _Table:
    """Rows as lines.

    Attributes:
        head: the names of the columns, and a line below them.
        rows: the lines of each row.
        common: settings that all rows share, which no row says.
        fits: whether all columns have room.
    """

    head: list[str]
    rows: list[list[str]]
    common: Mapping[str, Any]
    fits: bool


def _table_of(rows: Sequence[Row], width: int) -> _Table:
    common = common_settings(rows)
    own = [{name: value for name, value in row.settings.items() if name not in common} for row in rows]
    cells = [row.cells for row in rows]
    names, searched = [*dict.fromkeys([*_names(cells)[:1], *_filled(cells)])], _filled(own)
    whole = [{**row.cells, **settings} for row, settings in zip(rows, own, strict=True)]
    widths = _widths([*names, *searched], whole)
    fits = _width([*names, *searched], widths) <= width
    if fits:
        shown, below = [*names, *searched], [""] * len(rows)
    else:
        shown = _fitting(names, widths, width)
        rest = [name for name in names if name not in shown]
        below = [
            settings_line({**{name: row.cells.get(name) for name in rest}, **settings})
            for row, settings in zip(rows, own, strict=True)
        ]
    head, *body = _aligned(shown, whole, widths)
    lines = [
        [
            line,
            *(
                one
                for more in filter(None, [under, *map(_line_of, row.notes)])
                for piece in more.splitlines()
                for one in wrapped(piece, width, INDENT)
            ),
        ]
        for row, line, under in zip(rows, body, below, strict=True)
    ]
    return _Table([head, "─" * max(map(cell_len, (head, *body)))], lines, common, fits)


def _without(row: Row, names: Sequence[str]) -> Row:
    return replace(row, cells={name: value for name, value in row.cells.items() if name not in names})


def _line_of(note: Note) -> str | None:
    return f"{note.column}: {note.text}" if note.named and note.text else note.text


def common_settings(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the settings that all of several rows share."""
    if len(rows) < 2:
        return {}
    first, *others = (row.settings for row in rows)
    return {
        name: value
        for name, value in first.items()
        if value is not None and all(name in one and one[name] == value for one in others)
    }


def wrapped(line: str, width: int, indent: str = "") -> list[str]:
    """Return a text as lines of at most `width` columns, broken at points or else between words."""
    lines: list[str] = []
    for part in _pieces(line, width - len(indent)):
        joined = f"{lines[-1]}{part}" if lines else ""
        if lines and cell_len(_ended(joined)) <= width:
            lines[-1] = joined
        else:
            lines.append(indent + part)
    return [_ended(line) for line in lines]


def _ended(line: str) -> str:
    """Return a line without the point or space at which it was broken."""
    return line.removesuffix(POINT).rstrip()


def _pieces(line: str, width: int) -> list[str]:
    """Cut a text after its points, and parts that are too wide after their spaces: where a line may end."""
    parts = [f"{part}{POINT}" for part in line.split(POINT)]
    parts[-1] = parts[-1].removesuffix(POINT)
    pieces = []
    for part in parts:
        if cell_len(part) <= width:
            pieces.append(part)
        else:
            pieces += filter(None, _WORDS.findall(part))
    return pieces


def _names(rows: Any) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _filled(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names that have a value in some row."""
    return [name for name in _names(rows) if any(row.get(name) is not None for row in rows)]


def _fitting(names: Sequence[str], widths: Mapping[str, int], width: int) -> list[str]:
    """Return the first column, and in their order the others that fit."""
    shown = list(names[:1])
    for name in names[1:]:
        if _width([*shown, name], widths) <= width:
            shown.append(name)
    return shown


def _width(names: Sequence[str], widths: Mapping[str, int]) -> int:
    return sum(widths[name] for name in set(names)) + len(GAP) * (len(names) - 1)


def _widths(names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    return {name: max(cell_len(name), *(cell_len(text(row.get(name))) for row in rows)) for name in names}


def _aligned(names: Sequence[str], rows: Sequence[Mapping[str, Any]], widths: Mapping[str, int]) -> list[str]:
    """Return a line of names and one for each row; columns of numbers are aligned on the right."""
    right = {name for name in names if _is_number([row.get(name) for row in rows])}

    def line(cells: Mapping[str, str]) -> str:
        padded = (_padded(cells[name], widths[name], name in right) for name in names)
        return GAP.join(padded).rstrip()

    return [
        line({name: name for name in names}),
        *(line({name: text(row.get(name)) for name in names}) for row in rows),
    ]


def _padded(cell: str, width: int, right: bool) -> str:
    space = " " * (width - cell_len(cell))
    return space + cell if right else cell + space


def _is_number(values: Sequence[Any]) -> bool:
    there = [value for value in values if value is not None]
    return bool(there) and all(type(value) in (int, float) for value in there)
