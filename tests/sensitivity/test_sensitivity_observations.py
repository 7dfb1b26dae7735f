"""Observations from the rows of a store: endings, seeds, conditional values, curves."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment.statuses import STATUSES
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.search.axes import axes_of, strata_of
from contrasweep.tuning.sensitivity.analyse import ForestResults, analyse, analyse_observations
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations, observations_from, observe
from contrasweep.tuning.store.record import FinalRecord
from tests.studies import STUDY, PlannedStudy, Run, small_plan


class _Study(PlannedStudy):
    """A study of two epochs; each trial scores 0.1 less after the first one."""

    def __init__(self, results: Path, **options: Any) -> None:
        super().__init__(small_plan(results, **options))

    def add(
        self,
        trial: int,
        score: float | None,
        *,
        seed: int = 0,
        status: str = "completed",
        rung: int | None = None,
        **values: Any,
    ) -> None:
        early = math.nan if score is None else score
        curve = [0.5, early - 0.1, early][: 2 if status == "stopped" else 3]
        epochs = {e: {"val.ridge_accuracy": value, "val.accuracy": value} for e, value in enumerate(curve)}
        self.write(Run(trial, seed, values, epochs, status, {"val.accuracy": score}, rung))

    def observe(self) -> Observations:
        return observe(self.store, STUDY)


@pytest.fixture
def study(tmp_path: Path) -> _Study:
    return _Study(tmp_path / "results")


def test_each_ending_of_a_trial(study: _Study) -> None:
    study.add(0, 0.9)
    study.add(1, 0.8, status="stopped", rung=1)
    study.add(2, None, status="failed")
    study.add(3, math.nan)
    study.add(4, 0.7, status="interrupted")
    found = study.observe()
    assert found.ending.tolist() == ["completed", "stopped", "failed", "no score", "interrupted"]
    assert found.score[0] == 0.9
    assert np.isnan(found.score[1:]).all()
    assert found.over.tolist() == [True, True, True, True, False]
    assert found.rung[1] == 1
    assert found.untrained == 0.5


def test_curves_are_by_epoch_and_gaps_are_nan(study: _Study) -> None:
    study.add(0, 0.9)
    study.add(1, 0.8, status="stopped", rung=1)
    found = study.observe()
    np.testing.assert_allclose(found.curve, [[0.5, 0.8, 0.9], [0.5, 0.7, np.nan]])


def test_epochs_of_a_trial_without_a_row_are_nobody_elses(study: _Study) -> None:
    """A trial that begins while the study is read, or whose row is damaged, has epochs alone."""
    for trial, score in enumerate((0.9, 0.8, 0.7)):
        study.add(trial, score)
    trials = study.store.trials(STUDY)
    for missing, left in ((1, [0, 2]), (2, [0, 1])):
        kept = trials.filter(pc.field("trial") != missing)
        found = observations_from(study.record, kept, study.store.epochs(STUDY))
        assert found.trial.tolist() == left
        np.testing.assert_allclose(found.curve[:, -1], [(0.9, 0.8, 0.7)[trial] for trial in left])


def test_seeds_are_averaged_and_kept(tmp_path: Path) -> None:
    study = _Study(tmp_path / "results", seeds=3)
    for seed, score in enumerate([0.7, 0.8, 0.9]):
        study.add(0, score, seed=seed)
    study.add(1, 0.6, seed=0)
    study.add(1, None, seed=1, status="failed")
    study.add(1, 0.6, seed=2, status="interrupted")
    study.add(2, 0.6, seed=0)
    found = study.observe()
    assert found.score[0] == pytest.approx(0.8)
    # A mean over the seeds that happened to survive would flatter the trial.
    assert np.isnan(found.score[1:]).all()
    assert found.ending.tolist() == ["completed", "failed", "interrupted"]
    assert found.replicates.score.tolist() == [0.7, 0.8, 0.9]
    assert found.curve[0, 2] == pytest.approx(0.8)
    assert np.isnan(found.curve[2]).all()


def test_analyses_and_selection_say_the_same_of_a_trial(tmp_path: Path) -> None:
    study = _Study(tmp_path / "results", seeds=2)
    ended = [status for status in STATUSES if status != "running"]
    for trial, statuses in enumerate(itertools.product(ended, repeat=2)):
        for seed, status in enumerate(statuses):
            study.add(trial, 0.5 + trial / 100, seed=seed, status=status)
    found = study.observe()
    outcomes = trial_outcomes(study.store.trials(STUDY), study.record)
    assert found.ending.tolist() == [one.status for one in outcomes]
    scores = [one.mean("val.accuracy") if one.status == "completed" else math.nan for one in outcomes]
    np.testing.assert_array_equal(found.score, scores)


def test_the_seeds_of_final_runs_are_those_that_were_run(study: _Study) -> None:
    for seed in range(3):
        study.add(0, 0.7 + seed / 10, seed=seed)
    record = study.record.model_copy(update={"search": FinalRecord(metric="val.accuracy")})
    found = observations_from(record, study.store.trials(STUDY), study.store.epochs(STUDY))
    assert found.ending.tolist() == ["completed"]
    assert found.score[0] == pytest.approx(0.8)
    assert found.replicates.seed.tolist() == [0, 1, 2]


def test_inactive_values_are_nan_and_log_scales_known(study: _Study) -> None:
    study.add(0, 0.9, kernel="cosine")
    study.add(1, 0.9, kernel="rbf", sigma2=10.0**2.5)
    found = study.observe()
    names = [axis.name for axis in found.axes]
    sigma2, kernel = names.index("sigma2"), names.index("kernel")
    assert np.isnan(found.codes[0, sigma2])
    # From 1 to 1e5 in the logarithm, 10^2.5 is half-way.
    assert found.codes[1, sigma2] == pytest.approx(0.5)
    assert found.axes[kernel].value(found.codes[0, kernel]) == "cosine"


def test_strata_are_the_values_of_the_parents(study: _Study) -> None:
    strata = strata_of(study.plan.space)
    assert [("sigma2" in s.active) for s in strata] == [True, True, False, False, False]
    assert sum(s.weight for s in strata) == pytest.approx(1.0)


def test_units_run_over_the_search_range_and_back(study: _Study) -> None:
    for axis in axes_of(study.plan.space):
        values = [axis.value(float(code)) for code in axis.grid]
        np.testing.assert_allclose(axis.codes(values), axis.grid, atol=1e-9)
        assert axis.weights.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("studies", [[], [STUDY, STUDY]])
def test_each_study_is_analysed_once(study: _Study, studies: list[str]) -> None:
    with pytest.raises(InputError, match=r"allowed: (each study once|one or more)"):
        analyse(study.store, studies)


def test_studies_of_two_stores_with_one_name_are_refused(study: _Study) -> None:
    """Their scores are kept by name, so each was compared with itself."""
    one = study.observe()
    with pytest.raises(InputError, match="allowed: each study once"):
        analyse_observations([one, one])


@pytest.mark.parametrize("trials", [0, 1, 3])
def test_a_handful_of_trials_is_too_few_and_no_error(study: _Study, trials: int) -> None:
    for trial in range(trials):
        study.add(trial, 0.6 + trial / 10)
    (found,) = analyse(study.store, [STUDY]).studies
    end = found.end
    assert end.forest == ForestResults(end.forest.surrogate, end.forest.interactions), "nothing is drawn"
    parts = (
        end.forest.surrogate,
        end.forest.interactions,
        end.effects,
        found.fidelity,
        found.tunability,
        found.budget,
        found.noise,
    )
    assert all(isinstance(part, TooFew) for part in parts)
    assert all(isinstance(one, TooFew) for one in end.importances)


def test_the_first_of_several_metrics_is_analysed(study: _Study) -> None:
    study.add(0, 0.9)
    record = study.record.with_search(metric="val.accuracy,val.colour_mse")
    found = observations_from(record, study.store.trials(STUDY), study.store.epochs(STUDY))
    assert found.metric == "val.accuracy"
    assert found.score.tolist() == [0.9]
