"""Where progress is shown: rewritten on a terminal or in a notebook, else a line from time to time."""

import logging
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from html import escape
from threading import Event, RLock, Thread
from typing import Any, Protocol, TextIO

from contrasweep.tuning.progress.lines import runs_line, stage_line, sweep_line, training_line
from contrasweep.tuning.progress.states import Progress, SweepProgress, TrainingProgress

LINE_SECONDS = 15.0
"""Least seconds between two lines where nothing can be rewritten."""

TICK = 1.0
"""Seconds after which progress is shown again, though nothing was reported: the time goes on."""

REWRITE_SECONDS = 0.2
"""Least seconds between two texts in a notebook: each is a message to a browser."""

BAR = '<progress value="{share:.3f}" max="1" style="width:10em;vertical-align:middle"></progress> '
"""A bar as browsers draw it, in a light or a dark theme."""

OnProgress = bool | Callable[[Progress], object] | None
"""Whether progress is shown, or the function that it is passed to; None: on terminals and in notebooks."""


class Display(Protocol):
    """Shows one text in place of the one before."""

    def show(self, text: str, share: float | None = None) -> None:
        """Show `text`; `share` is how much of the work is done, 0 to 1, None where that is not known."""

    def clear(self) -> None:
        """Take the text away, if that is possible."""

    def close(self) -> None:
        """Leave the last text visible."""


class Terminal:
    """Rewrites the last lines of a terminal; a long text is broken between words."""

    def __init__(self, stream: TextIO, width: Callable[[], int] = lambda: shutil.get_terminal_size().columns):
        self._stream = stream
        self._width = width
        self._lines = 0

    def show(self, text: str, share: float | None = None) -> None:
        """Show `text` where the one before was."""
        # A terminal goes to the next line by itself after its last column.
        lines = textwrap.wrap(text, max(20, self._width() - 1)) or [""]
        self.clear()
        self._stream.write("\n".join(lines) + "\n")
        self._stream.flush()
        self._lines = len(lines)

    def clear(self) -> None:
        """Erase the lines of the text."""
        self._stream.write(f"\x1b[{self._lines}F\x1b[J" if self._lines else "")
        self._stream.flush()
        self._lines = 0

    def close(self) -> None:
        """Leave the text."""
        self._lines = 0


class Lines:
    """Writes a line from time to time, and the last one: for files and pipes."""

    def __init__(self, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._clock = clock
        self._written: float | None = None
        self._text = ""
        self._last = ""

    def show(self, text: str, share: float | None = None) -> None:
        """Write `text`, if the last line was written long enough ago."""
        self._text = text
        if self._written is None or self._clock() - self._written >= LINE_SECONDS:
            self._written = self._clock()
            self._write()

    def clear(self) -> None:
        """Forget the text; what is written stays."""
        self._text = self._last

    def close(self) -> None:
        """Write the last text, if it was not written yet."""
        if self._text != self._last:
            self._write()

    def _write(self) -> None:
        self._stream.write(f"{self._text}\n")
        self._stream.flush()
        self._last = self._text


class Notebook:
    """Rewrites one output of the running cell, a few times a second at most; a bar shows how much is done."""

    def __init__(self, display: Callable[..., Any], clock: Callable[[], float] = time.monotonic) -> None:
        self._display = display
        self._clock = clock
        self._written: float | None = None
        self._text = ""
        self._handle: Any = None

    def show(self, text: str, share: float | None = None) -> None:
        """Show `text` where the one before was, behind a bar, if that one was shown long enough ago."""
        self._text = text
        if self._written is None or self._clock() - self._written >= REWRITE_SECONDS:
            self._written = self._clock()
            bar = "" if share is None else BAR.format(share=share)
            self._show(f"{bar}{escape(text)}")

    def clear(self) -> None:
        """Leave the text: the next one takes its place."""

    def close(self) -> None:
        """Leave the last text, which sums up the work, without a bar."""
        if self._written is not None:
            self._show(escape(self._text))

    def _show(self, html: str) -> None:
        # What cannot show HTML has the text.
        content = {"text/plain": self._text, "text/html": f"<div>{html}</div>"}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


class Shown:
    """Shows progress on a display, with the time since this began; two threads may use it."""

    def __init__(self, display: Display, clock: Callable[[], float] = time.monotonic) -> None:
        self._display = display
        self._clock = clock
        self._began = clock()
        self._last = self._began
        self._again: Callable[[float], str] | None = None
        self._share: float | None = None
        # What is logged while a line is written may be logged by a handler that shows it.
        self._lock = RLock()

    def training(self, progress: TrainingProgress) -> None:
        """Show the progress of one training, twice a second, and the end of an epoch."""
        now, ended = self._clock(), progress.step == progress.steps
        if ended or now - self._last >= 0.5:
            # Steps come often, and the time left does not go on by itself.
            self._show(lambda elapsed: training_line(progress, elapsed), now, goes_on=ended)

    def clear(self) -> None:
        """Take the text away: a line is printed in its place."""
        with self._lock:
            self._again = None
            self._display.clear()

    @contextmanager
    def above(self) -> Iterator[None]:
        """Let a `with` block write lines; the text is shown again after them."""
        with self._lock:
            self._display.clear()
            yield
            if self._again is not None:
                self._display.show(self._again(self._clock() - self._began), self._share)

    def progress(self, progress: Progress, before: str = "") -> None:
        """Show the progress of a sweep or of final runs, with a text before it."""

        def line(elapsed: float) -> str:
            if isinstance(progress, SweepProgress):
                return f"{before}{sweep_line(progress, elapsed)}"
            return f"{before}{runs_line(progress, elapsed)}"

        self._show(line, self._clock(), share=progress.share)

    def study(self, name: str, progress: SweepProgress) -> None:
        """Show the progress of one sweep of several."""
        self.progress(progress, f"{name}: ")

    def stage(self, stage: str) -> None:
        """Show what goes on before there is any progress."""
        self._show(lambda elapsed: stage_line(stage, elapsed), self._clock())

    def tick(self) -> None:
        """Show the last progress again with the time that has passed; nothing after `clear`."""
        now = self._clock()
        with self._lock:
            if self._again is not None and now - self._last >= TICK:
                self._display.show(self._again(now - self._began), self._share)

    def _show(
        self,
        line: Callable[[float], str],
        now: float,
        *,
        goes_on: bool = True,
        share: float | None = None,
    ) -> None:
        with self._lock:
            self._again, self._last, self._share = line if goes_on else None, now, share
            self._display.show(line(now - self._began), share)


class _LogAbove(logging.Handler):
    """Passes our records on to the handlers of all records, which may write to the terminal of a display."""

    def __init__(self, shown: Shown) -> None:
        super().__init__()
        self._shown = shown

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on a record."""
        try:
            with self._shown.above():
                logging.getLogger().handle(record)
        except Exception:  # noqa: BLE001 as any handler: what is logged must not end what goes on
            self.handleError(record)


@contextmanager
def _logged_above(shown: Shown) -> Iterator[None]:
    ours, handler = logging.getLogger("contrasweep"), _LogAbove(shown)
    if ours.handlers or not ours.propagate:
        # A user has decided where our records go, or another display passes them on.
        yield
        return
    ours.addHandler(handler)
    ours.propagate = False
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.propagate = True


@contextmanager
def shown_on(
    display: Display,
    *,
    tick: float = TICK,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Shown]:
    """Show progress on a display for a `with` block; the time goes on while the block waits for something.

    What our code logs meanwhile stands above the progress.

    Args:
        display: where it is shown.
        tick: seconds between two looks of that thread.
        clock: returns the time in seconds.
    """
    shown, ended = Shown(display, clock), Event()

    def go_on() -> None:
        # Where the display is gone, the thread that works notices.
        with suppress(OSError, ValueError):
            while not ended.wait(tick):
                shown.tick()

    thread = Thread(target=go_on, name="progress", daemon=True)
    thread.start()
    try:
        with _logged_above(shown):
            yield shown
    finally:
        ended.set()
        thread.join()
        display.close()


def usual_display() -> Display:
    """Return what shows progress on standard error: a terminal is rewritten."""
    return Terminal(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)


@contextmanager
def following(asked: OnProgress) -> Iterator[Callable[[Progress], object] | None]:
    """Give what is called with progress for a `with` block: what a caller of the library asked for.

    None shows progress on terminals and in notebooks only; True also writes lines elsewhere.
    """
    if callable(asked):
        yield asked
        return
    notebook = _notebook()
    quiet = asked is False or (asked is None and notebook is None and not sys.stderr.isatty())
    if quiet:
        yield None
        return
    display = usual_display() if notebook is None else notebook
    with shown_on(display) as shown:
        yield shown.progress


def _notebook() -> Notebook | None:
    """Return the display of the running notebook; None outside of one."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython.display import display

    return Notebook(display)
