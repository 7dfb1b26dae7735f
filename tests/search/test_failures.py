"""Failed trials teach: no sampler keeps proposing where every trial fails."""

import math

import pytest
from optuna.trial import TrialState

from contrasweep.search_spaces import Space
from contrasweep.tuning.search import SearchStudy
from contrasweep.tuning.search.failures import with_failures

SPACE = Space.parse(
    {
        "rate": {"uniform": [0.0, 1.0], "default": 0.3},
        "width": {"uniform": [0.0, 1.0], "default": 0.3},
        "depth": {"uniform": [0.0, 1.0], "default": 0.3},
    }
)


def failures_of_the_second_half(sampler: str, trials: int = 40, objectives: int = 1) -> int:
    """Search for a rate of 0.5, where every rate above 0.8 fails."""
    study = SearchStudy(SPACE, sampler=sampler, seed=0, trials=trials, epochs=1, objectives=objectives)
    failed = 0
    for number in range(trials):
        values = {name: float(value) for name, value in study.ask().values.items()}
        if values["rate"] > 0.8:
            study.report(number, 1, 2.0)
            study.fail(number)
            failed += number >= trials // 2
        else:
            score = -4 * (values["rate"] - 0.5) ** 2 - (values["width"] - 0.5) ** 2
            study.report(number, 1, score)
            study.complete(number, score if objectives == 1 else (score, -(values["depth"] ** 2)))
    return failed


@pytest.mark.parametrize(
    ("sampler", "objectives"), [("tpe", 1), ("tpe", 2), ("gp", 1), ("cmaes", 1), ("curves", 1)]
)
def test_a_search_leaves_the_region_where_every_trial_fails(sampler: str, objectives: int) -> None:
    assert failures_of_the_second_half(sampler, objectives=objectives) <= 6, (
        "4 by chance; 10 and more if stuck"
    )


def test_failed_trials_are_shown_as_stopped_ones_without_a_score() -> None:
    study = SearchStudy(SPACE, sampler="random", seed=0, trials=3)
    for number, value in ((0, 0.5), (1, math.nan)):
        study.ask()
        study.report(number, 1, 0.4)
        study.complete(number, value)
    study.ask()
    own, shown = study.optuna_study, with_failures(study.optuna_study)
    assert [t.state for t in own.trials] == [TrialState.COMPLETE, TrialState.FAIL, TrialState.RUNNING]
    assert [t.state for t in shown.trials] == [TrialState.COMPLETE, TrialState.PRUNED, TrialState.RUNNING]
    assert [t.number for t in shown.get_trials(deepcopy=False, states=(TrialState.PRUNED,))] == [1]
    assert (shown.trials[1].params, shown.trials[1].last_step) == (own.trials[1].params, None)
    assert shown.directions == own.directions


def test_a_study_without_failed_trials_is_its_own_view() -> None:
    study = SearchStudy(SPACE, sampler="random", seed=0, trials=1)
    study.complete(study.ask().number, 0.5)
    assert with_failures(study.optuna_study) is study.optuna_study
