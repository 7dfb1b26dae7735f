"""What a tracker is told of runs: their times, settings and ends, and how W&B shows them."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.store import Heartbeat
from contrasweep.tuning.track.runs import runs_of
from contrasweep.tuning.track.tracking import track, tracker_at
from tests.studies import (
    CREATED,
    STUDY,
    PlannedStudy,
    Run,
    WrittenStudy,
    make_final_record,
    make_record,
    scored,
    small_plan,
    write_run,
)


def after(seconds: float) -> Any:
    return CREATED + timedelta(seconds=seconds)


def test_a_study_ends_with_its_last_trial_and_names_its_search(tmp_path: Path) -> None:
    study = WrittenStudy(tmp_path, make_record(search={"trials": 2}))
    study.write(scored(), scored())
    (cut_off, *_), (_, first, _) = ([*runs_of(study.store, "demo")] for _ in range(2))
    assert (cut_off.status, cut_off.started, cut_off.ended) == ("interrupted", CREATED, None)
    assert (first.started, first.ended) == (after(0), after(8))
    with Heartbeat(study.location, "demo", interval=3600):
        assert next(iter(runs_of(study.store, "demo"))).status == "running"
    ended = next(iter(runs_of(study.store, "demo")))
    assert (ended.status, ended.ended) == ("completed", after(18))
    told = {name: ended.params[name] for name in ("method", "dataset", "sampler", "scheduler", "seed")}
    assert told == {
        "method": "fair-cclk",
        "dataset": "colour-digits",
        "sampler": "tpe",
        "scheduler": "asha",
        "seed": 0,
    }
    assert (ended.tags["runs"], ended.tags["trials"], ended.tags["version.torch"]) == ("2", "2", "2.9")


def test_a_study_of_several_metrics_names_them_all(tmp_path: Path) -> None:
    both = "val.accuracy,val.colour_mse"
    study = WrittenStudy(tmp_path, make_record(search={"metric": both}))
    assert next(iter(runs_of(study.store, "demo"))).params["metric"] == both


def test_a_trial_of_several_seeds_lasts_from_the_first_to_the_last_and_has_all_means(tmp_path: Path) -> None:
    record = make_final_record(metrics=("test.accuracy", "test.f1"))
    final = WrittenStudy(tmp_path, record)
    for seed, score, later in ((1, 0.8, 0), (2, 0.6, 100)):
        # A run starts at the time of its record.
        then = record.model_copy(update={"created": after(later)})
        scores = {"test.accuracy": score, "test.f1": score / 2}
        write_run(final.location, then, Run(0, seed, final=scores, phase="final"))
    _, trial, *_ = runs_of(final.store, "demo-final")
    assert trial.final == pytest.approx({"test.accuracy": 0.7, "test.f1": 0.35})
    assert (trial.kind, trial.seeds, trial.status) == ("trial", 2, "completed")
    assert (trial.started, trial.ended) == (after(0), after(108))


def test_the_scores_of_an_epoch_are_those_that_the_curve_has(tmp_path: Path) -> None:
    study = PlannedStudy(small_plan(tmp_path))
    study.write(scored((0.5, 0.6, 0.7)))
    _, run = runs_of(study.store, STUDY)
    last = replace(run, final={"val.ridge_accuracy": 0.9, "val.auc": 0.3}).points[-1]
    assert (last.epoch, last.metrics["val.ridge_accuracy"], last.metrics["val.auc"]) == (2, 0.7, 0.3)


def test_a_score_from_before_training_is_not_taken_for_that_of_a_stopped_trial(tmp_path: Path) -> None:
    study = PlannedStudy(small_plan(tmp_path))
    study.write(scored((0.5, 0.6)), scored((0.5, 0.3), "stopped"))
    _, completed, stopped = runs_of(study.store, STUDY)
    first = {"val.ridge_accuracy": 0.5, "val.untrained_accuracy": 0.5}
    assert [point.metrics for point in stopped.points] == [first, {"val.ridge_accuracy": 0.3}]
    last = {"val.ridge_accuracy": 0.6, "val.accuracy": 0.6}
    assert [point.metrics for point in completed.points] == [first, last]


def test_wandb_groups_seeds_by_their_trial_and_knows_settings_and_ends(
    tmp_path: Path, wandb: dict[str, dict[str, Any]]
) -> None:
    study = PlannedStudy(small_plan(tmp_path, seeds=2))
    study.write(
        scored((0.5, 0.6), trial=0, seed=3),
        scored((0.5, 0.6), "stopped", trial=0, seed=4),
        scored((0.5,), "running", trial=1, seed=3),
    )
    track(study.store, STUDY, tracker_at("wandb"))
    by_name = {run["name"]: run for run in wandb.values()}
    assert {name: (run["job_type"], run["exit_code"]) for name, run in by_name.items()} == {
        "trial 0, seed 3": ("trial 0", 0),
        "trial 0, seed 4": ("trial 0", 0),
        "trial 1, seed 3": ("trial 1", 255),
    }
    config = by_name["trial 0, seed 4"]["config"]
    assert (config["seed"], config["seeds"], config["encoder.name"]) == (4, 2, "small-conv")


def test_wandb_gets_a_run_again_until_it_has_ended(tmp_path: Path, wandb: dict[str, dict[str, Any]]) -> None:
    study = PlannedStudy(small_plan(tmp_path))
    study.write(scored((0.5, 0.6)), scored((0.5,), "running"))
    tracker = tracker_at("wandb")
    assert track(study.store, STUDY, tracker) == (3, 2)
    assert track(study.store, STUDY, tracker) == (3, 1), "the trial that has not ended may have grown"


def test_wandb_forgets_the_error_of_a_trial_that_ran_again(
    tmp_path: Path, wandb: dict[str, dict[str, Any]]
) -> None:
    study = PlannedStudy(small_plan(tmp_path))
    for number, error in enumerate(("out of memory", "another error", None), 1):
        ended = scored((0.5, 0.6)) if error is None else scored((0.5,), "failed", error=error)
        study.write(replace(ended, trial=0, attempt=number))
        track(study.store, STUDY, tracker_at("wandb"))
        (run,) = wandb.values()
        assert run["summary"].get("error") == error
    assert (run["summary"]["status"], run["exit_code"]) == ("completed", 0)
