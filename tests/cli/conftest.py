"""The command line as tests type it."""

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contrasweep.tuning.cli import app


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Result]:
    """A command in an empty folder and a wide terminal, where no dataset that needs files is there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("CONTRASWEEP_DATA", str(tmp_path / "no-data"))
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])
