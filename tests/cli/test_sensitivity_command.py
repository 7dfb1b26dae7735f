"""`contrasweep sensitivity` on a study written by the test."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from contrasweep.tuning.cli import app
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.sensitivity import forest
from tests.studies import PlannedStudy, Run


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forest, "TREES", 25)
    folder = tmp_path / "results"
    plan = plan_sweep("infonce", "colour-digits", trials=22, epochs=1, results=folder, name="written")
    scores = [{"val.accuracy": 0.5 + n / 50, "val.ridge_accuracy": 0.5 + n / 50} for n in range(22)]
    PlannedStudy(plan).write(
        *(
            Run(values={"temperature": 0.05 + number / 25}, curve={1: score}, final=score)
            for number, score in enumerate(scores)
        )
    )
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["sensitivity", *map(str, arguments)])


def test_it_writes_page_tables_and_figures(results: Path) -> None:
    done = run("written", "--csv", "tables", "--figures", "figures", "--json")
    assert done.exit_code == 0, done.output
    content = json.loads(done.stdout)
    for file in content["files"]:
        assert Path(file).stat().st_size > 0
    assert Path("written-sensitivity.html").exists()
    assert Path("figures/written-marginals.pdf").exists()
    assert Path("tables/importance.csv").exists()
    shares = {row["parameter"]: row["share"] for row in content["variance"]}
    assert max(shares, key=lambda name: shares[name]) == "temperature"


def test_what_cannot_be_told_is_said_with_what_there_is_and_what_is_needed(results: Path) -> None:
    done = run("written")
    line = next(line for line in done.stdout.splitlines() if "seed noise" in line)
    assert line.split("\t") == [
        "written",
        "seed noise",
        "0 trials with two seeds or more",
        "2",
    ]
    assert "study\tanalysis\tthere are\tneeded" in done.stdout
    assert "Too few trials to tell" in done.stderr
    assert done.stderr.startswith("Analysing the trials of written ...\n")


def test_a_study_too_small_for_any_figure_is_told_and_makes_no_folder(results: Path) -> None:
    plan = plan_sweep("infonce", "colour-digits", trials=1, epochs=1, results=results, name="tiny")
    PlannedStudy(plan).write(Run(values={"temperature": 0.1}, curve={1: {"val.accuracy": 0.5}}, final={}))
    done = run("tiny", "--figures", "figures")
    assert done.exit_code == 0, done.output
    assert "--figures figures: no figure was drawn" in " ".join(done.output.split())
    assert not Path("figures").exists()


def test_watching_a_sweep_that_is_over_writes_once(results: Path) -> None:
    done = run("written", "--watch", "5")
    assert done.exit_code == 0, done.output
    assert "Writing written-sensitivity.html every 5 s" in done.output
    assert 'http-equiv="refresh"' not in Path("written-sensitivity.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["writen"], "Did you mean 'written'"),
        (["written", "written"], "each study once"),
        (["written", "-o", "page.pdf"], "ends in .html"),
        (["written", "-o", "results/studies/written.json/page.html"], "cannot be written"),
        (["written", "--csv", "results/studies/written.json"], "give a folder"),
        (["written", "--watch", "0.5"], "--watch takes 1 to 86,400 seconds, given 0.5"),
        (["written", "--watch", "inf"], "--watch takes 1 to 86,400 seconds, given inf"),
    ],
)
def test_wrong_input_is_refused_before_any_work(results: Path, arguments: list[str], said: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2
    assert said in " ".join(done.output.split())
    assert not list(Path().glob("*.html"))
