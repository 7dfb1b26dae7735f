"""What trials need of a node: what is said of one that lacks something, before and during a sweep."""

import hashlib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
from optuna.trial import TrialState
from ray.exceptions import (
    GetTimeoutError,
    NodeDiedError,
    RayError,
    RaySystemError,
    RayTaskError,
    RuntimeEnvSetupError,
    WorkerCrashedError,
)
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from studies import small_plan

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import EncoderSettings, Experiment
from contrasweep.tuning.planning.resources import Machine
from contrasweep.tuning.ray import final_driver, nodes, searcher
from contrasweep.tuning.ray.nodes import (
    Answer,
    Needs,
    NodeLacks,
    complaint_about,
    lacking_anywhere,
    refuse_blind_nodes,
)
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.ray.tuner import ShowProgress
from contrasweep.tuning.store import ResultsStore, open_location, save_study


def needs_in(
    results: Path, data_root: Path | None = None, versions: dict[str, str] | None = None, **experiment: Any
) -> Needs:
    """Return what a run needs; the results folder holds the file `marker`."""
    location = open_location(results, writable=True)
    location.write("marker", b"")
    given = {"method": "infonce", "dataset": "digits", "epochs": 1, **experiment}
    return Needs(location, Experiment(**given), versions or {}, data_root)


def test_nodes_that_cannot_see_the_results_are_named(tmp_path: Path) -> None:
    needs = needs_in(tmp_path / "results")
    seen: list[str | None] = []

    def ask(needs: Needs, marker: str) -> dict[str, Answer]:
        seen.append(complaint_about(needs, marker))
        return {"a": None, "b": complaint_about(needs_in(tmp_path / "elsewhere"), marker)}

    with pytest.raises(InputError, match=r"node b: the results folder .*elsewhere.*s3://") as refused:
        refuse_blind_nodes(needs, ask)
    assert "node a" not in str(refused.value)
    assert seen == [None], "the driver's own folder has the marker"
    assert [file.name for file in (tmp_path / "results").iterdir()] == ["marker"], "and keeps no other"


def test_a_node_without_the_dataset_says_which(tmp_path: Path) -> None:
    said = complaint_about(needs_in(tmp_path, tmp_path / "none", dataset="cifar10"), "marker")
    assert said is not None
    assert "cifar10" in said


def test_a_node_without_the_file_of_weights_says_so(tmp_path: Path) -> None:
    weights = tmp_path / "weights.pt"
    weights.write_bytes(b"there")
    digest = hashlib.sha256(b"there").hexdigest()
    encoder = EncoderSettings(weights=str(weights), weights_sha256=digest)
    needs = needs_in(tmp_path, encoder=encoder)
    assert complaint_about(needs, "marker") is None
    weights.write_bytes(b"another")
    assert "weights.pt is another file than before" in (complaint_about(needs, "marker") or "")
    weights.unlink()
    assert "weights.pt: there is no such file" in (complaint_about(needs, "marker") or "")


def test_a_node_without_a_plugin_says_what_to_install(tmp_path: Path) -> None:
    stated = {"contrasweep-dcl": "0.1.0", "contrasweep-dcl adds": "method dcl"}
    assert complaint_about(needs_in(tmp_path, versions=stated, method="dcl"), "marker") == (
        "method 'dcl' comes from the plug-in contrasweep-dcl 0.1.0, which is not installed: "
        "`pip install contrasweep-dcl`"
    )


NO_TORCH = "ImportError: No module named torch"


def unloadable() -> RayTaskError:
    """Return the error of a task that cannot be unpickled on its node."""
    cause = RaySystemError(NO_TORCH, f"Traceback (most recent call last):\n  File ...\n{NO_TORCH}")
    return RayTaskError("_look", f"{cause}", cause, pid=1, ip="10.0.0.2").as_instanceof_cause()


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (unloadable(), f"contrasweep cannot be used there: {NO_TORCH}"),
        (RuntimeEnvSetupError("no room for it"), "contrasweep cannot be used there: no room for it"),
        (WorkerCrashedError(), r"a worker died there before it could look \(WorkerCrashedError\)"),
        (GetTimeoutError(), "it did not answer within 300 s"),
    ],
)
def test_a_node_that_cannot_answer_is_named_unless_it_has_left(
    answer: RayError, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = {name: name * 56 for name in "abc"}
    known = [{"NodeID": i, "NodeManagerAddress": name, "Resources": {"CPU": 1}} for name, i in ids.items()]
    still_there = iter([known, known[:2]])

    def get(name: str, timeout: float) -> None:
        if name != "a":
            raise answer

    class Asked:
        def options(self, scheduling_strategy: NodeAffinitySchedulingStrategy) -> "Asked":
            self.node = scheduling_strategy.node_id[0]
            return self

        def remote(self, needs: Needs, marker: str) -> str:
            return self.node

    fake = SimpleNamespace(
        remote=lambda **options: lambda function: Asked(), get=get, wait=lambda *asked, **limits: None
    )
    monkeypatch.setattr(nodes, "ray", fake)
    monkeypatch.setattr(nodes, "live_nodes", lambda: next(still_there))
    with pytest.raises(InputError, match=rf"node b \(bbbbbb\): {said}") as refused:
        refuse_blind_nodes(needs_in(tmp_path))
    assert "node a" not in str(refused.value)
    assert "cccccc" not in str(refused.value)


def test_a_node_lacks_nothing_for_being_silent_or_dead(tmp_path: Path) -> None:
    needs = needs_in(tmp_path)
    answers: dict[str, Answer] = {"a": None, "b": GetTimeoutError(), "c": NodeDiedError("c")}
    assert lacking_anywhere(needs, "study", lambda *_: answers) is None
    answers["d"] = "no data"
    assert lacking_anywhere(needs, "study", lambda *_: answers) == "node d cannot run trials: no data"


def late_node_lacks_torch(needs: Needs, study: str) -> str:
    """Stand for `lacking_anywhere` where a node came late without torch."""
    return f"node 10.0.0.2 cannot run trials: {NO_TORCH}"


@pytest.fixture
def on_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StoreSearcher:
    """A searcher of a sweep on a cluster, of which a late node lacks torch."""
    plan = small_plan(tmp_path)
    plan = replace(plan, resources=replace(plan.resources, machine=Machine((1,), (), "head:6379")))
    location, record = open_location(tmp_path, writable=True), plan.record()
    save_study(location, record)
    monkeypatch.setattr(searcher, "lacking_anywhere", late_node_lacks_torch)
    return StoreSearcher(plan, record, location, [])


def recover(searching: StoreSearcher, name: str) -> None:
    """Do what Tune does with a trial whose worker is gone: it begins the trial again."""
    ShowProgress(searching, None).on_trial_recover(0, [], SimpleNamespace(trial_id=name))


def assert_stopped_without_a_failure(searching: StoreSearcher, results: Path) -> None:
    assert searching.stopped_by == f"node 10.0.0.2 cannot run trials: {NO_TORCH}"
    assert [trial.state for trial in searching.study.trials] == [TrialState.RUNNING]
    assert ResultsStore(results).trials("small").num_rows == 0


def test_a_worker_that_cannot_start_on_a_late_node_stops_the_sweep(
    on_a_cluster: StoreSearcher, tmp_path: Path
) -> None:
    on_a_cluster.suggest("a")
    recover(on_a_cluster, "a")
    assert_stopped_without_a_failure(on_a_cluster, tmp_path)


def test_so_does_the_last_one_that_tune_tries(on_a_cluster: StoreSearcher, tmp_path: Path) -> None:
    on_a_cluster.suggest("a")
    on_a_cluster.on_trial_complete("a", error=True)
    assert_stopped_without_a_failure(on_a_cluster, tmp_path)


def test_so_does_one_that_follows_a_worker_that_died_at_work(
    on_a_cluster: StoreSearcher, tmp_path: Path
) -> None:
    on_a_cluster.suggest("a")
    on_a_cluster.on_trial_start("a")
    recover(on_a_cluster, "a")
    assert on_a_cluster.stopped_by is None, "a worker that was at work had all that it needed"
    on_a_cluster.on_trial_complete("a", error=True)
    assert_stopped_without_a_failure(on_a_cluster, tmp_path)


def test_a_final_run_that_cannot_start_on_a_late_node_has_not_failed(
    on_a_cluster: StoreSearcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def get(_: Any) -> None:
        raise unloadable()

    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(final_driver, "lacking_anywhere", late_node_lacks_torch)
    with pytest.raises(NodeLacks, match=r"node 10\.0\.0\.2 cannot run trials"):
        final_driver._check_end(None, on_a_cluster.suggest("a")["request"], on_cluster=True)
    assert ResultsStore(tmp_path).trials("small").num_rows == 0
