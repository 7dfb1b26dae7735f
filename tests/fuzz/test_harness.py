"""The checks of the fuzz tests notice what they look for."""

from collections.abc import Callable

import pytest
from typer import Typer

from contrasweep.tuning.cli.errors import reporting_errors
from contrasweep.tuning.errors import InputError
from tests.fuzz import harness


def _raises(error: Exception) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


def _hangs() -> None:
    while True:
        pass


def _program(command: Callable[[], None]) -> Typer:
    app = Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(reporting_errors(command))
    return app


def test_a_fault_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "app", _program(_raises(KeyError("metric"))))
    with pytest.raises(AssertionError, match="exit 70"):
        harness.fuzz()


@pytest.mark.parametrize("err", ["", "Error: \n", "Error: one line\nand another\n"])
def test_an_error_that_is_not_one_line_is_found(err: str) -> None:
    with pytest.raises(AssertionError, match="exit 2"):
        harness.check(harness.Ended(("show",), 2, "", err))


def test_a_hang_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "app", _program(_hangs))
    monkeypatch.setattr(harness, "HANG_SECONDS", 0.2)
    with pytest.raises(AssertionError, match="no end after"):
        harness.fuzz()


def test_a_good_end_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "app", _program(_raises(InputError("given 1; allowed: 2"))))
    assert harness.fuzz().error == "given 1; allowed: 2"
