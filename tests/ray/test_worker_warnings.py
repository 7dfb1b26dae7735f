"""Warnings of workers reach the driver, each kind once."""

import logging
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from contrasweep.tuning.ray import final_driver, final_worker
from contrasweep.tuning.ray.watch import TellWarnings
from contrasweep.tuning.ray.worker import report_of
from contrasweep.tuning.trials.trial import TrialReport
from contrasweep.tuning.trials.worker_warnings import (
    MOST_KINDS,
    KeptWarnings,
    Warned,
    WarnOnce,
    passing_on_warnings,
)

OURS = logging.getLogger("contrasweep.data.datasets")


@pytest.fixture(autouse=True)
def same_handlers() -> Iterator[None]:
    before = logging.getLogger().handlers[:]
    yield
    logging.getLogger().handlers[:] = before


def test_warnings_are_passed_on_and_nothing_else() -> None:
    sent: list[Warned] = []
    with passing_on_warnings(sent.append):
        OURS.warning("%d of %d", 6, 10)
        OURS.error("the store has it")
        OURS.info("not needed")
        logging.getLogger("my_plugin").warning("100 % of it")
    OURS.warning("too late")
    assert sent == [
        Warned(OURS.name, "%d of %d", "6 of 10"),
        Warned("my_plugin", "100 % of it", "100 % of it"),
    ]


def test_a_warning_with_wrong_arguments_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])  # pytest's own raises
    sent: list[Warned] = []
    with passing_on_warnings(sent.append):
        OURS.warning("%d", "x")
    assert not sent
    assert "Logging error" in capsys.readouterr().err


def test_a_worker_sends_the_first_of_each_kind_and_no_flood() -> None:
    sent: list[Warned] = []
    with passing_on_warnings(sent.append):
        for step in range(100):
            OURS.warning("step %d", step)
            logging.getLogger("my_plugin").warning(f"step {step}")
    assert [one.text for one in sent if one.logger == OURS.name] == ["step 0"]
    assert len(sent) == 1 + MOST_KINDS


def test_a_callback_logs_what_comes_with_a_result(caplog: pytest.LogCaptureFixture) -> None:
    tell = TellWarnings()
    for _ in range(2):
        tell.on_trial_result(0, [], None, {"warned": [Warned(OURS.name, "told", "told")]})
    assert [record.getMessage() for record in caplog.records] == ["told"]


def test_kept_warnings_are_taken_once() -> None:
    kept = KeptWarnings()
    OURS.warning("%s", "first")
    assert [one.text for one in kept.take()] == ["first"]
    assert kept.take() == []


def test_a_worker_logs_as_before(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever reads the log of a worker finds tracebacks there."""
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    KeptWarnings()
    OURS.error("failed")
    assert capsys.readouterr().err == "failed\n"


def test_the_driver_logs_the_first_of_each_kind(caplog: pytest.LogCaptureFixture) -> None:
    tell = WarnOnce()
    tell([Warned(OURS.name, "trial %d", "trial 3"), Warned("my_plugin", "100 %", "100 %")])
    tell([Warned(OURS.name, "trial %d", "trial 4"), Warned(OURS.name, "%s", "other")])
    tell([Warned("other_plugin", "100 %", "100 %")])
    told = [(record.name, record.getMessage()) for record in caplog.records]
    own = "contrasweep.tuning.trials.worker_warnings"
    assert told == [
        (OURS.name, "trial 3"),
        (own, "my_plugin: 100 %"),
        (OURS.name, "other"),
        (own, "other_plugin: 100 %"),
    ]


def test_a_report_carries_warnings_to_tune() -> None:
    warned = Warned(OURS.name, "told", "told")
    result = report_of(TrialReport(1, {"m": 0.5}, 0.0, warned=(warned,)), "m")
    assert (result["warned"], result["done"]) == ([warned], False)
    lost = report_of(TrialReport(0, {}, 0.0), "m", "the store is gone")
    assert (lost["lost"], lost["done"]) == ("the store is gone", True)


@pytest.mark.parametrize("rank", [0, 1])
def test_final_runs_tell_what_their_first_worker_warns_of(
    rank: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    board = final_driver.EpochBoard()

    def run_one(request: Any, tell: Any) -> TrialReport:
        OURS.warning("told")
        return TrialReport(1, {}, 0.0)

    calls = {name: SimpleNamespace(remote=getattr(board, name)) for name in ("post", "error", "warn", "take")}
    group = SimpleNamespace(rank=rank, world=2, once=lambda compute: compute())
    monkeypatch.setattr(final_worker, "run_one", run_one)
    monkeypatch.setattr(final_worker.ray, "get", lambda taken: taken)
    monkeypatch.setattr(final_worker, "group_ranks", lambda: group)
    request: Any = SimpleNamespace(trial=0, experiment=SimpleNamespace(seed=1), gpus=0)
    final_worker.run_on_ray(request, "the run", SimpleNamespace(**calls))
    caplog.clear()
    tracker = final_driver.RunsTracker(1, 0, slots=1)
    tracker.begin("the run", 1)
    final_driver._take(SimpleNamespace(**calls), tracker, WarnOnce())
    assert [record.getMessage() for record in caplog.records] == ["told"] * (rank == 0)


def test_runs_in_this_process_warn_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def run_one(request: Any, tell: Any) -> None:
        for step in range(3):
            OURS.warning("step %d", step)
            OURS.error("failed")

    monkeypatch.setattr(final_driver, "run_one", run_one)
    request: Any = SimpleNamespace(trial=0, experiment=SimpleNamespace(seed=1, epochs=1))
    tracker = final_driver.RunsTracker(2, 0, slots=1)
    for _ in final_driver._run_here([(request, "one"), (request, "other")], tracker, lambda: None):
        pass
    told = [record.getMessage() for record in caplog.records]
    assert (told.count("step 0"), told.count("failed"), len(told)) == (1, 6, 7)
    OURS.warning("step %d", 1)
    assert caplog.records[-1].getMessage() == "step 1"
