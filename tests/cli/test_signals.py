"""Ctrl-C, SIGTERM (Slurm, Kubernetes) and SIGHUP (a closed terminal) end a command in the same way."""

import os
import pty
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from contrasweep.tuning.cli.errors import reporting_errors
from contrasweep.tuning.errors import SweepStopped
from contrasweep.tuning.ray.signals import (
    Stopped,
    interrupted_afterwards,
    stopping_on_signals,
    told_in_notebooks,
)


@pytest.fixture(autouse=True)
def nothing_is_ignored() -> Iterator[None]:
    """What is ignored stays so: under `nohup`, SIGHUP is, and SIGINT in the background of a script."""
    hangup = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    interrupt = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGHUP, hangup)
    signal.signal(signal.SIGINT, interrupt)


def exit_code(command: Callable[..., None], **options: object) -> int:
    with pytest.raises(SystemExit) as left:
        reporting_errors(command)(**options)
    return int(str(left.value.code))


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_ends_a_command_with_its_code_and_one_line(
    number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    def sweep() -> None:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt as stop:
            stop.add_note("`contrasweep sweep --resume` goes on.")
            raise

    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    assert exit_code(sweep) == code
    assert {one: signal.getsignal(one) for one in before} == before
    assert capsys.readouterr().err == "Interrupted. `contrasweep sweep --resume` goes on.\n"


def test_a_second_signal_does_not_interrupt_the_clean_up() -> None:
    cleaned = []

    @stopping_on_signals()
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGHUP)
            cleaned.append(True)

    with pytest.raises(Stopped, match="SIGTERM"):
        work()
    assert cleaned


def test_what_a_library_makes_of_the_signal_is_the_signal_still() -> None:
    @stopping_on_signals()
    def work() -> None:
        try:
            signal.raise_signal(signal.SIGHUP)
        except KeyboardInterrupt:
            raise KeyboardInterrupt from None

    with pytest.raises(Stopped, match="SIGHUP"):
        work()


def test_a_signal_that_is_ignored_stays_so() -> None:
    """`nohup` has its command ignore SIGHUP."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping_on_signals():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_handlers_come_back_after_a_library_has_set_its_own() -> None:
    with stopping_on_signals():
        with interrupted_afterwards():
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
        with pytest.raises(Stopped):
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("number", "repeated"), [(signal.SIGINT, 1), (signal.SIGTERM, 2), (signal.SIGHUP, 3)], ids=str
)
def test_what_must_not_be_interrupted_ends_first(number: signal.Signals, repeated: int) -> None:
    """Slurm repeats SIGTERM; a closing terminal sends SIGHUP twice."""
    ended = []

    @stopping_on_signals()
    @interrupted_afterwards()
    def start() -> None:
        for _ in range(repeated):
            signal.raise_signal(number)
        ended.append(True)

    with pytest.raises(KeyboardInterrupt) as stopped:
        start()
    assert ended
    assert isinstance(stopped.value, Stopped) == (number != signal.SIGINT)


def test_a_second_ctrl_c_interrupts_at_once() -> None:
    ended = []

    @interrupted_afterwards()
    def start() -> None:
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        ended.append(True)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        start()
    assert not ended
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_gives_way_to_an_interruption_that_came_before_it() -> None:
    @interrupted_afterwards()
    def start() -> None:
        signal.raise_signal(signal.SIGINT)
        raise ConnectionError

    with pytest.raises(KeyboardInterrupt):
        start()


def test_an_ignored_signal_does_not_interrupt_afterwards() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping_on_signals(), interrupted_afterwards():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_terminal_that_closes_ends_the_command_though_nothing_can_be_written() -> None:
    def sweep() -> None:
        with os.fdopen(os.dup(2), "w") as terminal:
            try:
                os.write(1, b"begun")
                while True:
                    pass
            finally:
                terminal.write("the last line")
                terminal.flush()

    child, terminal = pty.fork()
    if not child:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        sys.stderr = os.fdopen(2, "w")
        os._exit(exit_code(sweep))
    assert os.read(terminal, 5) == b"begun"
    os.close(terminal)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 129


@pytest.mark.parametrize(
    ("name", "options", "told"),
    [
        ("run", {}, "What was finished is in the store; `"),
        ("table", {}, "What was finished is in the store; `"),
        ("train", {"checkpoint": None}, "Nothing was kept; with --checkpoint FILE"),
        ("train", {"checkpoint": None, "experiment": Path("my one.yaml")}, " --checkpoint 'my one.pt'`."),
        ("train", {"checkpoint": Path(__file__)}, "` goes on."),
        ("train", {"checkpoint": Path("run.pt")}, "Nothing was kept yet; `"),
        ("sweep", {}, "Error: Ray has died. `it` goes on."),
        ("show", {}, "Error: Ray has died"),
    ],
)
def test_work_that_stopped_early_says_how_to_go_on(
    name: str, options: dict[str, object], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(**_: object) -> None:
        stopped = SweepStopped("Ray has died")
        if name == "sweep":
            stopped.add_note("`it` goes on.")
        raise stopped

    command.__name__ = name
    assert exit_code(command, **options) == 1
    assert told in capsys.readouterr().err


def test_a_notebook_shows_an_interruption_as_one_line_and_other_errors_as_they_are() -> None:
    with pytest.raises(KeyboardInterrupt) as stopped, told_in_notebooks("the same call"):
        raise KeyboardInterrupt
    line = "Interrupted. What was finished is kept; the same call goes on."
    assert vars(stopped.value)["_render_traceback_"]() == [line]
    with pytest.raises(SweepStopped) as failed, told_in_notebooks("the same call"):
        raise SweepStopped("another driver")
    assert not hasattr(failed.value, "_render_traceback_")
