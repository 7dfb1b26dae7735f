"""Metrics that are better when they are smaller: every place that compares trials takes the smallest."""

from pathlib import Path

import numpy as np
import pytest
import torch

from contrasweep.tuning.methods.metrics import MEASURES, Measure, is_minimised
from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.ray.worker import report_of
from contrasweep.tuning.reports.answer import answer_section
from contrasweep.tuning.reports.figures import front_of
from contrasweep.tuning.results.best import best_final, rule_in_words
from contrasweep.tuning.results.candidates import candidates_of
from contrasweep.tuning.results.collapse import collapsed_trials
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.results.trials import trial_outcomes
from contrasweep.tuning.sensitivity.observations import observe
from contrasweep.tuning.transfer.measure import Measurement
from contrasweep.tuning.transfer.table import cells_of, not_beaten
from contrasweep.tuning.trials.trial import TrialReport
from tests.studies import Run, WrittenStudy, make_final_record, make_record

METRICS = ("train.loss", "val.alignment", "val.rankme", "val.feature_std")
NAME = "demo"


def written(folder: Path, scores: list[tuple[float, float]], metric: str = "val.alignment") -> WrittenStudy:
    """Write trials of (alignment, RankMe); before training both are 0.5."""
    search = {"trials": len(scores), "metric": metric, "rung_metric": metric.partition(",")[0]}
    study = WrittenStudy(folder, make_record(NAME, metrics=METRICS, search=search))
    for trial, (alignment, rank) in enumerate(scores):
        end = {"val.alignment": alignment, "val.rankme": rank, "val.feature_std": 0.4}
        start = {"val.alignment": 0.5, "val.rankme": 0.5}
        values = {"kernel": "cosine", "optimizer.lr": 0.1 + trial / 100}
        study.write(Run(trial, 0, values, {0: start, 1: end}, "completed", end))
    return study


def test_the_lowest_alignment_is_the_best(tmp_path: Path) -> None:
    study = written(tmp_path, [(0.3, 5.0), (0.1, 4.0), (0.2, 6.0), (0.7, 1.0)])
    found = best_trials(study.store, NAME, 4)
    assert [one.trial for one in found] == [1, 2, 0, 3]
    assert found[0].rule.startswith("lowest val.alignment")
    assert [one.beats_untrained for one in found] == [True, True, True, False]
    assert next(iter(candidates_of(study.store.trials(NAME), study.record).scores.items())) == (1, 0.1)
    data = read_study(study.store, NAME)
    assert [one.number for one in data.ranked] == [1, 2, 0, 3]
    assert data.best_so_far == ([0, 1], [0.3, 0.1])


def test_a_measure_says_itself_in_which_direction_it_is_better(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = [(0.3, 5.0), (0.1, 4.0), (0.2, 6.0)]
    assert best_trials(written(tmp_path / "larger", scores, "val.rankme").store, NAME)[0].trial == 2
    monkeypatch.setitem(MEASURES, "rankme", Measure("rankme", "", minimised=True))
    study = written(tmp_path / "smaller", scores, "val.rankme")
    assert best_trials(study.store, NAME)[0].trial == 1
    assert read_study(study.store, NAME).best_so_far == ([0, 1], [5.0, 4.0])
    assert report_of(TrialReport(1, {"val.rankme": 5.0}, 0.0), "val.rankme")["score"] == -5.0
    assert observe(study.store, NAME).metric == "-val.rankme"


@pytest.mark.parametrize("measure", MEASURES.values(), ids=lambda one: one.name)
def test_every_measure_is_known_on_both_splits(measure: Measure) -> None:
    for name in (f"val.{measure.name}", f"test.untrained_{measure.name}", measure.name):
        assert is_minimised(name) == measure.minimised


def test_the_front_of_alignment_and_rankme(tmp_path: Path) -> None:
    study = written(tmp_path, [(0.3, 5.0), (0.1, 4.0), (0.2, 6.0), (0.4, 3.0)], "val.alignment,val.rankme")
    assert candidates_of(study.store.trials(NAME), study.store.study(NAME)).front == {1, 2}
    front = front_of(read_study(study.store, NAME))
    assert front is not None
    assert [(one.trial, one.scores) for one in front.members] == [(1, (0.1, 4.0)), (2, (0.2, 6.0))]


def test_the_search_and_the_analysis_have_merits(tmp_path: Path) -> None:
    study = written(tmp_path, [(0.3, 5.0), (0.1, 4.0)], "val.alignment,val.rankme")
    tables = study.store.tables(NAME)
    past = past_trials(trial_outcomes(tables.trials, study.record), tables.epochs, study.record)
    assert [one.value for one in past] == [(-0.3, 5.0), (-0.1, 4.0)]
    assert [dict(one.epochs) for one in past] == [{1: -0.3}, {1: -0.1}]
    seen = observe(study.store, NAME)
    assert (seen.metric, seen.rung_metric, seen.untrained) == ("-val.alignment", "-val.alignment", -0.5)
    np.testing.assert_allclose(seen.score, [-0.3, -0.1])
    np.testing.assert_allclose(seen.curve[:, :2], [[-0.5, -0.3], [-0.5, -0.1]])
    np.testing.assert_allclose(seen.replicates.score, [-0.3, -0.1])


def test_the_scheduler_has_the_merit_too() -> None:
    report = TrialReport(1, {"val.alignment": 0.3, "val.rankme": 5.0}, 0.0)
    assert report_of(report, "val.alignment")["score"] == -0.3
    assert report_of(report, "val.rankme")["score"] == 5.0
    assert report_of(report, "val.lidar")["score"] == float("-inf")


@pytest.mark.parametrize("metric", ["val.alignment", "test.untrained_uniformity", "uniformity"])
def test_names_of_minimised_metrics(metric: str) -> None:
    assert is_minimised(metric)
    assert rule_in_words(metric).startswith("lowest ")
    assert best_final({0: 2.0, 1: 1.0}, metric) == (1, 1.0)


@pytest.mark.parametrize(
    "metric", ["val.rankme", "val.lidar", "val.feature_std", "val.colour_mse", "val.accuracy"]
)
def test_names_of_maximised_metrics(metric: str) -> None:
    assert not is_minimised(metric)
    assert best_final({0: 2.0, 1: 1.0}, metric) == (0, 2.0)


def test_trials_that_collapsed_are_named(tmp_path: Path) -> None:
    study = written(tmp_path, [(0.3, 5.0), (0.1, 1.1), (0.2, 1.3)])
    told = collapsed_trials(trial_outcomes(study.store.trials(NAME), study.record))
    assert told.startswith("Collapsed: Trials 1, 2 (of trial 1, val.rankme is 1.1:")
    assert collapsed_trials([]) == ""


def test_a_smaller_test_score_beats_the_untrained_encoder(tmp_path: Path) -> None:
    def measured(score: float, trained: bool) -> Measurement:
        scores = {"alignment": score}
        return Measurement("e", 0, trained, "digits", "knn", None, None, scores, torch.eye(2).long())

    assert not_beaten(cells_of([measured(0.3, True), measured(0.5, False)])) == ""
    told = "training did not beat the untrained encoder in the score"
    assert not_beaten(cells_of([measured(0.5, True), measured(0.3, False)])) == told
    study = written(tmp_path, [(0.3, 5.0)])
    final = {"test.alignment": 0.3, "test.untrained_alignment": 0.5}
    runs = [Run(0, seed, final=final, phase="final") for seed in (1, 2, 3)]
    WrittenStudy(tmp_path, make_final_record(f"{NAME}-final", metrics=[*final])).write(*runs)
    said = answer_section(read_study(study.store, NAME)).text
    assert "Training adds -0.2 (the same with each seed)." in said
