"""Sweeps on a real local Ray: the store after them, also when drivers died in the middle."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
import torch
from in_process import without_ray
from studies import EPOCHS, QUICK, TRIALS, driven, outcome, small_plan, tiny_plan
from tensorboard_server import asked_until, tensorboard

from contrasweep.data import load_test, whole_image
from contrasweep.models import load_encoder
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.experiment.statuses import ENDED
from contrasweep.tuning.planning.best_config import config_of
from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.planning.resume_check import Expected
from contrasweep.tuning.progress.states import RunsProgress, SweepProgress
from contrasweep.tuning.ray.final import final_runs
from contrasweep.tuning.ray.signals import Stopped
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.results.final_runs import summarise_runs
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.store.heartbeat import read_heartbeat
from contrasweep.tuning.trials import checkpoints

HERE = Path(__file__).parent
HPARAMS = "data/plugin/hparams"


def test_every_trial_ends_once_and_its_rows_are_whole(finished: tuple[Path, list[SweepProgress]]) -> None:
    results, _ = finished
    store = ResultsStore(results)
    trials = store.trials("small").to_pylist()
    assert [row["trial"] for row in trials] == list(range(TRIALS))
    assert {row["status"] for row in trials} <= {"completed", "stopped"}
    epochs = store.epochs("small").to_pylist()
    for row in trials:
        own = [epoch for epoch in epochs if epoch["trial"] == row["trial"]]
        assert [epoch["epoch"] for epoch in own] == list(range(row["epoch"] + 1))
        if row["status"] == "completed":
            assert row["epoch"] == EPOCHS
            assert row["metric.val.accuracy"] == own[-1]["metric.val.accuracy"]
        else:
            assert row["epoch"] in Halving().rungs(EPOCHS, warmup=0.0)
            assert row["rung"] == row["epoch"]
            assert row["metric.val.ridge_accuracy"] == own[-1]["metric.val.ridge_accuracy"]
    assert any(row["status"] == "stopped" for row in trials), "this study is meant to show both endings"


def test_trial_0_runs_the_defaults(finished: tuple[Path, list[SweepProgress]]) -> None:
    results, _ = finished
    plan = tiny_plan(results)
    first = ResultsStore(results).trials("small").to_pylist()[0]
    values = {name: first[f"hp.{name}"] for name in plan.space.names if first[f"hp.{name}"] is not None}
    assert values == plan.space.defaults()
    assert first["config"] == plan.experiment.identity()


def test_untrained_encoder_is_the_same_in_every_trial(finished: tuple[Path, list[SweepProgress]]) -> None:
    results, _ = finished
    epochs = ResultsStore(results).epochs("small").to_pylist()
    controls = {row["metric.val.accuracy"] for row in epochs if row["epoch"] == 0}
    assert len(controls) == 1


def test_search_rows_hold_nothing_of_the_test_split(finished: tuple[Path, list[SweepProgress]]) -> None:
    results, _ = finished
    store = ResultsStore(results)
    names = store.trials("small").column_names + store.epochs("small").column_names
    assert not [name for name in names if "test" in name]


def test_progress_counts_up_to_the_plan(finished: tuple[Path, list[SweepProgress]]) -> None:
    _, shown = finished
    assert shown[-1].done == shown[-1].planned == TRIALS
    assert [p.done for p in shown] == sorted(p.done for p in shown)
    scores = [progress.best[1] for progress in shown if progress.best is not None]
    assert scores == sorted(scores)


def test_the_driver_says_that_it_has_ended_and_leaves_two_files(
    finished: tuple[Path, list[SweepProgress]],
) -> None:
    results, _ = finished
    store = ResultsStore(results)
    heartbeat = read_heartbeat(store.location, "small")
    assert heartbeat is not None
    assert heartbeat.state == "ended"
    for kind in ("trials", "epochs"):
        assert len(list((results / kind / "study=small").glob("*.parquet"))) == 1
    assert not list((results / "checkpoints").rglob("*.pt"))


def test_tensorboard_has_a_folder_for_every_trial(finished: tuple[Path, list[SweepProgress]]) -> None:
    results, _ = finished
    folders = {path.parent.name for path in (results / "tensorboard" / "small").glob("*/events.*")}
    assert folders == {f"{trial:05d}-0" for trial in range(TRIALS)}


def test_a_finished_study_resumes_to_itself(finished: tuple[Path, list[SweepProgress]]) -> None:
    results, _ = finished
    before = outcome(results)
    assert sum(resume_sweep("small", results).counts.values()) == TRIALS
    assert outcome(results) == before


def test_resume_refuses_another_study(finished: tuple[Path, list[SweepProgress]]) -> None:
    results, _ = finished
    with pytest.raises(InputError, match=r"method was fair-cclk, is infonce.*trials was 8, is 9"):
        resume_sweep("small", results, expected=Expected(method="infonce", trials=9))


def test_interrupted_and_resumed_equals_never_interrupted(
    finished: tuple[Path, list[SweepProgress]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The driver ends in the first trial, in the middle and in the last: by Ctrl-C, SIGKILL and SIGTERM.

    The driver that is killed and the one that gets SIGTERM run on Ray; the undisturbed study did not.
    """
    monkeypatch.setattr(checkpoints, "CHECKPOINT_SECONDS", 0.0)
    results = tmp_path / "killed"
    store = ResultsStore(results)
    ended: dict[int, dict[str, Any]] = {}
    unfinished: set[int] = set()

    def check(state: str) -> None:
        nonlocal ended, unfinished
        rows = {row["trial"]: row for row in store.trials("small").to_pylist()}
        assert {trial: rows[trial] for trial in ended} == ended, "what had ended is as it was"
        assert store.studies()[0].state == state
        ended = {trial: row for trial, row in rows.items() if row["status"] in ENDED}
        unfinished |= rows.keys() - ended.keys()

    with without_ray(), pytest.raises(KeyboardInterrupt):
        run_sweep(tiny_plan(results), progress=_interrupt_after(0))
    check("interrupted")
    assert driven(results, "SIGKILL", 3).returncode == -signal.SIGKILL
    check("interrupted")
    with pytest.raises(Stopped, match="SIGTERM"):
        resume_sweep("small", results, progress=_interrupt_after(5, really=True))
    check("interrupted")
    with without_ray(), pytest.raises(KeyboardInterrupt):
        resume_sweep("small", results, progress=_interrupt_after(TRIALS - 1))
    check("interrupted")
    with without_ray():
        resume_sweep("small", results)
    check("ended")
    assert len(ended) == TRIALS
    assert outcome(results) == outcome(finished[0])
    # An attempt that goes on from a checkpoint writes later epochs only. A worker may outlive its driver
    # for a moment and end its trial.
    epochs = store.epochs("small").to_pylist()
    attempts = [{row["attempt"] for row in epochs if row["trial"] == trial} for trial in unfinished]
    assert sum(1 in own and len(own) > 1 for own in attempts) >= 2


def _interrupt_after(done: int, really: bool = False) -> Callable[[SweepProgress], None]:
    """Interrupt the sweep in the middle of a trial, once `done` trials have ended; `really` by a signal."""

    def show(progress: SweepProgress) -> None:
        if progress.done >= done and progress.running:
            if really:
                started = ray._private.worker._global_node.all_processes.keys()
                assert started >= {"gcs_server", "raylet"}
                assert not started & {"monitor", "log_monitor", "dashboard"}, "no sweep asks them anything"
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                raise KeyboardInterrupt

    return show


def test_extended_on_purpose_and_taken_over_by_another_driver(
    finished: tuple[Path, list[SweepProgress]], tmp_path: Path, in_process: None
) -> None:
    """Two trials more; while they run, another driver claims the study: the first stops."""
    results = tmp_path / "results"
    shutil.copytree(finished[0], results)
    heartbeat = results / "studies" / "small.heartbeat"
    before = outcome(results)

    def usurp(progress: SweepProgress) -> None:
        if progress.done == TRIALS and progress.running:
            other = {"driver": "another", "host": "h", "machine": None, "pid": 1, "state": "running"}
            heartbeat.write_text(json.dumps({**other, "time": 0.0}))

    with pytest.raises(SweepFailed, match="small stopped: another driver has taken the study over"):
        resume_sweep("small", results, extend=2, progress=usurp)
    assert json.loads(heartbeat.read_text())["driver"] == "another"
    rows = outcome(results)
    assert rows[:TRIALS] == before
    assert len(rows) == TRIALS + 1
    assert rows[-1]["status"] in ("interrupted", "completed"), "by its worker; the driver records nothing"

    heartbeat.write_text(heartbeat.read_text().replace('"running"', '"interrupted"'))
    done = resume_sweep("small", results, expected=Expected(trials=TRIALS + 2))
    assert sum(done.counts.values()) == TRIALS + 2
    rows = outcome(results)
    assert rows[:TRIALS] == before
    assert [row["trial"] for row in rows] == list(range(TRIALS + 2))
    assert len({row["config"] for row in rows}) == TRIALS + 2


def test_final_runs_use_fresh_seeds_and_are_not_repeated(
    finished: tuple[Path, list[SweepProgress]], tmp_path: Path
) -> None:
    results = tmp_path / "results"
    shutil.copytree(finished[0], results)
    study = resume_sweep("small", results)
    best = study.best()
    below = [f"val.accuracy<{best.score}"]
    assert study.best(2, below) == best_trials(ResultsStore(results), "small", 2, below)
    assert best not in study.best(2, below)
    runs = final_runs(best, seeds=2, concurrency=1)
    assert runs.study == "small-final"
    assert [row["seed"] for row in runs.rows] == [1, 2]
    assert {row["phase"] for row in runs.rows} == {"final"}
    summaries = summarise_runs(runs.rows)
    assert [summary.encoder for summary in summaries] == [f"fair-cclk, trial {best.trial}", "untrained"]
    assert all(summary.accuracy.n == 2 for summary in summaries)
    again = final_runs([config_of(best)], seeds=2, results=results, concurrency=1)
    assert [row["attempt"] for row in again.rows] == [row["attempt"] for row in runs.rows]
    encoder = load_encoder(
        results / "exports" / "small-final" / f"{best.trial:05d}-1" / "encoder.safetensors"
    )
    with torch.no_grad():
        features = encoder(whole_image(load_test("colour-digits").images[:4], 8))
    assert features.shape == (4, encoder.width)


def test_final_runs_that_another_driver_took_over_stop(
    finished: tuple[Path, list[SweepProgress]], tmp_path: Path
) -> None:
    results = tmp_path / "results"
    shutil.copytree(finished[0], results)
    heartbeat = results / "studies" / "again-final.heartbeat"
    best = replace(config_of(best_trials(ResultsStore(results), "small")[0]), study="again")

    def usurp(progress: RunsProgress) -> None:
        if not progress.done:
            return
        other = {"driver": "another", "host": "h", "machine": None, "pid": 1, "state": "running"}
        heartbeat.write_text(json.dumps({**other, "time": 0.0}))

    with pytest.raises(SweepFailed, match="again-final stopped: another driver has taken them over"):
        final_runs([best], seeds=2, first_seed=7, results=results, concurrency=1, progress=usurp)
    kept = ResultsStore(results).trials("again-final").to_pylist()
    assert [(row["seed"], row["status"]) for row in kept] == [(7, "completed")]
    heartbeat.write_text(heartbeat.read_text().replace('"running"', '"interrupted"'))
    runs = final_runs([best], seeds=2, first_seed=7, results=results, concurrency=1)
    assert [(row["seed"], row["attempt"]) for row in runs.rows] == [(7, 1), (8, 1)]


def test_a_study_whose_trials_all_fail_is_an_error(tmp_path: Path, in_process: None) -> None:
    plan = small_plan(tmp_path, "broken", trials=2, values={**QUICK, "optimizer.lr": 1e30})
    with pytest.raises(SweepFailed, match=r"no trial of broken finished \(2 failed\)") as failed:
        run_sweep(plan)
    assert "1e+30" in str(failed.value)
    assert " (2 of 2). `contrasweep show broken --results" in str(failed.value)
    rows = ResultsStore(tmp_path).trials("broken").to_pylist()
    assert [row["status"] for row in rows] == ["failed", "failed"]
    assert all("fair-cclk" in row["error"] and "1e+30" in row["error"] for row in rows)


def test_tensorboard_lists_trials_parameters_and_metrics(finished: tuple[Path, list[SweepProgress]]) -> None:
    results, _ = finished
    rows = ResultsStore(results).trials("small").to_pylist()
    statuses = ["STATUS_SUCCESS", "STATUS_FAILURE", "STATUS_UNKNOWN", "STATUS_RUNNING"]
    query = {"experimentName": "", "startIndex": 0, "sliceSize": 100, "colParams": []}
    with tensorboard(results / "tensorboard" / "small") as ask:
        groups = asked_until(
            lambda: ask(f"{HPARAMS}/session_groups", {**query, "allowedStatuses": statuses}),
            lambda answer: answer.get("totalSize") == TRIALS,
        )["sessionGroups"]
        experiment = ask(f"{HPARAMS}/experiment", {"experimentName": ""})
    assert {info["name"] for info in experiment["hparamInfos"]} == {
        name.removeprefix("hp.") for name in rows[0] if name.startswith("hp.")
    }
    assert "val/accuracy" in {info["name"]["tag"] for info in experiment["metricInfos"]}
    shown = {group["name"]: group for group in groups}
    assert set(shown) == {f"small/{row['trial']:05d}" for row in rows}, "the seeds of a trial are one group"
    for row in rows:
        group = shown[f"small/{row['trial']:05d}"]
        values = {name.removeprefix("hp."): row[name] for name in row if name.startswith("hp.")}
        assert set(group["hparams"]) == {name for name, value in values.items() if value is not None}
        assert group["hparams"]["kernel"] == row["hp.kernel"]
        assert group["hparams"]["lam"] == pytest.approx(row["hp.lam"])
        metrics = {metric["name"]["tag"]: metric["value"] for metric in group["metricValues"]}
        assert metrics["val/ridge_accuracy"] == pytest.approx(row["metric.val.ridge_accuracy"], abs=1e-6)
