"""What runs post for the driver: epochs, beginnings, records and steps."""

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from contrasweep.tuning.errors import GpuFault, InputError, SweepFailed, TrainingDiverged
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.progress.tracker import RunsTracker
from contrasweep.tuning.ray import final_driver, final_worker, trainer
from contrasweep.tuning.ray.record_boards import STARTED, Board, EpochBoard, Row
from contrasweep.tuning.ray.trainer import STEP_SECONDS, every, now_and_then
from contrasweep.tuning.ray.tuner import TICK, ShowProgress
from contrasweep.tuning.trials.trial import TrialReport
from contrasweep.tuning.trials.worker_warnings import WarnOnce

RUN = "trial 0, seed 1"


def test_a_worker_that_starts_late_hides_no_epoch() -> None:
    board = EpochBoard()
    board.post(RUN, STARTED)
    assert board.take() == ({RUN: STARTED}, [])
    board.post(RUN, 0)
    board.post(RUN, STARTED)
    assert board.take() == ({RUN: 0}, [])


def test_final_runs_tell_when_their_worker_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    board, tracker = EpochBoard(), RunsTracker(1, 0, slots=1)
    monkeypatch.setattr(final_driver.ray, "get", lambda taken: taken)
    handle = SimpleNamespace(take=SimpleNamespace(remote=board.take))
    tracker.begin(RUN, 4)
    stages = []
    for epoch in (None, STARTED, 0):
        if epoch is not None:
            board.post(RUN, epoch)
        final_driver._take(handle, tracker, WarnOnce())
        stages.append(tracker.progress().stage)
    assert stages == ["starting workers", "scoring the untrained encoder", None]


def test_a_group_that_starts_anew_does_not_train_a_failed_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray Train restarts a group after any error of a worker: the run would fail again, at full cost."""
    board, trained = EpochBoard(), []

    def run_one(request: Any, tell: Any) -> TrialReport:
        trained.append(request)
        return TrialReport(3, {}, 0.0, error="ValueError: told")

    posts = {name: SimpleNamespace(remote=getattr(board, name)) for name in ("post", "fail", "error", "warn")}
    request: Any = SimpleNamespace(trial=0, experiment=SimpleNamespace(seed=1), gpus=0)
    monkeypatch.setattr(final_worker, "run_one", run_one)
    monkeypatch.setattr(final_driver.ray, "get", lambda taken: taken)
    group = SimpleNamespace(rank=0, world=2, once=lambda compute: compute())
    monkeypatch.setattr(final_worker, "group_ranks", lambda: group)
    reports = [final_worker.run_on_ray(request, RUN, SimpleNamespace(**posts)) for _ in range(2)]
    assert len(trained) == 1
    assert [one.error for one in reports] == ["ValueError: told"] * 2
    assert not reports[1].finished


@pytest.mark.parametrize(
    ("error", "posted", "raised"),
    [
        (SweepFailed("the plug-in's line"), "SweepFailed", True),
        (InputError("too few images"), "InputError", True),
        (TrainingDiverged("NaN"), "TrainingDiverged", False),
        (GpuFault("an assertion"), None, True),
        (OSError("the disk"), None, True),
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_an_error_that_a_new_group_would_meet_again_is_posted_by_the_first_worker(
    error: Exception, posted: str | None, raised: bool, rank: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pretrain(*_: Any, **__: Any) -> Any:
        raise error

    board = Board(None)
    names = ("post", "post_step", "state", "warn")
    calls = {name: SimpleNamespace(remote=getattr(board, name)) for name in names}
    monkeypatch.setattr(trainer, "pretrain", pretrain)
    monkeypatch.setattr(trainer.ray, "get", lambda taken: taken)
    monkeypatch.setattr(trainer, "group_ranks", lambda: SimpleNamespace(rank=rank, world=2))
    experiment = resolve("infonce", "digits", {"epochs": 2})
    resources = AskedResources(1, 1, 2, 0.0).resources()
    config = {"experiment": experiment, "resources": resources, "board": SimpleNamespace(**calls)}
    with pytest.raises(type(error)) if raised else nullcontext():
        trainer._post({**config, "seconds": 0.0, "data_root": None})
    rows, _, _ = board.take()
    assert [(row.kind, row.error) for row in rows] == ([(posted, str(error))] if posted and not rank else [])


def test_the_latest_step_is_told_until_its_epoch_ends() -> None:
    board = Board(None)
    board.post_step((1, 3, 9))
    board.post_step((1, 7, 9))
    assert board.take() == ([], (1, 7, 9), [])
    assert board.take() == ([], None, [])
    row = Row(1, 2, {})
    board.post_step((1, 9, 9))
    board.post(row, b"state")
    assert board.take() == ([row], None, [])


def test_the_state_is_kept_until_the_next_and_travels_when_asked_for() -> None:
    board = Board(b"given")
    assert board.state() == b"given"
    for state in (None, b"of epoch 1", None):
        board.post(Row(0, 9, {}), state)
    assert board.state() == b"of epoch 1"
    assert not any(isinstance(part, bytes) for part in board.take())


def test_epochs_that_a_new_group_repeats_count_once() -> None:
    board = Board(None)
    for epoch in (0, 1, 2, 1, 2, 3):
        board.post(Row(epoch, 3, {}), None)
    board.post(Row(0, 3, {}, "loss nan"), None)
    assert [row.epoch for row in board.take()[0]] == [0, 1, 2, 3, 0]


def test_workers_save_their_state_as_often_as_it_is_wanted() -> None:
    clock = SimpleNamespace(now=0.0)
    always, seldom = every(0.0, lambda: clock.now), every(10.0, lambda: clock.now)
    said = []
    for clock.now in (1.0, 9.0, 11.0, 12.0, 21.0):
        said.append((always(), seldom()))
    assert said == [(True, False), (True, False), (True, True), (True, False), (True, True)]


def test_a_worker_posts_a_step_now_and_then_and_the_last() -> None:
    posted: list[Any] = []
    board = SimpleNamespace(post_step=SimpleNamespace(remote=posted.append))
    clock = SimpleNamespace(now=0.0)
    post = now_and_then(board, lambda: clock.now)
    for step in range(1, 10):
        clock.now += STEP_SECONDS / 4
        post(1, step, 9)
    assert posted == [(1, 4, 9), (1, 8, 9), (1, 9, 9)]


def test_a_tick_shows_that_the_worker_of_a_trial_is_there() -> None:
    started: list[str] = []
    shown: list[Any] = []
    progress = SweepProgress(1, 1, "m")
    searcher: Any = SimpleNamespace(on_trial_start=started.append, progress=lambda: progress)
    clock = SimpleNamespace(now=0.0)
    callback = ShowProgress(searcher, shown.append, lambda: clock.now)
    callback.on_trial_start(0, [], SimpleNamespace(trial_id="a"))
    callback.on_step_end(0, [])
    assert (started, shown) == (["a"], [])
    clock.now = TICK
    callback.on_step_end(0, [])
    assert shown == [progress]
