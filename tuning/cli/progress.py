"""A line that shows the progress of a sweep."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.live import Live
from rich.text import Text

from contrasweep.tuning.durations import on_a_clock

if TYPE_CHECKING:
    from contrasweep.tuning.ray.searcher import Progress

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
