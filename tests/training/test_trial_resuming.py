"""A trial survives the death of its worker, and can be ended by someone else."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tensorboard.plugins.hparams.api_pb2 import STATUS_SUCCESS
from trial_steps import STUDY, Clock, drop_after, finish, metrics_of, row_of, scalars_of, session_statuses

from contrasweep.tuning.store import Location, ResultsStore
from contrasweep.tuning.trials.checkpoints import CHECKPOINT_SECONDS
from contrasweep.tuning.trials.trial import DataCache, Trial, TrialRequest, end_from_outside

Request = Callable[..., TrialRequest]


def test_a_checkpoint_is_kept_about_every_ten_seconds_and_not_longer_than_the_trial(
    request_of: Request, cache: DataCache, location: Location
) -> None:
    clock, request = Clock(), request_of()
    trial = Trial(request, cache, clock=clock)
    kept = Path(location.path(request.checkpoint_path))
    clock.seconds = 1000.0  # waiting for a worker is no training
    trial.advance()
    assert not kept.exists()
    clock.seconds += CHECKPOINT_SECONDS - 1
    trial.advance()
    assert not kept.exists()
    clock.seconds += 1
    trial.advance()
    trial._checkpoints.wait()
    assert kept.exists()
    assert trial.advance().finished
    assert not kept.exists()


@pytest.mark.parametrize("more", [0, 1])
def test_a_dropped_trial_goes_on_from_its_checkpoint(
    more: int,
    request_of: Request,
    cache: DataCache,
    store: ResultsStore,
    location: Location,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "contrasweep.tuning.store.writer.FLUSH_SECONDS", 0.0
    )  # the lost epochs are in the store, too
    whole = finish(Trial(request_of(0), cache))
    request = request_of(1)
    drop_after(request, cache, checkpointed=1, more=more)
    assert Path(location.path(request.checkpoint_path)).exists()
    again = finish(Trial(request, cache))
    assert [report.epoch for report in again] == [2, 3]
    assert [report.metrics for report in again] == [report.metrics for report in whole[2:]]
    epochs = [row for row in store.epochs(STUDY).to_pylist() if row["trial"] == 1]
    assert [(row["epoch"], row["attempt"]) for row in epochs] == [(0, 1), (1, 1), (2, 2), (3, 2)]
    assert [metrics_of(row) for row in epochs] == [report.metrics for report in whole]
    row = row_of(store, 1)
    assert (row["status"], row["attempt"], row["epoch"]) == ("completed", 2, 3)
    assert not Path(location.path(request.checkpoint_path)).exists()


def test_a_trial_dropped_without_a_checkpoint_begins_anew(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    dropped = Trial(request_of(), cache, clock=Clock())
    dropped.advance()
    dropped.advance()
    assert [report.epoch for report in finish(Trial(request_of(), cache))] == [0, 1, 2, 3]
    epochs = store.epochs(STUDY).to_pylist()
    assert [(row["epoch"], row["attempt"]) for row in epochs] == [(0, 2), (1, 2), (2, 2), (3, 2)]


def test_rows_reach_the_store_before_the_checkpoint_that_implies_them(
    request_of: Request, cache: DataCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    original = Location.write

    def spy(self: Location, relative: str, content: bytes) -> None:
        written.append(relative.split("/")[0])
        original(self, relative, content)

    monkeypatch.setattr(Location, "write", spy)
    drop_after(request_of(), cache, checkpointed=1)
    assert "checkpoints" in written
    first = written.index("checkpoints")
    assert written[first - 1] == "epochs"


def test_rows_are_in_the_store_where_the_trial_may_be_stopped(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    trial = Trial(replace(request_of(), flush_at=frozenset({1})), cache, clock=Clock())
    held = []
    for _ in range(3):
        trial.advance()
        held.append(store.epochs(STUDY)["epoch"].to_pylist())
    assert held == [[], [0, 1], [0, 1]]


def test_a_damaged_checkpoint_fails_its_trial_and_no_more(
    request_of: Request, cache: DataCache, store: ResultsStore, location: Location
) -> None:
    request = request_of()
    location.write(request.checkpoint_path, b"garbage")
    report = Trial(request, cache).advance()
    assert report.error is not None
    assert "checkpoint" in report.error
    assert (row_of(store)["status"], row_of(store)["error"]) == ("failed", report.error)


def test_another_experiment_s_checkpoint_fails_its_trial(
    request_of: Request, cache: DataCache, store: ResultsStore, location: Location
) -> None:
    drop_after(request_of(0), cache, checkpointed=1)
    other = request_of(1, {"temperature": 0.9})
    location.write(other.checkpoint_path, location.read(request_of(0).checkpoint_path))
    report = Trial(other, cache).advance()
    assert report.error is not None
    assert "another experiment" in report.error
    assert row_of(store, 1)["status"] == "failed"


def test_tensorboard_shows_a_resumed_trial_as_one_curve(request_of: Request, cache: DataCache) -> None:
    request = request_of()
    drop_after(request, cache, checkpointed=1, more=1)
    finish(Trial(request, cache))
    assert [step for step, _ in scalars_of(request, "val/ridge_accuracy")] == [0, 1, 2, 3]


def test_a_trial_that_the_scheduler_stopped_is_ended_from_outside(
    request_of: Request, cache: DataCache, store: ResultsStore, location: Location
) -> None:
    request = request_of()
    drop_after(request, cache, checkpointed=1)
    assert end_from_outside(request, "stopped", rung=1) == "stopped"
    row = row_of(store)
    assert (row["status"], row["epoch"], row["rung"], row["attempt"]) == ("stopped", 1, 1, 2)
    assert row["hp.temperature"] == request.values["temperature"]
    assert not Path(location.path(request.checkpoint_path)).exists()
    assert session_statuses(request) == [STATUS_SUCCESS]


def test_a_trial_whose_worker_died_at_once_is_recorded(request_of: Request, store: ResultsStore) -> None:
    request = request_of(2)
    assert end_from_outside(request, "failed", error="its worker died") == "failed"
    row = row_of(store, 2)
    assert (row["status"], row["error"], row["epoch"]) == ("failed", "its worker died", None)


def test_an_end_that_the_trial_recorded_itself_stands(
    request_of: Request, cache: DataCache, store: ResultsStore
) -> None:
    finish(Trial(request_of(), cache))
    assert end_from_outside(request_of(), "failed", error="too late") == "completed"
    assert (row_of(store)["status"], row_of(store)["error"]) == ("completed", None)


def test_an_interrupted_trial_keeps_the_checkpoint_it_will_go_on_from(
    request_of: Request, cache: DataCache, location: Location
) -> None:
    request = request_of()
    drop_after(request, cache, checkpointed=1)
    end_from_outside(request, "interrupted")
    assert Path(location.path(request.checkpoint_path)).exists()
    assert [report.epoch for report in finish(Trial(request, cache))] == [2, 3]
