"""States are written while training goes on, as often as they are cheap, and a failed write is told."""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import wait as wait_for
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from trial_steps import Clock, drop_after, finish

from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.store import Location, StoreUnavailable
from contrasweep.tuning.training.pretrain import pretrain
from contrasweep.tuning.trials import checkpoints
from contrasweep.tuning.trials.checkpoints import (
    CHECKPOINT_SECONDS,
    QUICK_SECONDS,
    RAREST_SECONDS,
    Checkpoints,
)
from contrasweep.tuning.trials.trial import DataCache, Trial, TrialRequest

Make = Callable[..., Experiment]
Request = Callable[..., TrialRequest]


class State:
    """Bytes that take no time."""

    def dumped(self) -> bytes:
        return b"state"


def _save(saving: Checkpoints, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Save a state, which takes so many seconds to write."""
    work = Clock()
    monkeypatch.setattr(checkpoints.time, "perf_counter", work)

    def write(content: bytes) -> None:
        work.seconds += seconds

    saving.save(State, write)
    saving.wait()


@pytest.mark.parametrize(
    ("seconds", "interval"),
    [
        (0.0, CHECKPOINT_SECONDS),
        (QUICK_SECONDS, CHECKPOINT_SECONDS),
        (4 * QUICK_SECONDS, 4 * CHECKPOINT_SECONDS),
        (1e6, RAREST_SECONDS),
    ],
)
def test_slow_states_are_saved_less_often(
    seconds: float, interval: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    saving = Checkpoints(clock)
    clock.seconds = 100.0
    saving.begin()
    clock.seconds += CHECKPOINT_SECONDS
    assert saving.due(1), "nothing is known yet of how long it takes"
    _save(saving, monkeypatch, seconds)
    clock.seconds += interval - 1
    assert not saving.due(2)
    clock.seconds += 1
    assert saving.due(3)
    # A quick one brings the usual interval back.
    _save(saving, monkeypatch, 0.0)
    clock.seconds += CHECKPOINT_SECONDS
    assert saving.due(4)


def test_what_several_seeds_save_counts_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    saving = Checkpoints(clock)
    clock.seconds = CHECKPOINT_SECONDS
    for _ in range(3):
        assert saving.due(1)
        _save(saving, monkeypatch, QUICK_SECONDS)
        clock.seconds += 1
    clock.seconds = 3 * CHECKPOINT_SECONDS
    assert not saving.due(2)
    clock.seconds = 4 * CHECKPOINT_SECONDS
    assert not saving.due(2), "the seeds of an epoch get one answer"
    assert saving.due(3)


def test_a_copy_of_the_state_stays_what_it_was(experiment: Make, data: PreparedData) -> None:
    settings = experiment("moco-v2", {"optimizer.name": "adam", "optimizer.ema": 0.9})
    records = pretrain(settings, data=data)
    next(records)
    record = next(records)
    copied, whole = record.snapshot(), record.checkpoint()
    last = next(records)
    assert copied.dumped() == whole != last.checkpoint()
    (resumed,) = pretrain(settings, whole, data=data)
    assert resumed.metrics == last.metrics


def _held_up(monkeypatch: pytest.MonkeyPatch, act: Callable[[Callable[[], None]], None]) -> None:
    """Let `act` do, or not do, what writes a checkpoint."""
    write = Location.write

    def slow(self: Location, relative: str, content: bytes) -> None:
        if relative.startswith("checkpoints/"):
            act(lambda: write(self, relative, content))
        else:
            write(self, relative, content)

    monkeypatch.setattr(Location, "write", slow)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What holds writes up; it is open after the test, so that no thread waits for ever."""
    found = threading.Event()
    yield found
    found.set()


def _opened_by_waiting(monkeypatch: pytest.MonkeyPatch, gate: threading.Event) -> None:
    """Open the gate once someone waits for the writes."""
    wait = Checkpoints.wait

    def opening(self: Checkpoints) -> None:
        gate.set()
        wait(self)

    monkeypatch.setattr(Checkpoints, "wait", opening)


def test_training_goes_on_during_a_write_and_its_end_waits_for_it(
    request_of: Request,
    cache: DataCache,
    location: Location,
    gate: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, written = threading.Event(), []

    def wait(write: Callable[[], None]) -> None:
        begun.set()
        gate.wait()
        write()
        written.append(kept.exists())

    _held_up(monkeypatch, wait)
    clock, request = Clock(), request_of()
    kept = Path(location.path(request.checkpoint_path))
    trial = Trial(request, cache, clock=clock)
    trial.advance()
    clock.seconds = CHECKPOINT_SECONDS
    assert trial.advance().epoch == 1
    begun.wait()
    assert trial.advance().epoch == 2
    assert written == []
    _opened_by_waiting(monkeypatch, gate)
    assert trial.advance().finished
    assert written == [True]
    assert not kept.exists(), "nothing is written after the end"


def test_where_a_trial_may_be_stopped_its_state_is_written_first(
    request_of: Request, cache: DataCache, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stops it deletes its state; a later write would bring it back."""
    written = []

    def wait(write: Callable[[], None]) -> None:
        gate.wait()
        write()
        written.append(True)

    _held_up(monkeypatch, wait)
    clock, request = Clock(), replace(request_of(), flush_at=frozenset({2}))
    trial = Trial(request, cache, clock=clock)
    trial.advance()
    clock.seconds = CHECKPOINT_SECONDS
    trial.advance()
    assert written == []
    _opened_by_waiting(monkeypatch, gate)
    assert trial.advance().epoch == 2
    assert written == [True]
    trial.close()


def test_a_write_that_failed_is_told_after_the_next_epoch(
    request_of: Request, cache: DataCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(write: Callable[[], None]) -> None:
        raise StoreUnavailable("the bucket is gone")

    _held_up(monkeypatch, fail)
    clock = Clock()
    trial = Trial(request_of(), cache, clock=clock)
    trial.advance()
    clock.seconds = CHECKPOINT_SECONDS
    assert trial.advance().epoch == 1
    wait_for(trial._checkpoints._writes)
    with pytest.raises(StoreUnavailable, match="the bucket is gone"):
        trial.advance()


def test_the_end_of_a_trial_does_not_need_its_state(
    request_of: Request, cache: DataCache, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(write: Callable[[], None]) -> None:
        raise StoreUnavailable("the bucket was gone")

    clock = Clock()
    trial = Trial(request_of(), cache, clock=clock)
    for _ in range(2):
        trial.advance()
    clock.seconds = CHECKPOINT_SECONDS
    _held_up(monkeypatch, fail)
    trial.advance()
    monkeypatch.setattr(Checkpoints, "due", lambda self, epoch: False)
    assert trial.advance().finished
    assert "the bucket was gone" in caplog.text


class Killed(BaseException):
    """The process ends here."""


def test_a_death_during_a_write_leaves_the_state_before_it(
    request_of: Request, cache: DataCache, location: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = finish(Trial(request_of(0), cache))
    request = request_of(1)
    drop_after(request, cache, checkpointed=0)
    before = location.read(request.checkpoint_path)

    put_in_place = os.replace

    def killed(unfinished: Path, target: Path) -> None:
        if "checkpoints" in str(target):
            raise Killed
        put_in_place(unfinished, target)

    with monkeypatch.context() as patch:
        # The new file is written, but not yet in the place of the old one.
        patch.setattr("os.replace", killed)
        trial = Trial(request, cache, clock=Clock(step=RAREST_SECONDS))
        assert trial.advance().epoch == 1
        with pytest.raises(Killed):
            trial.advance()
    assert location.read(request.checkpoint_path) == before
    again = finish(Trial(request, cache, clock=Clock()))
    assert [report.epoch for report in again] == [1, 2, 3]
    assert [report.metrics for report in again] == [report.metrics for report in whole[1:]]


def test_the_kernels_of_an_optimizer_are_those_of_the_machine_that_goes_on(
    experiment: Make, data: PreparedData, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of a run on a GPU says that its optimizer is fused. On a CPU this changes the last digits."""
    settings = experiment("infonce", {"optimizer.name": "adam"})
    records = pretrain(settings, data=data)
    next(records)
    record = next(records)
    for group in record._run.optimizer.param_groups:
        group["fused"] = True
    (resumed,) = pretrain(settings, record.checkpoint(), data=data)
    optimizer = resumed._run.optimizer
    assert [group["fused"] for group in optimizer.param_groups] == [None]
    for group in record._run.optimizer.param_groups:
        group["fused"] = None
    assert resumed.metrics == next(records).metrics
    with monkeypatch.context() as patch:
        patch.setattr(torch.nn.Parameter, "is_cuda", True)
        begun = next(pretrain(settings, data=data))
    assert [group["fused"] for group in begun._run.optimizer.param_groups] == [True]
