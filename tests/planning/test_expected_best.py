"""Trials are selected by what is expected of them on another seed: a lucky score is not enough."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from contrasweep.search_spaces import read_yaml
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.expected_best import expected_scores, selected_trials
from tests.studies import STUDY, PlannedStudy, scored, small_plan

RATES = np.linspace(0.02, 0.28, 14)
LUCKY = 1


def true_score(rate: float) -> float:
    """The score over seeds: a hill whose top lies at a rate of 0.2."""
    return 0.9 - 8 * (rate - 0.2) ** 2


def write(results: Path, **options: Any) -> PlannedStudy:
    """Write trials of many rates; one far from the top of the hill has by luck the best score of all."""
    space = {"optimizer.lr": {"uniform": [0.01, 0.3], "default": 0.1}}
    study = PlannedStudy(small_plan(results, space=space, trials=len(RATES), scheduler="none", **options))
    noise = np.random.default_rng(0).normal(0, 0.01, len(RATES))
    noise[LUCKY] = 0.92 - true_score(RATES[LUCKY])
    for trial, rate in enumerate(RATES):
        score = true_score(rate) + noise[trial]
        first = 0.5 + (score - 0.5) / 2
        values = {"optimizer.lr": float(rate)}
        study.write(scored((0.5, first, score), trial=trial, values=values, colour=10 - score))
    return study


@pytest.fixture
def study(tmp_path: Path) -> PlannedStudy:
    return write(tmp_path)


@pytest.fixture
def best(study: PlannedStudy, tmp_path: Path) -> Callable[..., Result]:
    words = ["best", STUDY, "--results", str(tmp_path)]
    return lambda *options: CliRunner().invoke(app, [*words, *options])


def test_a_lucky_trial_is_not_the_best(study: PlannedStudy) -> None:
    assert [one.trial for one in selected_trials(study.store, STUDY)] == [LUCKY]
    (found,) = selected_trials(study.store, STUDY, by="expected")
    assert RATES[found.trial] == pytest.approx(0.2, abs=0.025)
    assert found.expected == pytest.approx(true_score(RATES[found.trial]), abs=0.03)
    assert found.score == study.store.trials(STUDY)["metric.val.accuracy"].to_pylist()[found.trial]
    assert "as the model of learning curves expects it on another seed" in found.rule


def test_what_is_expected_is_on_the_scale_of_the_scores(study: PlannedStudy) -> None:
    expected = expected_scores(study.store, study.record)
    usual = [trial for trial in range(len(RATES)) if abs(trial - LUCKY) > 1]
    errors = [expected[trial] - true_score(RATES[trial]) for trial in usual]
    assert np.abs(errors).max() < 0.04
    assert expected[LUCKY] < 0.9


def test_a_share_is_not_expected_above_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = write(tmp_path)
    found = dict.fromkeys(range(len(RATES)), 0.5) | {3: 1.2, 4: 1.1}
    monkeypatch.setattr("contrasweep.tuning.planning.expected_best.expected_scores", lambda *_: found)
    first, second, *_ = selected_trials(study.store, STUDY, 14, by="expected")
    assert [(one.trial, one.expected) for one in (first, second)] == [(3, 1.0), (4, 1.0)]


def test_conditions_and_numbers_hold_as_with_scores(study: PlannedStudy) -> None:
    kept = selected_trials(study.store, STUDY, 14, ["val.accuracy<=0.85"], "expected")
    assert kept
    assert all(one.score <= 0.85 for one in kept)
    assert len(selected_trials(study.store, STUDY, 3, by="expected")) == 3


def test_the_command_shows_and_writes_what_is_expected(best: Callable[..., Result], tmp_path: Path) -> None:
    file = tmp_path / "best.yaml"
    result = best("--by", "expected", "-o", str(file))
    assert result.exit_code == 0, result.output
    assert "expected val.accuracy" in result.stdout
    rule = read_yaml(file)["selected"]["rule"]
    assert rule.endswith("as the model of learning curves expects it on another seed")
    assert "expected" not in best().stdout


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--by", "expcted"], "unknown choice 'expcted'. Did you mean 'expected'?"),
        (["--by", "expected", "--trial", "1"], "--trial 1 names the trial: leave out --by"),
    ],
)
def test_wrong_choices_are_refused(options: list[str], told: str, best: Callable[..., Result]) -> None:
    result = best(*options)
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_file_has_one_configuration(best: Callable[..., Result], tmp_path: Path) -> None:
    file = str(tmp_path / "best.yaml")
    assert best("-o", file).exit_code == 0
    result = CliRunner().invoke(app, ["run", file, "--by", "expected"])
    assert result.exit_code == 2
    assert f"--by goes with a study; {file} holds one configuration" in " ".join(result.stderr.split())


def test_several_metrics_and_too_few_trials_are_refused(tmp_path: Path) -> None:
    several = write(tmp_path / "several", metric="accuracy,colour_mse")
    with pytest.raises(
        InputError, match=r"takes one metric; study study-1 has val\.accuracy, val\.colour_mse"
    ):
        selected_trials(several.store, STUDY, by="expected")
    few = PlannedStudy(small_plan(tmp_path / "few"))
    few.write(scored(), scored((0.5, 0.6, 0.8)))
    with pytest.raises(
        InputError, match="needs four trials with scores that differ; study study-1 has 2 trials"
    ):
        selected_trials(few.store, STUDY, by="expected")
