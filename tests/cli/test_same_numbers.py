"""A score has the same text wherever a person reads it: a fraction stays a fraction."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.cli.run import _report
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.progress.lines import sweep_line
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.reports.answer import answer_section
from contrasweep.tuning.results.final_runs import FinalRuns
from contrasweep.tuning.results.numbers import interval_text, mean_and_std, number_text
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.statistics import summarise
from contrasweep.tuning.store import ResultsStore
from tests.studies import PlannedStudy, Run, WrittenStudy, make_final_record

SCORE, SHOWN = 0.90281, "0.9028"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.90281, "0.9028"), (5228.4, "5228"), (15_234.5, "15,234"), (1e-5, "1e-05"), (float("nan"), "NaN")],
)
def test_a_number_has_four_digits(value: float, text: str) -> None:
    assert number_text(value) == text


def test_a_mean_has_the_digits_of_its_deviation_and_an_interval_those_of_a_number() -> None:
    assert mean_and_std(summarise([0.93, 0.91])) == "0.920 ± 0.014"
    assert mean_and_std(summarise([0.93, 0.91]), sign="+") == "+0.920 ± 0.014"
    assert mean_and_std(summarise([0.3 - 0.1, 0.2])) == "0.2 ± 0"
    assert (mean_and_std(summarise([0.5])), mean_and_std(None)) == ("0.5", None)
    assert interval_text((-0.01234, 0.5), sign="+") == "-0.01234 to +0.5"
    assert interval_text(None) is None


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ResultsStore:
    monkeypatch.chdir(tmp_path)
    plan = plan_sweep("infonce", "colour-digits", trials=2, epochs=1, results="results", name="one")
    metrics = {"val.accuracy": SCORE, "val.ridge_accuracy": SCORE, "val.colour_mse": 20.0}
    PlannedStudy(plan).write(Run(curve={1: metrics}, final=metrics), Run(curve={1: metrics}, status="failed"))
    return ResultsStore("results")


def test_tables_progress_and_pages_show_the_same_text(store: ResultsStore) -> None:
    for command in (["studies"], ["show", "one"], ["best", "one"]):
        assert SHOWN in CliRunner().invoke(app, command).stdout
    assert f"best final m {SHOWN} (trial 3)" in sweep_line(SweepProgress(4, 1, "m", best=(3, SCORE)), 5)
    assert f"val.accuracy {SHOWN}" in repr(best_trials(store, "one")[0])
    assert f"val.accuracy {SHOWN}" in answer_section(read_study(store, "one")).text


def test_a_notebook_lists_studies_with_the_counts_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial counts once, however many seeds it has; of final runs, each one counts."""
    monkeypatch.chdir(tmp_path)
    plan = plan_sweep("infonce", "colour-digits", trials=3, epochs=1, seeds=2, results="results", name="two")
    seeds = [Run(trial, seed) for trial in range(2) for seed in range(2)]
    study = PlannedStudy(plan)
    study.write(*seeds, Run(2, 0, status="stopped"), Run(2, 1, status="interrupted"))
    finals = WrittenStudy(study.location, make_final_record("two-final"))
    finals.write(*(Run(0, seed, phase="final") for seed in range(4)))
    rows = json.loads(CliRunner().invoke(app, ["studies", "--json"]).stdout)
    assert {row["study"]: (row["trials"], row["endings"]) for row in rows} == {
        "two": (3, "2 completed, 1 stopped"),
        "two-final": (4, "4 completed"),
    }
    page = ResultsStore("results")._repr_html_()
    for row in rows:
        shown = [str(row[name]) for name in ("study", "state", "trials", "endings", "created")]
        assert re.search(".*".join(f">{re.escape(one)}</td>" for one in shown), page)
    assert read_study(ResultsStore("results"), "two").counts == {"completed": 2, "stopped": 1}


def test_the_unit_of_a_score_is_told_only_where_a_trial_has_the_score(store: ResultsStore) -> None:
    assert "Colour MSE" in CliRunner().invoke(app, ["show", "one"]).output
    plan = plan_sweep("infonce", "colour-digits", trials=1, epochs=1, results="results", name="failed")
    PlannedStudy(plan).write(Run(status="failed"))
    assert "Colour MSE" not in CliRunner().invoke(app, ["show", "failed"]).output


def test_final_runs_are_in_the_same_unit(capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {
            "study": "one-final",
            "method": "infonce",
            "trial": 0,
            "seed": seed,
            "metric.test.accuracy": 0.9 + seed / 100,
            "metric.test.untrained_accuracy": 0.6,
        }
        for seed in (1, 2, 3)
    ]
    runs = FinalRuns("one-final", rows, failed=0)
    _report([runs], runs, "results", as_json=False)
    said = capsys.readouterr().out
    assert "encoder\ttest accuracy\t95 % interval\tn" in said
    assert "infonce, trial 0\t0.920 ± 0.010\t0.8952 to 0.9448\t3" in said
    assert "untrained\t+0.320 ± 0.010\t+0.2952 to +0.3448\t3" in said
