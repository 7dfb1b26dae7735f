"""Print rows as tables on a terminal, or as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text


def print_json(content: Any) -> None:
    """Print `content` as JSON."""
    Console(soft_wrap=True, highlight=False, markup=False).print(json.dumps(content, indent=2))


def say(line: str) -> None:
    """Print a line unchanged, without markup or line breaks: it may be a command to copy."""
    Console(highlight=False, markup=False).print(line, soft_wrap=True)


def remark(line: str) -> None:
    """Print a remark on the error stream: standard output holds only the table or the JSON."""
    Console(highlight=False, markup=False, stderr=True).print(line, soft_wrap=True)


def warn(line: str) -> None:
    """Print a line as a warning, on the error stream."""
    Console(highlight=False, stderr=True).print(f"[bold yellow]Warning:[/] {escape(line)}", soft_wrap=True)


def print_rows(title: str, rows: Sequence[Mapping[str, Any]], *, footer: str | None = None) -> None:
    """Print rows as a table; the columns are the keys of the first row."""
    if not rows:
        say(f"{title}: none")
        return
    table = Table(
        title=Text(title),
        title_justify="left",
        caption=None if footer is None else Text(footer),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for name in rows[0]:
        values = [row[name] for row in rows if row[name] is not None]
        number = bool(values) and all(isinstance(value, int | float) for value in values)
        width = max((len(text(value)) for value in values), default=1)
        # Numbers are never broken; long texts share the remaining width.
        table.add_column(
            name,
            justify="right" if number else "left",
            overflow="fold",
            min_width=width if number or width < 12 else min(width, 14),
            ratio=None if number or width < 12 else 1,
        )
    for row in rows:
        # As Text, because brackets in a cell (a shape, a C++ error) are not markup.
        table.add_row(*(Text(text(value)) for value in row.values()))
    Console(highlight=False).print(table)


def print_entries(title: str, entries: Mapping[str, Sequence[str | Text]]) -> None:
    """Print each entry as its name, with the lines about it on the right."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, lines in entries.items():
        grid.add_row(Text(name, style="bold"), Text("\n").join(Text.assemble(line) for line in lines))
    console = Console(highlight=False)
    console.print(Text(title))
    console.print(Padding(grid, (1, 0, 1, 2), expand=False))


def source_line(line: str) -> Text:
    """Return the line with the source of an entry, in a dim style."""
    return Text(line, style="dim")


def text(value: Any) -> str:
    """Return the text of a cell: four significant digits for a float, a dash for None."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def configuration(values: Mapping[str, Any]) -> str:
    """Return values as the text of one cell, `name value` pairs; values that are None are left out."""
    return ", ".join(f"{name} {text(value)}" for name, value in values.items() if value is not None)
