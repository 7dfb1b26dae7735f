"""What a command prints: lines, tables or JSON, and a line that shows its progress."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from contrasweep.tuning.durations import on_a_clock

if TYPE_CHECKING:
    from contrasweep.tuning.ray.searcher import Progress


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


LINE_SECONDS = 15.0
"""Least seconds between two printed lines when the output is not a terminal."""


class ProgressLine:
    """Rewrites one line on a terminal; otherwise prints a new line from time to time, and the last one."""

    def __init__(self, console: Console, live: Live | None, clock: Callable[[], float]) -> None:
        self._console = console
        self._live = live
        self._clock = clock
        self._started = clock()
        self._printed = -LINE_SECONDS
        self._line = ""

    @property
    def elapsed(self) -> float:
        """Seconds since the line appeared."""
        return self._clock() - self._started

    def show(self, line: str) -> None:
        """Show `line` in place of the one before."""
        self._line = line
        if self._live is not None:
            self._live.update(Text(line))
        elif self.elapsed - self._printed >= LINE_SECONDS:
            self._printed = self.elapsed
            self._console.print(line, markup=False, highlight=False)

    def show_sweep(self, progress: "Progress") -> None:
        """Show the progress of a sweep."""
        self.show(sweep_line(progress, self.elapsed))

    def show_study(self, name: str, progress: "Progress") -> None:
        """Show the progress of one sweep of several."""
        self.show(f"{name}: {sweep_line(progress, self.elapsed)}")

    def show_runs(self, done: int, of: int, before: str = "") -> None:
        """Show how many final runs are done."""
        self.show(f"{before}{done}/{of} final runs · {on_a_clock(self.elapsed)} spent")

    def close(self) -> None:
        """Leave the last line visible."""
        if self._live is None and self._line:
            self._console.print(self._line, markup=False, highlight=False)


@contextmanager
def progress_line() -> Iterator[ProgressLine]:
    """Show a progress line on standard error for a `with` block."""
    console = Console(stderr=True)
    if console.is_terminal:
        with Live(console=console, refresh_per_second=4) as live:
            yield ProgressLine(console, live, time.monotonic)
        return
    line = ProgressLine(console, None, time.monotonic)
    try:
        yield line
    finally:
        line.close()


def sweep_line(progress: "Progress", elapsed: float) -> str:
    """Return the progress of a sweep as one line: trials done and running, best score, times."""
    endings = ", ".join(f"{count} {status}" for status, count in progress.counts.items())
    parts = [f"{progress.done}/{progress.planned} trials" + (f" ({endings})" if endings else "")]
    parts.append(f"{progress.running} running")
    if progress.best is not None:
        number, score = progress.best
        parts.append(f"best {progress.metric} {score:.4g} (trial {number})")
    parts.append(f"{on_a_clock(elapsed)} spent")
    fresh = progress.done - progress.resumed
    if fresh > 0 and progress.done < progress.planned:
        left = elapsed / fresh * (progress.planned - progress.done)
        parts.append(f"about {on_a_clock(left)} left")
    return " · ".join(parts)
