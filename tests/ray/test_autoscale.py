"""Clusters that start nodes for trials that wait: nodes that come late are checked when they come."""

import os
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from studies import tiny_plan
from typer.testing import CliRunner

from contrasweep.data import DatasetMissing
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError, SweepStopped
from contrasweep.tuning.planning.resources import Machine, Resources
from contrasweep.tuning.ray import cluster, final_worker, nodes
from contrasweep.tuning.ray.nodes import NodeLacks, refuse_this_node
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.ray.sweep import create_study, resume_sweep, run_sweep
from contrasweep.tuning.ray.worker_group import RankActor
from contrasweep.tuning.store import Heartbeat, ResultsStore

COMING = Machine((0,), (0.0,), "head:6379", autoscales=True)
AUTOSCALED: dict[str, Any] = {"machine": COMING, "concurrency": 2, "device": "cpu", "trials": 2}


def no_dataset(name: str, root: Path | None) -> None:
    raise DatasetMissing(f"dataset {name} not found: put its files in /data")


def test_a_node_that_comes_without_the_dataset_stops_the_sweep_and_no_trial_fails(
    in_process: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as blind:
        blind.setattr(nodes, "check_available", no_dataset)
        with pytest.raises(
            SweepStopped, match=r"node \S+ cannot run trials: dataset .* not found"
        ) as stopped:
            run_sweep(tiny_plan(tmp_path, **AUTOSCALED))
    assert stopped.value.__notes__[-1].endswith("--resume --address head:6379 --autoscale` goes on.")
    store = ResultsStore(tmp_path)
    assert not [row for row in store.trials("small").to_pylist() if row["status"] == "failed"]
    done = resume_sweep("small", tmp_path, machine=COMING)
    assert (dict(done.counts), done.plan.resources.concurrency) == ({"completed": 2}, 2)
    first = {row["trial"]: row["attempt"] for row in store.trials("small").to_pylist()}
    assert first == {0: 1, 1: 1}, "the first attempts are the ones of the second driver"


def test_a_node_sees_the_results_by_the_heartbeat_of_the_study(tmp_path: Path) -> None:
    plan = tiny_plan(tmp_path, **AUTOSCALED)
    location, record = create_study(plan)
    config = StoreSearcher(plan, record, location, []).suggest("a")
    assert config["checks_node"]
    with pytest.raises(NodeLacks, match=r"the results folder .* cannot be seen from there"):
        refuse_this_node(config["request"])
    rank = RankActor(0, config["request"], "/nowhere", checks_node=True)
    rank.begin(config["request"])
    with pytest.raises(NodeLacks):
        rank.advance()
    rank.close()
    with pytest.raises(NodeLacks):
        final_worker.run_on_ray(config["request"], "the run", None, checks_node=True)
    with Heartbeat(location, record.name):
        refuse_this_node(config["request"])


def test_all_trials_wait_for_their_nodes_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("connect", "stopping_on_signals", "stopping_without_ray"):
        monkeypatch.setattr(cluster, name, lambda *_: nullcontext())
    monkeypatch.setattr(cluster, "refuse_blind_nodes", lambda needs: None)
    seen: list[str | None] = []
    for autoscales in (True, False):
        asked = Resources(7, machine=replace(COMING, autoscales=autoscales))
        with cluster.ray_session(asked, None):  # type: ignore[arg-type]
            seen.append(os.environ.get("TUNE_MAX_PENDING_TRIALS_PG"))
    assert seen == ["7", None]


@pytest.mark.parametrize("command", [["sweep", "infonce"], ["table", "cclk-t3"], ["run", "study"]])
def test_only_a_cluster_autoscales(command: list[str]) -> None:
    told = CliRunner().invoke(app, [*command, "--autoscale"])
    assert told.exit_code == 2
    assert "--autoscale goes with --address" in told.stderr


def test_a_sweep_says_what_it_needs_of_nodes_to_come(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--autoscale needs --concurrency"):
        tiny_plan(tmp_path, **{**AUTOSCALED, "concurrency": None})
