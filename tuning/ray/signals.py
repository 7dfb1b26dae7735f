"""Signals that ask a process to end: Ctrl-C, and what Slurm, Kubernetes and a closed terminal send."""

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

ENDING: Final = (signal.SIGTERM, signal.SIGHUP)


class Stopped(KeyboardInterrupt):
    """SIGTERM or SIGHUP came. Work ends as after Ctrl-C: what was finished is kept, the end is recorded."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number


@contextmanager
def stopping_on_signals() -> Iterator[None]:
    """Raise `Stopped` in a `with` block when SIGTERM or SIGHUP comes, and ignore both while the block ends.

    A signal that is ignored stays so (`nohup` ignores SIGHUP). Python takes signals in the main thread only:
    in any other, the block changes nothing.

    Raises:
        Stopped: also where the end of the work raised another error: a library has its own words for a
            Ctrl-C, and a terminal that was closed refuses what is written.
    """
    in_main = threading.current_thread() is threading.main_thread()
    before = _handlers(ENDING) if in_main else {}
    ours = [
        n for n, handler in before.items() if handler != signal.SIG_IGN and not isinstance(handler, _Stop)
    ]
    stop = _Stop()
    for number in ours:
        signal.signal(number, stop)
    try:
        yield
    except BaseException as error:
        if stop.number is None or isinstance(error, Stopped):
            raise
        stopped = Stopped(stop.number)
        for note in getattr(error, "__notes__", ()):
            stopped.add_note(note)
        raise stopped from error
    finally:
        for number in ours:
            signal.signal(number, before[number])


@contextmanager
def told_in_notebooks(go_on: str) -> Iterator[None]:
    """Let a notebook show an interruption of a `with` block as one line, not as a traceback through Ray.

    Args:
        go_on: what goes on with the work, as a call in Python.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        line = f"Interrupted. What was finished is kept; {go_on} goes on."
        # IPython shows an exception by this method where it has one.
        vars(stop)["_render_traceback_"] = lambda: [line]
        raise


class _Stop:
    """Raises `Stopped` for the first signal. Slurm repeats it; a closing terminal sends two."""

    def __init__(self) -> None:
        self.number: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Raise, unless a signal came before: the clean-up after that one must not be interrupted."""
        if self.number is None:
            self.number = number
            raise Stopped(number)


@contextmanager
def interrupted_afterwards() -> Iterator[None]:
    """Hold back Ctrl-C, SIGTERM and SIGHUP until a `with` block ends; then the first that came interrupts.

    A second Ctrl-C interrupts at once. At the end, the handlers are what they were, whatever the block did to
    them: Ray's start sets its own, with which SIGTERM ends in a stack trace of C++.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = _handlers((signal.SIGINT, *ENDING))
    came: list[int] = []

    def come(number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT and number in came:
            signal.signal(number, before[signal.SIGINT])
            signal.raise_signal(number)
        came.append(number)

    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, come)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])


def _handlers(numbers: Sequence[signal.Signals]) -> dict[signal.Signals, Any]:
    # None stands for a handler that C code set, which cannot be set from here.
    return {number: signal.getsignal(number) or signal.SIG_DFL for number in numbers}
