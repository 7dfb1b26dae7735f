"""`contrasweep report` as a user types it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contrasweep.tuning.cli import app
from tests.studies import scored

Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return lambda *arguments: CliRunner().invoke(app, ["report", *arguments])


def test_the_page_is_named_after_the_study(write_study, run: Run, tmp_path: Path) -> None:
    write_study([scored()])
    done = run("demo")
    assert done.exit_code == 0
    assert done.stderr == "Reading demo, and drawing the page ...\n"
    assert done.stdout.startswith("Wrote demo.html (")
    assert "fair-cclk on colour-digits: demo" in (tmp_path / "demo.html").read_text()


def test_several_studies_and_their_rows(write_study, run: Run, tmp_path: Path) -> None:
    write_study([scored()], "one")
    write_study([scored()], "two")
    told = json.loads(run("one", "two", "--rows", "rows", "--json").stdout)
    assert told["page"] == "report.html"
    assert {Path(file).name for file in told["rows"]} >= {"one-trials.csv", "two-epochs.parquet"}
    assert all(Path(file).is_file() for file in told["rows"])


def test_watching_a_sweep_that_is_over_writes_once(write_study, run: Run, tmp_path: Path) -> None:
    write_study([scored()])
    done = run("demo", "--watch", "5")
    assert done.exit_code == 0
    assert 'http-equiv="refresh"' not in (tmp_path / "demo.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["deme"], "Did you mean 'demo'?"),
        (["demo", "-o", "demo.png"], "-o demo.png: give a file that ends in .html"),
        (["demo", "-o", "a-file/demo.html"], "cannot be written"),
        (["demo", "--watch", "0"], "--watch takes 1 to 86,400 seconds, given 0"),
        (["demo", "--rows", "a-file"], "--rows a-file is a file: give a folder"),
    ],
)
def test_wrong_input_is_refused_before_anything_is_written(
    write_study, run: Run, tmp_path: Path, arguments: list[str], said: str
) -> None:
    write_study([scored()])
    (tmp_path / "a-file").write_text("")
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in done.output
    assert not list(tmp_path.glob("**/*.html"))
