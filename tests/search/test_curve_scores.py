"""The scores of a search in the form that the model of learning curves takes."""

import math

import numpy as np
import pytest

from contrasweep.tuning.search import PastTrial, SearchStudy
from contrasweep.tuning.search.axes import axes_of
from contrasweep.tuning.search.curve_model import Scores
from contrasweep.tuning.search.curve_scores import (
    FLOOR,
    MOST_SCORES,
    curves_of,
    most_telling,
    scores_of,
    tells,
)
from tests.search.curve_studies import EPOCHS, SPACE, held, level, past


def test_final_scores_of_another_measure_are_brought_to_the_curves() -> None:
    study = held()
    curves = curves_of(study.optuna_study, axes_of(SPACE))
    scores = scores_of(curves, axes_of(SPACE), EPOCHS)
    assert scores is not None
    ends = scores.share == 1.0
    for number in (3, 5, 6):
        both = scores.score[ends & (scores.trial == number)]
        assert len(both) == 2
        assert both[0] == pytest.approx(both[1])


def test_epochs_after_which_all_trials_score_alike_are_left_out() -> None:
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    study.restore(
        [
            PastTrial(n, {"x": n / 10, "kernel": "cosine"}, "stopped", {1: 0.324, 2: 0.324 + n / 20})
            for n in range(6)
        ]
    )
    scores = scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    assert set(scores.share) == {math.log(2) / math.log(EPOCHS)}


def test_failed_trials_and_those_that_break_a_condition_count_as_the_worst() -> None:
    study = held()
    broken, other, at_bound = study.ask(), study.ask(), study.ask()
    study.fail(broken.number)
    study.complete(other.number, 100.0, {"memory": 1.0})
    study.complete(at_bound.number, 0.5, {"memory": 0.0})
    scores = scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    for number in (broken.number, other.number):
        assert FLOOR in scores.score[scores.trial == number]
    assert FLOOR not in scores.score[scores.trial == at_bound.number], "it keeps the condition"


def test_a_large_search_is_modelled_from_some_of_its_scores() -> None:
    """The latest trial is asked about: its scores are kept, as are the best trials and some others."""
    count = MOST_SCORES + 100
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    study.restore(
        [past(n, n / count, EPOCHS, "completed") for n in range(count)] + [past(count, 0.7, 2, "running")]
    )
    scores = scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    kept = most_telling(scores, asked=count)
    assert len(kept) == MOST_SCORES
    assert set(kept.share[kept.trial == count]) == {0.0, math.log(2) / math.log(EPOCHS)}
    best = {n for n in range(count) if abs(n / count - 0.7) < 0.1}
    assert best <= set(kept.trial)
    quarters = np.histogram(kept.trial, bins=4, range=(0, count))[0]
    assert quarters.min() > MOST_SCORES / 20


def test_few_scores_are_all_taken() -> None:
    scores = scores_of(curves_of(held().optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    assert most_telling(scores) is scores


@pytest.mark.parametrize("rung", [2, 3])
def test_a_trial_that_another_scheduler_stopped_is_modelled_by_its_last_score(rung: int) -> None:
    # The model looks at epochs 1, 2, 4 and 8, ASHA after 1, 3 and 9.
    stopped = [
        PastTrial(number, {"x": number / 10, "kernel": "cosine"}, "stopped", {rung: level(number / 10, rung)})
        for number in range(6)
    ]
    whole = [past(6 + number, x, EPOCHS, "completed") for number, x in enumerate((0.6, 0.7, 0.9))]
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS, earlier=[*stopped, *whole])
    axes = axes_of(SPACE)
    found = scores_of(curves_of(study.optuna_study, axes), axes, EPOCHS)
    assert found is not None
    assert set(found.trial.tolist()) == set(range(9))
    assert set(found.share[found.trial < 6]) == {math.log(rung) / math.log(EPOCHS)}


def test_a_score_that_is_far_off_does_not_hide_the_others() -> None:
    """A loss that diverged, say: larger is better, so it is very negative."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    far = PastTrial(12, {"x": 0.1, "kernel": "cosine"}, "stopped", {1: -1e9, 2: -1e12})
    study.restore([*(past(n, n / 12, 2) for n in range(12)), far])
    curves = curves_of(study.optuna_study, axes_of(SPACE))
    without, beside = (scores_of(some, axes_of(SPACE), EPOCHS) for some in (curves[:-1], curves))
    assert without is not None
    assert beside is not None
    spread = [np.ptp(one.score[one.score > FLOOR]) for one in (without, beside)]
    assert spread[1] > spread[0] / 10
    assert tells(curves, 2, EPOCHS)


def finals_shifted(by: float) -> Scores:
    """The scores of six whole trials and four stopped ones, whose final score is another measure."""
    study = SearchStudy(SPACE, sampler="curves", epochs=EPOCHS)
    curves = [{epoch: level(n / 10, epoch) for epoch in range(1, EPOCHS + 1)} for n in range(6)]
    values = [{"x": n / 10, "kernel": "cosine"} for n in range(10)]
    whole = [
        PastTrial(n, values[n], "completed", curve, curve[EPOCHS] + by) for n, curve in enumerate(curves)
    ]
    study.restore([*whole, *(past(n, n / 10, 2) for n in range(6, 10))])
    found = scores_of(curves_of(study.optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert found is not None
    return found


def test_the_scale_of_scores_is_that_of_the_curves() -> None:
    assert finals_shifted(5.0).score == pytest.approx(finals_shifted(0.0).score)


def test_a_running_trial_is_modelled_by_the_epochs_of_the_model_alone() -> None:
    scores = scores_of(curves_of(held(at=3).optuna_study, axes_of(SPACE)), axes_of(SPACE), EPOCHS)
    assert scores is not None
    assert set(scores.share[scores.trial == 9]) == {0.0, math.log(2) / math.log(EPOCHS)}


def test_scores_after_the_warmup_are_modelled_as_trials_are_looked_at_then() -> None:
    curves = curves_of(held().optuna_study, axes_of(SPACE))
    scores = scores_of(curves, axes_of(SPACE), EPOCHS, warmup=2.0)
    assert scores is not None
    assert {math.log(epoch) / math.log(EPOCHS) for epoch in (3, 6)} <= set(scores.share)
