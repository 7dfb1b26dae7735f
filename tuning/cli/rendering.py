"""The output of commands: lines, tables or JSON, and a progress line."""

import json
import logging
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contrasweep.tuning.cli.columns import Row, separated, table_lines, wrapped
from contrasweep.tuning.progress.display import Shown, shown_on, usual_display


def plain_console(**settings: Any) -> Console:
    """Return rich's console without its changes of plain text: colours of numbers, pictures for `:a:`."""
    return Console(highlight=False, emoji=False, **settings)


def print_json(content: Any) -> None:
    """Print `content` as JSON."""
    plain_console(soft_wrap=True, markup=False).print(json_text(content))


def json_text(content: Any) -> str:
    """Return `content` as JSON; a number that is not finite, which JSON lacks, becomes null."""
    return json.dumps(_finite(content), indent=2, allow_nan=False)


def _finite(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def say(line: str) -> None:
    """Print a line unchanged, without markup or line breaks: it may be a command to copy."""
    plain_console(markup=False).print(line, soft_wrap=True)


def tell(line: str) -> None:
    """Print sentences; on a terminal they are broken between words, and commands in backticks stay whole."""
    _flow(plain_console(), "", line)


def remark(line: str) -> None:
    """Print a remark on the error stream: standard output holds only the table or the JSON."""
    _flow(plain_console(stderr=True), "", line)


def warn(line: str) -> None:
    """Print a line as a warning, on the error stream."""
    _flow(plain_console(stderr=True), "Warning:", line, "bold yellow")


def print_error(line: str) -> None:
    """Print an error, on the error stream; one line, without the control characters of what it quotes."""
    _flow(plain_console(stderr=True), "Error:", _on_one_line(line), "bold red")


class _Told(logging.Handler):
    """Prints what is logged on the error stream, with its traceback if it has one."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print a record."""
        try:
            text = self.format(record)
            if record.levelno >= logging.ERROR:
                _flow(plain_console(stderr=True), "Error:", text, "bold red")
            elif record.levelno >= logging.WARNING:
                warn(text)
            else:
                remark(text)
        except Exception:  # noqa: BLE001 a call with wrong arguments, as for any handler: it must not end the command
            self.handleError(record)


@contextmanager
def telling_logs() -> Iterator[None]:
    """Print what is logged inside a `with` block: all warnings, and from our own code what takes long."""
    everything, ours, told = logging.getLogger(), logging.getLogger("contrasweep"), _Told()
    level = ours.level
    everything.addHandler(told)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        everything.removeHandler(told)
        ours.setLevel(level)


def print_usage(lines: str) -> None:
    """Print how a command is called, on the error stream."""
    plain_console(markup=False, stderr=True).print(lines, soft_wrap=True)


def _flow(console: Console, label: str, line: str, style: str = "") -> None:
    """Print a line behind a label; a terminal, which would break it within words, gets several."""
    whole = f"{label} {line}" if label else line
    # Rich would break commands and paths that are wider than the terminal, and then they cannot be copied.
    lines = wrapped(whole, console.width) if console.is_terminal else [whole]
    text = Text("\n".join(lines))
    text.stylize(style, 0, len(label))
    console.print(text, soft_wrap=True)


def _on_one_line(text: str) -> str:
    """Return a text with spaces for line breaks, and other control characters spelled out.

    It may quote what a user gave, or the content of a file.
    """
    line = " ".join(text.splitlines())
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in line)


def print_rows(
    title: str,
    rows: Sequence[Row | Mapping[str, Any]],
    *,
    footer: str | None = None,
    heads: Sequence[str] = (),
) -> None:
    """Print rows as a table; no cell is ever cut.

    On a terminal, columns that do not fit go to lines below their rows; before that, those of `heads` go
    above the rows that share them (see `table_lines`). Elsewhere standard output holds one line a row, with
    tabs between the cells and the names of the columns first; title and footer go to standard error.
    """
    if not rows:
        say(f"{title}: none")
        return
    found = [row if isinstance(row, Row) else Row(row) for row in rows]
    console = plain_console(markup=False)
    if not console.is_terminal:
        remark(title)
        # Not by rich, which would turn tabs into spaces.
        console.file.write("\n".join(separated(found)) + "\n")
        if footer is not None:
            remark(footer)
        return
    under = [] if footer is None else ["", *wrapped(footer, console.width)]
    for line in [*wrapped(title, console.width), "", *table_lines(found, console.width, heads), *under]:
        console.print(line, soft_wrap=True)


def print_entries(title: str, entries: Mapping[str, Sequence[str | Text]]) -> None:
    """Print each entry as its name, with the lines about it on the right; they wrap on terminals only."""
    console = plain_console()
    console.print(Text(title), soft_wrap=not console.is_terminal)
    if not console.is_terminal:
        wide = max(map(len, entries), default=0)
        for name, lines in entries.items():
            for head, line in zip_longest([name], lines, fillvalue=""):
                console.print(Text(f"  {head:{wide}}  {line}".rstrip()), soft_wrap=True)
        return
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, lines in entries.items():
        grid.add_row(Text(name, style="bold"), Text("\n").join(Text.assemble(line) for line in lines))
    console.print(Padding(grid, (1, 0, 1, 2), expand=False))


def source_line(line: str) -> Text:
    """Return the line with the source of an entry, in a dim style."""
    return Text(line, style="dim")


@contextmanager
def progress_line() -> Iterator[Shown]:
    """Show progress on standard error for a `with` block."""
    with shown_on(usual_display()) as shown:
        yield shown
