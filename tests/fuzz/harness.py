"""Runs commands on broken input. They must end with 0, 1 or 2 and one line of error: all else is a bug."""

import random
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from typer.testing import CliRunner

from contrasweep.tuning.cli import app

HANG_SECONDS = 60.0
ALLOWED = (0, 1, 2)


class Hang(BaseException):
    """A command did not end in time; not an Exception, so that no handler takes it for a failure."""


@dataclass(frozen=True)
class Ended:
    """How a command ended.

    Attributes:
        command: the arguments.
        code: the exit code.
        out: standard output.
        err: standard error.
    """

    command: tuple[str, ...]
    code: int
    out: str
    err: str

    @property
    def error(self) -> str:
        """The text after `Error:`, to the end of standard error; empty if there is none."""
        return self.err.partition("Error:")[2].strip()


def run(*arguments: object) -> Ended:
    """Run `contrasweep ARGUMENTS` in this process.

    Raises:
        AssertionError: it did not end within `HANG_SECONDS`.
    """
    given = tuple(map(str, arguments))
    try:
        with _alarm(HANG_SECONDS):
            result = CliRunner().invoke(app, list(given))
    except Hang as hang:
        raise AssertionError(f"contrasweep {' '.join(given)}: no end after {HANG_SECONDS:g} s") from hang
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ended(given, result.exit_code, result.stdout, result.stderr)


def check(ended: Ended, allowed: Sequence[int] = ALLOWED, case: str = "") -> Ended:
    """Assert that a command ended as promised: an allowed code, and for 1 and 2 one line that says why.

    Args:
        ended: from `run`.
        allowed: the exit codes that are right for this input.
        case: says what was broken, for the message of a failing test.
    """
    about = f"{case}\n$ contrasweep {' '.join(ended.command)[:400]}\nexit {ended.code}\n{ended.err[-3000:]}"
    assert ended.code in allowed, about
    assert "Traceback" not in ended.err, about
    if ended.code:
        assert ended.error, about
        assert "\n" not in ended.error, about
    return ended


def fuzz(*arguments: object, allowed: Sequence[int] = ALLOWED, case: str = "") -> Ended:
    """Run a command and check how it ended."""
    return check(run(*arguments), allowed, case)


def random_of(name: str, case: int) -> random.Random:
    """Return the random numbers of one case, the same in every run."""
    return random.Random(f"{name} {case}")


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder by its path: what a command that only reads must not change."""
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: FrameType | None) -> None:
        raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
