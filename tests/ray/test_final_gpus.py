"""Final runs on GPUs: each try has a process of its own, and a run that found its GPU full runs again alone.

Ray is replaced by a stand-in that calls tasks at once and holds what each asked for.
"""

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray.exceptions import RayTaskError

from contrasweep.tuning.errors import GpuFault, SharedGpuFull
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.resources import Resources
from contrasweep.tuning.progress.tracker import RunsTracker
from contrasweep.tuning.ray import final_driver
from contrasweep.tuning.ray.record_boards import EpochBoard
from contrasweep.tuning.trials.trial import TrialRequest

HALF = Resources(concurrency=1, gpus=0.5)
FULL = RayTaskError("run", "trace", SharedGpuFull("too little memory"))


@dataclass(eq=False)
class Task:
    outcome: Any


class Ray:
    """Runs what `outcomes` say, in turn: None for a run that ended well, or its error."""

    def __init__(self, outcomes: list[Any]) -> None:
        self.outcomes = outcomes
        self.asked: list[dict[str, Any]] = []
        self.requests: list[TrialRequest] = []

    def remote(self, **options: Any) -> Any:
        def decorate(what: Any) -> Any:
            if what is EpochBoard:
                board = EpochBoard()
                return SimpleNamespace(
                    remote=lambda: SimpleNamespace(take=SimpleNamespace(remote=board.take))
                )
            return SimpleNamespace(options=lambda **more: SimpleNamespace(remote=start({**options, **more})))

        def start(asked: dict[str, Any]) -> Any:
            def call(request: TrialRequest, *more: Any) -> Any:
                self.asked.append(asked)
                self.requests.append(request)
                return Task(self.outcomes.pop(0))

            return call

        return decorate

    @staticmethod
    def wait(running: list[Any], timeout: float) -> tuple[list[Any], list[Any]]:
        return running[:1], running[1:]

    @staticmethod
    def get(task: Any) -> Any:
        outcome = getattr(task, "outcome", task)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def request(seed: int) -> TrialRequest:
    place: Any = None
    study: Any = SimpleNamespace(name="study-final")
    experiment = resolve("infonce", "digits", {"seed": seed})
    return TrialRequest(place, study, 0, experiment, {}, gpus=0.5)


def run(monkeypatch: pytest.MonkeyPatch, resources: Resources, outcomes: list[Any]) -> tuple[Ray, list[Any]]:
    ray, ended = Ray(outcomes), []

    @contextmanager
    def session(*_: Any) -> Any:
        yield Path("scratch")

    monkeypatch.setattr(final_driver, "ray", ray)
    monkeypatch.setattr(final_driver, "ray_session", session)
    monkeypatch.setattr(final_driver, "needs_of", lambda request: None)
    monkeypatch.setattr(final_driver, "gpus_of_ray", lambda: 1.0)
    monkeypatch.setattr(final_driver, "what_is_silent", lambda: None)
    monkeypatch.setattr(final_driver, "end_from_outside", lambda *about, **details: ended.append(details))
    tracker = RunsTracker(2, 0, slots=1)
    steps = list(final_driver.run_all([request(1), request(2)], resources, tracker, lambda *_: None))
    assert len(steps) == tracker.progress().done == 2
    return ray, ended


def test_a_run_that_found_its_gpu_full_runs_again_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    ray, ended = run(monkeypatch, HALF, [FULL, None, None])
    told = [(one.experiment.seed, one.gpus, one.shares_gpu) for one in ray.requests]
    assert told == [(1, 0.5, True), (2, 0.5, True), (1, 1.0, False)]
    assert [asked["num_gpus"] for asked in ray.asked] == [0.5, 0.5, 1.0]
    assert ended == []


def test_every_try_on_a_gpu_has_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """One run at a time on one machine has one too."""
    ray, _ = run(monkeypatch, HALF, [None, None])
    told = {name: ray.asked[0][name] for name in ("max_calls", "max_retries", "retry_exceptions")}
    assert told == {"max_calls": 1, "max_retries": 1, "retry_exceptions": [GpuFault]}


def test_a_run_whose_gpu_failed_again_has_failed_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fault = RayTaskError("run", "trace", GpuFault("the GPU failed"))
    _, ended = run(monkeypatch, HALF, [fault, None])
    assert ended == [{"error": "GpuFault: the GPU failed"}]
