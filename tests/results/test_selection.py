"""The selection of the best trials, from rows as trials write them."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.results.candidates import candidates_of
from contrasweep.tuning.results.selection import SelectedTrial, StoredSearch, best_trials
from contrasweep.tuning.results.trials import untrained_scores
from contrasweep.tuning.store import StoreError, save_study
from tests.studies import STUDY, PlannedStudy, Run, small_plan


class _Study(PlannedStudy):
    """Trials with a score, and that of their untrained encoder."""

    def __init__(self, results: Path, **options: Any) -> None:
        super().__init__(small_plan(results, **options))

    def add(
        self,
        trial: int,
        score: float | None,
        *,
        status: str = "completed",
        untrained: float | None = 0.5,
        values: Mapping[str, Any] | None = None,
        seed: int = 0,
        **metrics: float,
    ) -> None:
        # In between the score was better: it is the last epoch that counts.
        curve = {epoch: {"val.accuracy": value} for epoch, value in enumerate((untrained, 0.99, score))}
        self.write(Run(trial, seed, values or {}, curve, status, {"val.accuracy": score, **metrics}))

    def best(self, top: int = 1) -> list[SelectedTrial]:
        return best_trials(self.store, STUDY, top)


@pytest.fixture
def study(tmp_path: Path) -> _Study:
    return _Study(tmp_path / "results")


def test_the_highest_score_at_the_last_epoch_wins(study: _Study) -> None:
    for trial, score in enumerate([0.7, 0.9, 0.8]):
        study.add(trial, score, untrained=0.1 * trial)
    (best,) = study.best()
    assert (best.study, best.trial, best.metric, best.score) == (STUDY, 1, "val.accuracy", 0.9)
    assert best.untrained == pytest.approx(0.1)
    assert [trial.trial for trial in study.best(2)] == [1, 2]
    assert [trial.trial for trial in study.best(9)] == [1, 2, 0]


def test_a_completed_trial_is_taken_by_its_number(study: _Study) -> None:
    for trial, score in enumerate([0.7, 0.9]):
        study.add(trial, score, untrained=0.1 * trial, values={"temperature": 0.2 + trial})
    study.add(2, 0.95, status="stopped")
    found = StoredSearch(study.store, STUDY).trial(0)
    assert (found.trial, found.score, found.untrained) == (0, 0.7, 0.0)
    assert found.experiment.hyperparameters["temperature"] == 0.2
    assert found.rule == "asked for by its number"
    with pytest.raises(InputError, match=r"trial 2 of study .* is stopped; allowed: a completed trial"):
        StoredSearch(study.store, STUDY).trial(2)
    with pytest.raises(InputError, match=r"has no trial 7; allowed: a completed trial, `contrasweep show"):
        StoredSearch(study.store, STUDY).trial(7)


def test_of_equal_scores_the_earlier_trial_is_first(study: _Study) -> None:
    for trial in (2, 0, 1):
        study.add(trial, 0.9)
    assert [trial.trial for trial in study.best(3)] == [0, 1, 2]


def test_only_completed_trials_count(study: _Study) -> None:
    study.add(0, 0.6)
    study.add(1, 0.9, status="stopped")
    study.add(2, 0.95, status="failed")
    study.add(3, 0.97, status="interrupted")
    study.add(4, math.nan)
    study.add(5, None)
    assert [trial.trial for trial in study.best(9)] == [0]


def test_without_a_completed_trial_there_is_no_best(study: _Study) -> None:
    with pytest.raises(SweepFailed, match=STUDY):
        study.best()
    study.add(0, 0.9, status="stopped")
    with pytest.raises(SweepFailed, match="no trial of study study-1 has completed"):
        study.best()
    study.add(1, math.nan)
    with pytest.raises(
        SweepFailed, match=r"1 completed trials of study study-1 have no finite val\.accuracy"
    ):
        study.best()


def test_where_all_trials_have_failed_it_is_said_why(study: _Study) -> None:
    study.write(
        *(Run(trial, status="failed", error=f"Traceback\nValueError: no room {trial}") for trial in (0, 1))
    )
    with pytest.raises(
        SweepFailed, match=r"has completed, all have failed: ValueError: no room 0 \(2 of 2\)"
    ):
        study.best()


def test_an_unknown_study_is_refused_with_the_nearest(study: _Study) -> None:
    with pytest.raises(StoreError, match="Did you mean 'study-1'"):
        best_trials(study.store, "study-2")


def test_no_experiment_is_read_from_a_study_of_another_version(study: _Study) -> None:
    study.add(0, 0.9)
    foreign = study.record.model_copy(update={"versions": {"contrasweep": "99.0"}})
    save_study(study.location, foreign, replace=True)
    with pytest.raises(InputError, match=r"was made by contrasweep 99\.0"):
        study.best()


def test_the_experiment_is_the_one_that_ran(study: _Study) -> None:
    values = {"kernel": "rbf", "sigma2": 55.5, "optimizer.lr": 0.125, "views.flip": 0.0}
    study.add(0, 0.9, values=values)
    (best,) = study.best()
    complete = {**study.plan.space.defaults(), **values}
    assert best.values == complete
    assert best.experiment == study.plan.experiment_of(complete)
    assert best.experiment.hyperparameters["sigma2"] == 55.5


def test_a_value_that_had_no_part_in_the_trial_is_left_out(study: _Study) -> None:
    study.add(0, 0.9, values={"kernel": "cosine"})
    (best,) = study.best()
    assert "sigma2" not in best.values
    assert "sigma2" not in best.experiment.hyperparameters


def test_the_result_carries_its_metrics(study: _Study) -> None:
    study.add(0, 0.9, **{"val.colour_mse": 64.5})
    (best,) = study.best()
    assert best.metrics == {"val.accuracy": 0.9, "val.colour_mse": 64.5}


@pytest.mark.parametrize(
    ("score", "untrained", "beats"), [(0.9, 0.8, True), (0.8, 0.8, False), (0.7, 0.8, False)]
)
def test_training_is_compared_with_the_encoder_it_began_with(
    study: _Study, score: float, untrained: float, beats: bool
) -> None:
    study.add(0, score, untrained=untrained)
    (best,) = study.best()
    assert (best.untrained, best.beats_untrained) == (untrained, beats)


def test_where_there_is_no_control_none_is_claimed(study: _Study) -> None:
    study.add(0, 0.9, untrained=None)
    study.add(1, 0.8, untrained=math.nan)
    assert [trial.untrained for trial in study.best(2)] == [None, None]
    assert untrained_scores(study.store.epochs(STUDY), study.record, "val.accuracy") == {}


def test_the_study_s_own_metric_decides(tmp_path: Path) -> None:
    study = _Study(tmp_path / "results", metric="val.colour_mse")
    study.add(0, 0.9, **{"val.colour_mse": 10.0})
    study.add(1, 0.5, **{"val.colour_mse": 90.0})
    (best,) = study.best()
    assert (best.trial, best.metric, best.score) == (1, "val.colour_mse", 90.0)


def test_untrained_scores_are_those_of_epoch_0(study: _Study) -> None:
    study.add(0, 0.9, untrained=0.25)
    study.add(3, 0.9, untrained=0.5)
    assert untrained_scores(study.store.epochs(STUDY), study.record, "val.accuracy") == {0: 0.25, 3: 0.5}


def test_of_several_seeds_the_mean_counts_and_each_must_have_completed(tmp_path: Path) -> None:
    study = _Study(tmp_path / "results", seeds=2)
    for trial, scores in enumerate([(0.9, 0.5), (0.8, 0.7), (0.99, 0.98), (0.99, None)]):
        for seed, score in enumerate(scores):
            study.add(
                trial,
                score,
                seed=seed,
                untrained=0.1 * seed,
                status="failed" if score is None else "stopped" if score == 0.98 else "completed",
            )
    study.add(4, 1.0)
    best, second = study.best(9)
    assert (best.trial, second.trial) == (1, 0)
    assert best.score == pytest.approx(0.75)
    assert best.std == pytest.approx(0.1 / math.sqrt(2))
    assert (best.seeds, best.untrained) == (2, pytest.approx(0.05))
    assert best.rule.startswith("highest val.accuracy (mean of 2 seeds) at the last epoch")


def test_of_several_metrics_the_front_comes_first(tmp_path: Path) -> None:
    study = _Study(tmp_path / "results", metric="accuracy,colour_mse")
    for trial, (score, colour) in enumerate([(0.8, 30.0), (0.9, 10.0), (0.85, 10.0), (0.7, 40.0)]):
        study.add(trial, score, **{"val.colour_mse": colour})
    whole = best_trials(study.store, STUDY, None)
    assert [(one.trial, one.on_front) for one in whole] == [(1, True), (0, True), (3, True)]
    assert [one.trial for one in best_trials(study.store, STUDY, 4)] == [1, 0, 3, 2]
    assert candidates_of(study.store.trials(STUDY), study.store.study(STUDY)).front == {0, 1, 3}
    assert "the Pareto front of val.accuracy and val.colour_mse" in whole[0].rule


def test_a_floor_on_another_metric(tmp_path: Path) -> None:
    study = _Study(tmp_path / "results")
    for trial, (score, colour) in enumerate([(0.8, 30.0), (0.9, 10.0), (0.7, 40.0)]):
        study.add(trial, score, **{"val.colour_mse": colour})
    study.add(3, 0.95)
    best, other = best_trials(study.store, STUDY, 9, where=["colour_mse>=20"])
    assert (best.trial, other.trial) == (0, 2)
    assert best.rule.endswith("val.colour_mse >= 20")
    told = (
        r"none of the 4 completed .* keeps val.colour_mse > 40; the nearest is trial 2 \(val.colour_mse 40\)"
    )
    with pytest.raises(SweepFailed, match=told):
        best_trials(study.store, STUDY, where=["colour_mse>40"])
