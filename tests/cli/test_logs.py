"""What is logged while a command runs is printed on standard error."""

import logging

import pytest

from contrasweep.tuning.cli.errors import reporting_errors


def test_a_command_prints_what_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    ours, other = logging.getLogger("contrasweep.data"), logging.getLogger("a_library")

    @reporting_errors
    def command() -> None:
        ours.warning("no image of %d classes", 6)
        ours.info("decoding %d images", 9)
        ours.debug("not of use")
        other.warning("told too")
        other.info("not of use")
        try:
            raise ValueError("its cause")
        except ValueError:
            ours.exception("trial 3 failed")

    command()
    told = capsys.readouterr()
    assert not told.out
    lines = told.err.splitlines()
    assert lines[:4] == [
        "Warning: no image of 6 classes",
        "decoding 9 images",
        "Warning: told too",
        "Error: trial 3 failed",
    ]
    assert (lines[4], lines[-1]) == ("Traceback (most recent call last):", "ValueError: its cause")
    handlers = [type(one).__name__ for one in logging.getLogger().handlers]
    assert "_Told" not in handlers
    assert ours.getEffectiveLevel() == logging.WARNING


def test_a_log_call_with_wrong_arguments_ends_no_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own raises

    @reporting_errors
    def command() -> None:
        logging.getLogger("a_library").warning("%d images", "many")
        logging.getLogger("a_library").warning("goes on")

    command()
    told = capsys.readouterr().err
    assert "Logging error" in told
    assert "Warning: goes on" in told
