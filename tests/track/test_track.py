"""A study in a tracker: every value is the store's, nothing is there twice, and growth is followed."""

import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.store import Heartbeat, ResultsStore
from contrasweep.tuning.track import tracking
from contrasweep.tuning.track.runs import TrackedRun, runs_of
from contrasweep.tuning.track.tracker import TrackerFailed
from contrasweep.tuning.track.tracking import check_tracker, follow, track, tracker_at
from tests.studies import PlannedStudy, Run, WrittenStudy, make_final_record, scored, small_plan

STUDY = "study-1"


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    """A search with a completed, a stopped, a failed and a running trial."""
    study = PlannedStudy(small_plan(tmp_path / "results"))
    study.write(
        scored((0.5, 0.6, 0.7)),
        scored((0.4, 0.3), "stopped", rung=1),
        scored((0.4,), "failed", error="it broke"),
        scored((0.4, 0.5), "running"),
    )
    return study.store


class Recorder:
    """A tracker that remembers what it was sent."""

    def __init__(self) -> None:
        self.sent: dict[str, TrackedRun] = {}

    def send(self, run: TrackedRun) -> bool:
        assert run.parent is None or run.parent in self.sent, "its parent was sent before"
        new = self.sent.get(run.key) != run
        self.sent[run.key] = run
        return new


def test_runs_are_the_rows_of_the_store(store: ResultsStore) -> None:
    study, *trials = runs_of(store, STUDY)
    assert (study.kind, study.parent, study.params["method"]) == ("study", None, "fair-cclk")
    assert study.params["encoder.name"] == "small-conv", (
        "settings that are not searched are told of the study"
    )
    assert [run.kind for run in trials] == ["run"] * 4
    assert {run.parent for run in trials} == {study.key}
    assert [run.status for run in trials] == ["completed", "stopped", "failed", "interrupted"]
    assert [[point.epoch for point in run.points] for run in trials] == [[0, 1, 2], [0, 1], [0], [0, 1]]
    assert trials[0].params == {"kernel": "cosine", "optimizer.lr": 0.1, **_others(store)}
    assert trials[2].tags["error"] == "it broke"


def _others(store: ResultsStore) -> dict[str, Any]:
    row = store.trials(STUDY).to_pylist()[0]
    names = {name.removeprefix("hp."): value for name, value in row.items() if name.startswith("hp.")}
    return {name: value for name, value in names.items() if value is not None}


def test_seeds_stand_below_their_trial(tmp_path: Path) -> None:
    study = PlannedStudy(small_plan(tmp_path, seeds=2))
    study.write(scored((0.5, 0.6), trial=0, seed=0), scored((0.5, 0.8), trial=0, seed=1))
    _, trial, *seeds = runs_of(study.store, STUDY)
    assert (trial.kind, trial.final["val.accuracy"], trial.curve) == ("trial", pytest.approx(0.7), ())
    assert [(run.kind, run.parent, run.params["seed"]) for run in seeds] == [
        ("run", trial.key, 0),
        ("run", trial.key, 1),
    ]


def test_final_runs_have_test_scores_and_room_for_more_seeds(tmp_path: Path) -> None:
    final = WrittenStudy(tmp_path, make_final_record())
    final.write(Run(3, 7, final={"test.accuracy": 0.8}, phase="final"))
    _, trial, run = runs_of(final.store, "demo-final")
    assert (trial.kind, run.kind) == ("trial", "run")
    assert run.points[-1].metrics == {"test.accuracy": 0.8}


def test_a_study_is_followed_until_its_driver_ends(store: ResultsStore) -> None:
    tracker, seen = Recorder(), []
    with Heartbeat(store.location, STUDY) as heartbeat:
        looks: Iterator[int] = iter(range(3))

        def wait(seconds: float) -> None:
            if next(looks) == 1:
                heartbeat.__exit__(None, None, None)

        follow(store, STUDY, tracker, wait, lambda runs, changed: seen.append((runs, changed)))
    assert seen[0] == (5, 5)
    assert seen[1] == (5, 0)
    assert seen[2][1] >= 1, "the study has ended"
    assert len(seen) == 3


def test_what_a_driver_writes_during_its_last_look_is_copied_too(store: ResultsStore) -> None:
    with Heartbeat(store.location, STUDY) as heartbeat:

        class Ending(Recorder):
            def send(self, run: TrackedRun) -> bool:
                if not self.sent:
                    heartbeat.__exit__(None, None, None)
                return super().send(run)

        looks: list[int] = []
        follow(store, STUDY, Ending(), lambda seconds: None, lambda runs, changed: looks.append(runs))
    assert len(looks) == 2


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("mlfow", "Did you mean 'mlflow'?"),
        ("mlflow:", "lacks what follows the colon"),
        ("wandb:http://here", "takes no address"),
        ("sqlite:///here.db", "give --to mlflow:sqlite:///here.db"),
        ("mlflow:here.db", "a database is given as --to mlflow:sqlite:///here.db"),
    ],
)
def test_a_wrong_target_is_refused(target: str, says: str) -> None:
    with pytest.raises(InputError) as refused:
        check_tracker(target)
    assert says in str(refused.value)


def test_a_tracker_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracking, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'contrasweep\[mlflow\]'"):
        check_tracker("mlflow:file:here")


@pytest.fixture
def mlflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """Return a function that connects to an MLflow store of files. (A database takes seconds to be made.)"""
    pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    return lambda: tracker_at(f"mlflow:{(tmp_path / 'mlruns').as_uri()}", "here")


def milliseconds(time: datetime) -> Any:
    return pytest.approx(time.timestamp() * 1000, rel=0, abs=1)


def _all(tracker: Any) -> dict[str, Any]:
    found = tracker._client.search_runs([tracker._experiment])
    return {run.info.run_name: run for run in found}


def test_mlflow_has_the_values_of_the_store_once(store: ResultsStore, mlflow: Callable[[], Any]) -> None:
    assert track(store, STUDY, mlflow()) == (5, 5)
    tracker = mlflow()
    assert track(store, STUDY, tracker)[1] == 0, "nothing is sent twice, by another process either"
    runs = _all(tracker)
    assert set(runs) == {STUDY, "trial 0", "trial 1", "trial 2", "trial 3"}
    rows = store.epochs(STUDY).to_pylist()
    for trial in range(4):
        run, row = runs[f"trial {trial}"], store.trials(STUDY).to_pylist()[trial]
        assert run.data.tags["mlflow.parentRunId"] == runs[STUDY].info.run_id
        assert run.info.start_time == milliseconds(row["started"])
        assert row["finished"] is None or run.info.end_time == milliseconds(row["finished"])
        for name in ("val.ridge_accuracy", "val.accuracy"):
            history = tracker._client.get_metric_history(run.info.run_id, name)
            own = {row["epoch"]: row[f"metric.{name}"] for row in rows if row["trial"] == trial}
            if name == "val.accuracy":
                assert run.data.metrics["val.untrained_accuracy"] == own.pop(0)
            assert {one.step: one.value for one in history} == {
                epoch: value for epoch, value in own.items() if value is not None
            }
            assert len(history) == len({one.step for one in history})
    statuses = [runs[f"trial {trial}"].info.status for trial in range(4)]
    assert statuses == ["FINISHED", "FINISHED", "FAILED", "KILLED"]
    assert runs["trial 0"].data.params["optimizer.lr"] == "0.1"
    assert runs["trial 2"].data.tags["contrasweep.error"] == "it broke"


def test_mlflow_has_each_value_at_the_end_of_its_epoch(
    store: ResultsStore, mlflow: Callable[[], Any]
) -> None:
    study, run, *_ = runs_of(store, STUDY)
    ends = {epoch: run.started + timedelta(hours=epoch) for epoch in range(3)}
    tracker = mlflow()
    for one in (study, replace(run, curve=[replace(point, time=ends[point.epoch]) for point in run.curve])):
        tracker.send(one)
    held = _all(tracker)["trial 0"].info.run_id
    history = tracker._client.get_metric_history(held, "val.ridge_accuracy")
    assert {one.step: one.timestamp for one in history} == {
        epoch: milliseconds(end) for epoch, end in ends.items()
    }


def test_of_the_log_of_mlflow_only_warnings_come_through(
    store: ResultsStore, mlflow: Callable[[], Any]
) -> None:
    tracker, seen = mlflow(), BufferingHandler(100)
    log = logging.getLogger("mlflow")
    log.addHandler(seen)
    before = log.level

    class Client:
        def __getattr__(self, name: str) -> Any:
            log.getChild("store").info("Creating initial MLflow database tables...")
            log.getChild("store").warning("The database is old")
            raise OSError("no room")

    tracker._client = Client()
    try:
        with pytest.raises(TrackerFailed):
            track(store, STUDY, tracker)
    finally:
        log.removeHandler(seen)
    assert [record.getMessage() for record in seen.buffer] == ["The database is old"]
    assert log.level == before


def test_mlflow_gets_what_a_study_has_gained(tmp_path: Path, mlflow: Callable[[], Any]) -> None:
    study = PlannedStudy(small_plan(tmp_path / "results"))
    study.write(scored((0.5, 0.6), "running"))
    tracker = mlflow()
    track(study.store, STUDY, tracker)
    study = PlannedStudy(replace(study.plan, results=str(tmp_path / "later")))
    study.write(scored((0.5, 0.6, 0.7)))
    record = replace_created(study.store, tmp_path / "results")
    assert record
    assert track(study.store, STUDY, tracker)[1] >= 1
    run = _all(tracker)["trial 0"]
    history = tracker._client.get_metric_history(run.info.run_id, "val.ridge_accuracy")
    assert [(one.step, one.value) for one in history] == [(0, 0.5), (1, 0.6), (2, 0.7)]
    assert run.info.status == "FINISHED"


def test_mlflow_gets_the_means_over_further_seeds(tmp_path: Path, mlflow: Callable[[], Any]) -> None:
    final, tracker = WrittenStudy(tmp_path, make_final_record()), mlflow()
    # The second time the study, its trial and the new seed: the study says how many runs it has.
    for seed, score, new in ((7, 0.8, 3), (8, 0.6, 3)):
        final.write(Run(3, seed, final={"test.accuracy": score}, phase="final"))
        assert track(final.store, "demo-final", tracker)[1] == new
        assert track(final.store, "demo-final", tracker)[1] == 0
    run = _all(tracker)["trial 3"]
    history = tracker._client.get_metric_history(run.info.run_id, "test.accuracy")
    assert [(one.step, one.value) for one in history] == [(1, 0.8), (2, pytest.approx(0.7))]
    assert run.data.metrics["test.accuracy"] == pytest.approx(0.7)


def test_mlflow_follows_a_trial_that_runs_again(tmp_path: Path, mlflow: Callable[[], Any]) -> None:
    study, tracker = PlannedStudy(small_plan(tmp_path)), mlflow()
    study.write(scored((0.5, 0.9), "failed", error="out of memory"))
    track(study.store, STUDY, tracker)
    study.write(scored((0.5, 0.6), "failed", error="another error", attempt=2))
    assert track(study.store, STUDY, tracker)[1] == 1
    assert _all(tracker)["trial 0"].data.tags["contrasweep.error"] == "another error"
    study.write(scored((0.5, 0.7, 0.8), attempt=3))
    assert track(study.store, STUDY, tracker)[1] == 1
    assert track(study.store, STUDY, tracker)[1] == 0
    run = _all(tracker)["trial 0"]
    history = tracker._client.get_metric_history(run.info.run_id, "val.ridge_accuracy")
    assert {one.step: one.value for one in history} == {0: 0.5, 1: 0.7, 2: 0.8}
    assert run.data.metrics["val.ridge_accuracy"] == 0.8
    assert (run.info.status, run.data.tags.get("contrasweep.error")) == ("FINISHED", None)


def test_mlflow_follows_a_seed_that_runs_again(tmp_path: Path, mlflow: Callable[[], Any]) -> None:
    study, tracker = PlannedStudy(small_plan(tmp_path, seeds=2)), mlflow()
    study.write(*(replace(scored((0.5, 0.6)), trial=0, seed=seed) for seed in (0, 1)))
    track(study.store, STUDY, tracker)
    study.write(replace(scored((0.5, 0.8)), trial=0, seed=1, attempt=2))
    assert track(study.store, STUDY, tracker)[1] == 2
    assert _all(tracker)["trial 0"].data.metrics["val.ridge_accuracy"] == pytest.approx(0.7)


def replace_created(store: ResultsStore, other: Path) -> bool:
    """Both plans are of one moment, so their studies are one for a tracker."""
    return store.study(STUDY).created == ResultsStore(other).study(STUDY).created


def test_values_that_are_no_numbers_reach_mlflow(tmp_path: Path, mlflow: Callable[[], Any]) -> None:
    study = PlannedStudy(small_plan(tmp_path / "results"))
    study.write(scored((0.5, math.nan)))
    tracker = mlflow()
    track(study.store, STUDY, tracker)
    run = _all(tracker)["trial 0"]
    values = [one.value for one in tracker._client.get_metric_history(run.info.run_id, "val.ridge_accuracy")]
    assert values[0] == 0.5
    assert math.isnan(values[1])


def test_mlflow_that_does_not_answer_is_an_error_in_words(tmp_path: Path) -> None:
    pytest.importorskip("mlflow")
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(TrackerFailed, match="MLflow took no more"):
        tracker_at(f"mlflow:sqlite:///{file}/inside/it.db")


def test_wandb_gets_a_run_for_each_seed_and_goes_on_where_it_was(
    store: ResultsStore, wandb: dict[str, dict[str, Any]]
) -> None:
    for _ in range(2):
        track(store, STUDY, tracker_at("wandb", "mine"))
    assert len(wandb) == 4
    first = next(run for run in wandb.values() if run["name"] == "trial 0")
    assert (first["project"], first["group"], first["job_type"]) == ("mine", STUDY, "trial 0")
    assert first["exit_code"] == 0
    assert sorted(first["logged"]) == [0, 1, 2]
    assert first["config"]["kernel"] == "cosine"
    failed = next(run for run in wandb.values() if run["name"] == "trial 2")
    assert (failed["exit_code"], failed["summary"]["error"]) == (1, "it broke")


def test_wandb_gets_test_scores_that_come_after_the_last_epoch(
    store: ResultsStore, wandb: dict[str, dict[str, Any]]
) -> None:
    study, run, *_ = runs_of(store, STUDY)
    tracker = tracker_at("wandb")
    for one in (study, replace(run, status="running", final={}), replace(run, final={"test.accuracy": 0.8})):
        tracker.send(one)
    (told,) = wandb.values()
    assert sorted(told["logged"]) == [0, 1, 2]
    assert told["summary"]["test.accuracy"] == 0.8


def test_the_command_says_how_much_was_new(
    store: ResultsStore, mlflow: Callable[[], Any], tmp_path: Path
) -> None:
    words = ["track", STUDY, "--to", f"mlflow:{(tmp_path / 'mlruns').as_uri()}"]
    words += ["--results", str(tmp_path / "results")]
    first, second = (CliRunner().invoke(app, words) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    assert "5 runs in the tracker, including the study itself: all sent." in first.output
    assert "nothing is new." in second.output
    refused = CliRunner().invoke(app, ["track", "study-2", *words[2:]])
    assert refused.exit_code == 2
    assert "Did you mean 'study-1'?" in refused.output
