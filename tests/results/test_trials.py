"""What became of a trial over its seeds, and that a stored study is read on any machine."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment.statuses import counts_in_words, trial_status
from contrasweep.tuning.planning.plan import plan_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.reports.matplotlib_figures import draw_study
from contrasweep.tuning.results.candidates import candidates_of
from contrasweep.tuning.results.failures import common_error, kinds_of_errors
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.results.trials import (
    Curve,
    attempt_spans,
    epoch_means,
    experiment_of,
    trial_outcomes,
    untrained_mean,
)
from contrasweep.tuning.store import StudyRecord, save_study
from contrasweep.tuning.trials.seeds import mean_report
from contrasweep.tuning.trials.trial import TrialReport
from tests.studies import CREATED, STUDY, PlannedStudy, Run, WrittenStudy, make_record, small_plan


@pytest.mark.parametrize(
    ("statuses", "seeds", "status"),
    [
        (["completed", "completed"], 2, "completed"),
        (["completed"], 2, "interrupted"),
        (["completed", "running"], 2, "running"),
        (["completed", "interrupted"], 2, "interrupted"),
        (["running", "interrupted"], 2, "running"),
        (["stopped", "completed"], 2, "stopped"),
        (["stopped", "running"], 2, "stopped"),
        (["failed", "interrupted"], 2, "failed"),
        (["failed", "stopped"], 2, "failed"),
        (["completed", "failed", "running"], 3, "failed"),
    ],
)
def test_the_status_of_a_trial_over_its_seeds(statuses: list[Any], seeds: int, status: str) -> None:
    assert trial_status(statuses, seeds) == status
    assert trial_status(statuses[::-1], seeds) == status


def test_counts_in_words_begin_with_the_trials_that_have_ended() -> None:
    counts = {"running": 1, "failed": 2, "completed": 1234, "stopped": 0}
    assert counts_in_words(counts) == "1,234 completed, 2 failed, 1 running"
    assert counts_in_words({}) == ""


@pytest.mark.parametrize("seconds", [-1e12, 1e12, -60.0])
def test_an_epoch_begins_between_1970_and_its_end_however_long_a_row_says_it_took(
    tmp_path: Path, seconds: float
) -> None:
    study = WrittenStudy(tmp_path, make_record())
    study.write(Run(curve={0: {}}, status="running", epoch_seconds=seconds))
    trials, epochs = study.store.trials("demo"), study.store.epochs("demo")
    ((began, ended),) = attempt_spans(trials.slice(1), epochs).values()
    assert ended == CREATED
    assert began == (datetime(1970, 1, 1, tzinfo=UTC) if seconds > 0 else CREATED)


@pytest.mark.parametrize(("epochs", "untrained"), [([0, 1], 0.25), ([1, 2], None), ([], None)])
def test_the_untrained_score_of_a_curve_is_that_of_epoch_0(
    epochs: list[int], untrained: float | None
) -> None:
    curve = Curve(0, np.array(epochs, dtype=float), np.array([0.25, 0.5][: len(epochs)]))
    assert curve.untrained == untrained


def _elsewhere(folder: Path) -> PlannedStudy:
    """A study of two trials that ran on hardware which this machine does not have."""
    study = PlannedStudy(small_plan(folder, metric="accuracy,colour_mse"))
    foreign = study.record.with_search(gpus=1.0, cpus=4096, workers=64, data_root="/nowhere/data")
    save_study(study.location, foreign, replace=True)
    for trial, score in enumerate((0.75, 0.5)):
        curve = {epoch: {"val.accuracy": value} for epoch, value in enumerate((0.25, 0.5, score))}
        study.write(Run(trial, curve=curve, final={"val.accuracy": score, "val.colour_mse": 9.0}))
    return study


def test_a_study_is_read_without_the_hardware_that_ran_it(tmp_path: Path) -> None:
    study = _elsewhere(tmp_path / "results")
    (best,) = best_trials(study.store, STUDY, top=1)
    assert (best.trial, best.score, best.untrained) == (0, 0.75, 0.25)
    assert candidates_of(study.store.trials(STUDY), study.store.study(STUDY)).front == {0}
    assert [trial.status for trial in read_study(study.store, STUDY).trials] == ["completed"] * 2
    draw_study(study.store, STUDY, tmp_path / "study.png")
    assert (tmp_path / "study.png").stat().st_size > 0
    with pytest.raises(InputError, match="this machine has"):
        plan_of(study.store.study(STUDY), str(tmp_path))


@pytest.mark.parametrize(
    ("method", "dataset"), [("fair-cclk", "colour-digits"), ("infonce", "digits"), ("cacr", "digits")]
)
def test_a_trial_s_experiment_is_what_its_settings_resolve_to(method: str, dataset: str) -> None:
    """From the record alone, from the plan, and by resolving all settings anew: one experiment."""
    plan = plan_sweep(method, dataset, trials=3, epochs=2, values={"batch_size": 64})
    record = StudyRecord.model_validate_json(plan.record().model_dump_json())
    study = plan.new_study()
    for _ in range(12):
        values = study.ask().values
        anew = resolve(method, dataset, {**plan.search.given, **values}, space=plan.space)
        assert experiment_of(record, values) == plan.experiment_of(values) == anew


def test_the_error_of_most_trials_is_told_by_its_last_line_and_how_many_had_it() -> None:
    errors = ["lost", None, "Traceback\nValueError: at 0.5, step 3", "ValueError: at 1e-3, step 40"]
    other = ["loss nan: m with {'kernel': 'rbf'}", "loss nan: m with {'kernel': 'cosine', 'lam': 1}"]
    assert common_error(other) == "loss nan: m (2 of 2)", "the values of one trial are not those of both"
    assert common_error(other[:1] * 2) == f"{other[0]} (2 of 2)"
    assert common_error(errors) == "ValueError: at 0.5, step 3 (2 of 4)"
    assert common_error([None, None]) is None


def test_errors_that_differ_in_numbers_and_values_are_one_kind() -> None:
    errors = [
        "loss nan at step 3: m with {'lam': 1e-3}",
        None,
        "killed",
        "loss nan at step 17: m with {'lam': 2}",
    ]
    assert kinds_of_errors(errors) == [(2, "loss nan at step 3: m"), (1, "killed")]
    common = [error.replace("{", "{'lr': 1e+30, ") for error in errors if error]
    told = [(2, "loss nan at step 3: m with {'lr': 1e+30}"), (1, "killed")]
    assert kinds_of_errors(common) == told, "what all of them have stays"
    unread = ["bad {a, b}", "bad {c}"]
    assert kinds_of_errors(unread) == [(2, "bad")]
    traced = "Traceback\n  line 12\nKeyError: 'a'"
    assert kinds_of_errors([traced, traced.replace("12", "40"), "  "]) == [(2, traced)]
    assert kinds_of_errors([]) == []


def test_the_mean_of_an_epoch_is_to_the_last_bit_what_the_sweep_reported(tmp_path: Path) -> None:
    """Sums in another order would make and break ties, and a resumed search would propose something else."""
    study = PlannedStudy(small_plan(tmp_path / "results"))
    scores = [[k / 144 for k in ks] for ks in ((1, 24, 100), (1, 39, 100), (1, 78, 100), (1, 87, 100))]
    for trial, of_seeds in enumerate(scores):
        for seed, score in enumerate(of_seeds):
            study.write(Run(trial, seed, curve={0: {"val.ridge_accuracy": score}}, status="interrupted"))
    curves = epoch_means(study.store.epochs(STUDY), study.record.with_search(seeds=3), "val.ridge_accuracy")
    live = [
        mean_report([TrialReport(0, {"score": one}, 0.0) for one in of_seeds]).metrics["score"]
        for of_seeds in scores
    ]
    assert [curves[trial].after(-1)[0] for trial in range(len(scores))] == live
    # From Python 3.12 on, `sum` corrects for rounding as it goes.
    assert any((a + b + c) / 3 != one for (a, b, c), one in zip(scores, live, strict=True))


def test_a_mean_needs_every_seed(tmp_path: Path) -> None:
    study = PlannedStudy(small_plan(tmp_path / "results"))
    record = study.record.with_search(seeds=2)
    for seed, scores in ((0, (0.25, 0.5)), (1, (0.75,))):
        curve = {epoch: {"val.ridge_accuracy": score} for epoch, score in enumerate(scores)}
        final = {"val.accuracy": 0.5 if seed else None}
        study.write(Run(0, seed, curve=curve, status="interrupted", final=final))
    curves = epoch_means(study.store.epochs(STUDY), record, "val.ridge_accuracy")
    assert curves[0].after(-1) == {0: 0.5}, "epoch 1 of one seed alone is no mean"
    (outcome,) = trial_outcomes(study.store.trials(STUDY), record)
    assert "val.accuracy" not in outcome.metrics
    assert outcome.seeds == (0, 1)


def test_the_mean_of_one_untrained_score_is_that_score() -> None:
    """It was less in the last digit for one of six such scores, and an equal trial beat it."""
    shares = [images / 270 for images in range(271)]
    assert [untrained_mean(dict.fromkeys(range(48), one)) for one in shares] == shares
    assert untrained_mean({0: 0.5, 1: float("nan"), 2: 0.75}) == 0.625
    assert untrained_mean({0: float("nan")}) is None
