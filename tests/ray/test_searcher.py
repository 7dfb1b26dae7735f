"""The searcher, without Ray: the order of trials, and the records in Optuna and in the store."""

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from optuna.trial import TrialState
from ray.exceptions import RayError, WorkerCrashedError
from ray.tune.search import Searcher
from studies import EPOCHS, TRIALS, small_plan

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.past_trials import past_trials
from contrasweep.tuning.ray.final_driver import _check_end
from contrasweep.tuning.ray.liveness import stopping_when_silent
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.results.trials import TrialOutcome, trial_outcomes
from contrasweep.tuning.store import (
    ResultsStore,
    WarmStartRecord,
    WarmTrialRecord,
    open_location,
    save_study,
)
from contrasweep.tuning.trials.trial import DataCache, Trial


@pytest.fixture
def searcher(tmp_path: Path) -> StoreSearcher:
    plan = small_plan(tmp_path)
    location, record = open_location(tmp_path, writable=True), plan.record()
    save_study(location, record)
    return StoreSearcher(plan, record, location, [])


def result(epoch: int, score: float, **more: Any) -> dict[str, Any]:
    return {"epoch": epoch, "score": score, "error": None, "finished": False, **more}


def _epochs(results: Path, trial: int) -> list[dict[str, Any]]:
    return [row for row in ResultsStore(results).epochs("small").to_pylist() if row["trial"] == trial]


def states(searcher: StoreSearcher) -> list[TrialState]:
    return [trial.state for trial in searcher.study.trials]


def test_proposes_the_plan_and_no_more(searcher: StoreSearcher) -> None:
    configs = [searcher.suggest(f"id{n}") for n in range(TRIALS)]
    assert [config["request"].trial for config in configs] == list(range(TRIALS))
    assert searcher.suggest("one-more") is None, "a trial that no worker has may have to be proposed again"
    for n in range(TRIALS):
        searcher.on_trial_start(f"id{n}")
    assert searcher.suggest("one-more") == Searcher.FINISHED


def test_a_trial_whose_worker_died_before_it_began_is_proposed_again(
    searcher: StoreSearcher, tmp_path: Path
) -> None:
    values = [searcher.suggest(name)["request"].values for name in ("first", "second")]
    searcher.on_trial_start("first")
    searcher.on_trial_complete("second", error=True)
    assert states(searcher) == [TrialState.RUNNING] * 2
    again = searcher.suggest("again")["request"]
    assert (again.trial, again.values) == (1, values[1])
    searcher.on_trial_complete("again", error=True)
    assert states(searcher) == [TrialState.RUNNING, TrialState.FAIL], "more than --max-failures, which is 1"
    (row,) = ResultsStore(tmp_path).trials("small").to_pylist()
    assert (row["trial"], row["status"], row["error"]) == (1, "failed", "its worker died")
    assert searcher.suggest("next")["request"].trial == 2


def test_workers_are_not_sent_the_trials_of_earlier_studies(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    earlier = WarmTrialRecord(values=plan.space.defaults(), state="completed", epochs={}, value=(0.5,))
    warm = plan.with_search(warm_start=WarmStartRecord(studies=("old",), trials=(earlier,)))
    location, record = open_location(tmp_path, writable=True), warm.record()
    searcher = StoreSearcher(warm, record, location, [])
    assert len(searcher.study.optuna_study.trials) == 1
    sent = searcher.suggest("a")["request"].study
    assert sent.require_search().warm_start == WarmStartRecord()
    assert (sent.seeds, sent.columns) == (record.seeds, record.columns)


@pytest.mark.parametrize(("tunes", "told"), [([1, 1], [1]), ([2], [0])])
def test_failures_before_a_trial_began_count_under_each_of_its_ray_ids(
    tmp_path: Path, tunes: list[int], told: list[int]
) -> None:
    plan = small_plan(tmp_path)
    location, record = open_location(tmp_path, writable=True), plan.record()
    save_study(location, record)
    earlier: list[int] = []
    failures = iter(tunes)
    searcher = StoreSearcher(
        plan,
        record,
        location,
        [],
        cause=lambda _, before: str(earlier.append(before)),
        failures=lambda _: next(failures),
    )
    for n in range(len(tunes)):
        assert searcher.suggest(f"id{n}")["request"].trial == 0
        searcher.on_trial_complete(f"id{n}", error=True)
    assert earlier == told
    assert states(searcher) == [TrialState.FAIL]


def test_endings_reach_optuna_and_the_store(searcher: StoreSearcher, tmp_path: Path) -> None:
    requests = {name: searcher.suggest(name)["request"] for name in ("done", "weak", "broken", "dead")}
    trial = Trial(requests["done"], DataCache())
    report = trial.advance()
    while not report.finished:
        report = trial.advance()
    searcher.on_trial_complete(
        "done", result(EPOCHS, 0.5, finished=True, **{"metrics/val.accuracy": report.metrics["val.accuracy"]})
    )
    weak = Trial(requests["weak"], DataCache())
    searcher.on_trial_result("weak", result(0, weak.advance().metrics["val.ridge_accuracy"]))
    # Ray passes the result at which the scheduler stops a trial to on_trial_complete only.
    searcher.on_trial_complete("weak", result(1, weak.advance().metrics["val.ridge_accuracy"]))
    searcher.on_trial_complete("broken", result(1, float("-inf"), error="it broke"))
    searcher.on_trial_start("dead")
    searcher.on_trial_complete("dead", None, error=True)
    assert states(searcher) == [TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL, TrialState.FAIL]
    assert searcher.study.trials[0].value == report.metrics["val.accuracy"]
    seen = {row["epoch"]: row["metric.val.ridge_accuracy"] for row in _epochs(tmp_path, trial=1)}
    assert searcher.study.trials[1].intermediate_values == {1: seen[1]}
    rows = {row["trial"]: row for row in ResultsStore(tmp_path).trials("small").to_pylist()}
    assert rows[0]["status"] == "completed"
    assert (rows[1]["status"], rows[1]["epoch"], rows[1]["rung"]) == ("stopped", 1, 1)
    assert (rows[3]["status"], rows[3]["error"]) == ("failed", "its worker died")
    assert dict(searcher.progress().counts) == {"completed": 1, "stopped": 1, "failed": 2}


def test_a_trial_whose_worker_died_after_it_recorded_the_end_has_completed(
    searcher: StoreSearcher, tmp_path: Path
) -> None:
    request = searcher.suggest("a")["request"]
    searcher.on_trial_start("a")
    trial, before = Trial(request, DataCache()), {}
    report = trial.advance()
    while not report.finished:
        before = result(report.epoch, 0.5, **{f"metrics/{name}": x for name, x in report.metrics.items()})
        report = trial.advance()
    searcher.on_trial_complete("a", before, error=True)
    (told,) = searcher.study.trials
    assert (told.state, told.value) == (TrialState.COMPLETE, report.metrics["val.accuracy"])
    assert told.intermediate_values[EPOCHS] == report.metrics["val.ridge_accuracy"]
    assert searcher.progress().best == (0, report.metrics["val.accuracy"])
    assert [path.name for path in (tmp_path / "exports").rglob("*.safetensors")] == ["encoder.safetensors"]


def test_the_best_is_the_one_that_the_selection_names(searcher: StoreSearcher) -> None:
    """No score of an epoch counts, of the cheap metric or not: the final score of completed trials does."""
    searcher.suggest("a")
    for epoch in range(3):
        searcher.on_trial_result("a", result(epoch, 0.99))
        assert searcher.progress().best is None
        assert searcher.progress().running == {0: epoch}
    final = {**result(2, 0.4), "metrics/val.accuracy": 0.5, "finished": True}
    searcher.on_trial_complete("a", final)
    assert searcher.progress().best == (0, 0.5)


def test_resumed_searcher_first_hands_out_what_was_interrupted(
    searcher: StoreSearcher, tmp_path: Path
) -> None:
    requests = [searcher.suggest(f"id{n}")["request"] for n in range(3)]
    for request in requests:
        Trial(request, DataCache()).advance()
    searcher.on_trial_complete("id1", result(1, 0.2))
    store = ResultsStore(tmp_path)
    plan = small_plan(tmp_path)
    tables = store.tables("small")
    past = past_trials(trial_outcomes(tables.trials, plan.record()), tables.epochs, plan.record())
    later = StoreSearcher(plan, store.study("small"), store.location, past)
    handed_out = [later.suggest(f"new{n}")["request"] for n in range(TRIALS - 1)]
    assert [request.trial for request in handed_out] == [0, *range(2, TRIALS)]
    assert [request.values for request in handed_out[:2]] == [requests[0].values, requests[2].values]
    for n in range(TRIALS - 1):
        later.on_trial_start(f"new{n}")
    assert later.suggest("one-more") == Searcher.FINISHED
    assert later.progress().done == 1


@pytest.fixture
def dead_ray() -> Iterator[None]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()
    with stopping_when_silent({"the raylet": port}, silence=600.0, poll=600.0):
        yield


def test_a_trial_that_ray_took_down_with_it_goes_on_later(
    searcher: StoreSearcher, tmp_path: Path, dead_ray: None
) -> None:
    Trial(searcher.suggest("lost")["request"], DataCache()).advance()
    searcher.on_trial_complete("lost", None, error=True)
    assert searcher.stopped_by is not None
    assert "the raylet has died" in searcher.stopped_by
    assert searcher.suggest("next") == Searcher.FINISHED
    assert [row["status"] for row in ResultsStore(tmp_path).trials("small").to_pylist()] == ["interrupted"]


def test_a_final_run_that_ray_took_down_with_it_has_not_failed(
    searcher: StoreSearcher, tmp_path: Path, dead_ray: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crashed(_: Any) -> None:
        raise WorkerCrashedError

    monkeypatch.setattr(ray, "get", crashed)
    with pytest.raises(RayError):
        _check_end(None, searcher.suggest("lost")["request"])
    assert ResultsStore(tmp_path).trials("small").num_rows == 0


def test_rows_of_a_trial_that_the_study_does_not_plan_are_refused(tmp_path: Path) -> None:
    plan = small_plan(tmp_path)
    held = TrialOutcome(TRIALS, (0,), "completed", 2, plan.space.defaults(), {}, None)
    epochs = plan.record().columns.epochs.empty_table()
    with pytest.raises(InputError, match=f"plans {TRIALS} trials, but the store holds trial {TRIALS}"):
        past_trials([held], epochs, plan.record())
