"""Conditions within a search: Optuna knows of them, every sampler that learns looks where they are kept."""

import math
from functools import partial
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from contrasweep.search_spaces import Space
from contrasweep.tuning.search import Mirror, PastTrial, Proposal, SearchStudy
from contrasweep.tuning.search.gaussian_process import normal_violations
from contrasweep.tuning.search.sampler import constrained_standing

SPACE = Space.parse(
    {
        "x": {"uniform": [0.0, 1.0], "default": 0.1},
        "y": {"uniform": [0.0, 1.0], "default": 0.1},
        "kernel": {"choice": ["rbf", "cosine"], "default": "rbf"},
    }
)
KEPT = "x + y <= 0.9"


def score(one: Proposal) -> float:
    """Best at x = 0.8, y = 0.7, which breaks the condition; 0.18 less on its edge, at (0.5, 0.4)."""
    x, y = float(one.values["x"]), float(one.values["y"])
    return 1 - (x - 0.8) ** 2 - (y - 0.7) ** 2 + (0.05 if one.values["kernel"] == "cosine" else 0)


def violation(one: Proposal) -> float:
    return 100 * (float(one.values["x"]) + float(one.values["y"]) - 0.9)


def kept(sampler: str, told: bool) -> int:
    """How many of 14 trials keep the condition, where the search is told of it, or is not."""
    study, count = SearchStudy(SPACE, sampler=sampler, seed=0, trials=14), 0
    for _ in range(14):
        one = study.ask()
        study.complete(one.number, score(one), {KEPT: violation(one)} if told else {})
        count += violation(one) <= 0
    return count


@pytest.mark.parametrize("sampler", ["tpe", "curves", "gp", "cmaes"])
def test_a_search_that_is_told_looks_where_the_condition_is_kept(sampler: str) -> None:
    assert kept(sampler, told=True) >= kept(sampler, told=False) + 2


def ended() -> SearchStudy:
    study = SearchStudy(SPACE)
    for _ in range(6):
        study.ask()
    study.complete(0, 0.5, {KEPT: -10.0})
    study.complete(1, 0.9, {KEPT: 3.0, "loss < 1": 1.0})
    study.report(2, 1, 0.7)
    study.prune(2, {KEPT: math.inf})
    study.fail(3)
    study.report(4, 1, 0.7)
    study.prune(4)
    study.complete(5, 0.4, {KEPT: 0.0})
    return study


def test_optuna_knows_the_violations() -> None:
    study = ended()
    assert study.trial(0).constraints == {KEPT: -10.0}
    assert study.trial(2).constraints == {KEPT: math.inf}
    assert study.trial(3).constraints == {}
    assert study.optuna_study.best_trial.number == 0, "trial 1 scores higher, and breaks the condition"


def test_trials_that_break_a_condition_stand_below_those_that_keep_it() -> None:
    study = ended()
    assert sorted(range(6), key=lambda number: constrained_standing(study.trial(number))) == [
        0,
        5,
        4,
        1,
        2,
        3,
    ], "the failed trial is last"


def test_the_process_sees_on_which_side_of_the_bound_a_trial_is() -> None:
    seen = normal_violations(ended().optuna_study)
    assert set(seen) == {0, 1, 2, 4, 5}
    assert seen[0][KEPT] < 0 == seen[5][KEPT] == seen[4][KEPT] < seen[1][KEPT] < seen[2][KEPT] < 3
    assert seen[2]["loss < 1"] == 0 < seen[1]["loss < 1"]


@pytest.mark.parametrize("sampler", ["tpe", "gp", "cmaes"])
def test_a_restored_search_goes_on_as_if_it_had_never_stopped(sampler: str) -> None:
    study = SearchStudy(SPACE, sampler=sampler, seed=4, trials=14)
    past: list[PastTrial] = []
    for _ in range(12):
        one = study.ask()
        study.complete(one.number, score(one), {KEPT: violation(one)})
        broken = {KEPT: violation(one)}
        past.append(PastTrial(one.number, one.values, "completed", {}, score(one), broken))
    restored = SearchStudy(SPACE, sampler=sampler, seed=4, trials=14)
    restored.restore(past)
    assert [trial.constraints for trial in restored.trials] == [trial.constraints for trial in study.trials]
    assert restored.ask() == study.ask()


def test_the_copy_has_the_violations(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'watch.db'}"
    study = SearchStudy(SPACE, mirror=partial(Mirror, url, "watched", ["val.accuracy"]))
    for _ in range(2):
        study.ask()
    study.complete(0, 0.5, {KEPT: math.inf})
    study.prune(1, {KEPT: -2.5})
    copied = optuna.load_study(study_name="watched", storage=url).trials
    assert [trial.state for trial in copied] == [TrialState.COMPLETE, TrialState.PRUNED]
    assert [trial.constraints for trial in copied] == [{KEPT: math.inf}, {KEPT: -2.5}]
