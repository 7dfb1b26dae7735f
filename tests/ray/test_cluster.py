"""A sweep on three nodes of which two die, and the checks of a cluster before any work."""

import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ray.cluster_utils import Cluster
from studies import small_plan
from typer.testing import CliRunner

from contrasweep.data import Share
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resources import AskedResources, Machine
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray import cluster as cluster_module
from contrasweep.tuning.ray.cluster import cluster_at, our_code
from contrasweep.tuning.ray.nodes import take_share_of_node
from contrasweep.tuning.ray.reserved import bundles
from contrasweep.tuning.ray.sweep import run_sweep, telling_how_to_go_on
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.training.checkpoint import checkpoint_epoch
from contrasweep.tuning.training.pretrain import pretrain
from tests.threads import torch_threads

TWO_NODES = Machine((4, 2), (1.0, 0.0), "head:6379")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("127.0.0.1:9", r"no Ray cluster answers at 127\.0\.0\.1:9 .*ray start --head"),
        ("nowhere.invalid:6379", r"no Ray cluster answers at nowhere\.invalid:6379"),
        ("ray://127.0.0.1:10001", r"driver must be in the cluster.*the whole command there"),
        ("head", r"takes auto, HOST:PORT or ray://HOST:PORT, given 'head'"),
    ],
)
def test_an_address_with_no_cluster_says_what_to_start(address: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        cluster_at(address)


def test_trials_fill_the_nodes_and_none_spans_two() -> None:
    assert AskedResources(None, 1, device="cpu", machine=TWO_NODES).resources().concurrency == 6
    assert AskedResources(None, 3, device="cpu", machine=TWO_NODES).resources().concurrency == 1
    assert AskedResources(None, 1, machine=TWO_NODES).resources().concurrency == 1, "there is one GPU"
    assert AskedResources(2, 2, gpus=0.0, machine=TWO_NODES).resources().machine == TWO_NODES


@pytest.mark.parametrize(
    ("concurrency", "cpus", "workers", "gpus"),
    [(7, 1, 1, 0.0), (2, 3, 1, 0.0), (None, 5, 1, 0.0), (1, 2, 4, 0.0), (3, 1, 1, 0.5), (None, 1, 2, 1.0)],
)
def test_more_than_the_cluster_has_is_refused_with_what_it_has(
    concurrency: int | None, cpus: int, workers: int, gpus: float
) -> None:
    with pytest.raises(InputError, match=r"head:6379 has 6 cpus \(4, 2 by node\) and 1 GPU: room"):
        AskedResources(concurrency, cpus, workers, gpus, machine=TWO_NODES).resources()


def test_a_gpu_and_its_cores_are_on_one_node() -> None:
    machine = Machine((64, 8, 8), (0.0, 2.0, 2.0), "head:6379")
    assert AskedResources(None, 2, 1, 1.0, machine=machine).resources().concurrency == 4
    assert AskedResources(None, 8, 1, 1.0, machine=machine).resources().concurrency == 2
    with pytest.raises(InputError, match="room for 0"):
        AskedResources(None, 16, 1, 1.0, machine=machine).resources()


def test_workers_of_a_trial_are_on_one_node_if_they_must_be() -> None:
    """With three cores on each of two nodes, three trials of two workers fit, or two that span no nodes."""
    apart = Machine((3, 3), (), "head:6379")
    together = replace(apart, one_node=True)
    two_workers = AskedResources(workers=2, gpus=0.0)
    spread, packed = (replace(two_workers, machine=one).resources() for one in (apart, together))
    assert (spread.concurrency, packed.concurrency) == (3, 2)
    assert (bundles(spread).strategy, bundles(packed).strategy) == ("PACK", "STRICT_PACK")
    coming = replace(together, autoscales=True)
    assert AskedResources(8, 1, 2, 0.0, machine=coming).resources().one_node
    with pytest.raises(
        InputError, match=r"4 workers of 1 cpu each on one node were asked for; .* room for 0"
    ):
        AskedResources(1, 1, 4, 0.0, machine=together).resources()


def test_one_node_with_gpus() -> None:
    machine = Machine((64, 64), (4.0, 2.0), "head:6379", one_node=True)
    assert AskedResources(None, 1, 3, 1.0, machine=machine).resources().concurrency == 1
    assert AskedResources(None, 1, 2, 1.0, machine=machine).resources().concurrency == 3
    assert AskedResources(None, 1, 2, 0.5, machine=machine).resources().concurrency == 6


@pytest.mark.parametrize("command", [["sweep", "infonce"], ["table", "cclk-t3"], ["run", "study"]])
def test_one_node_is_for_clusters(command: list[str]) -> None:
    told = CliRunner().invoke(app, [*command, "--workers", "2", "--one-node"])
    assert told.exit_code == 2
    assert "--one-node goes with --address" in told.stderr


def test_the_command_that_goes_on_keeps_to_one_node(tmp_path: Path) -> None:
    place = Machine((4, 4), (), "head:6379", one_node=True)
    with pytest.raises(KeyboardInterrupt) as stopped, telling_how_to_go_on(["a"], "x", tmp_path, place):
        raise KeyboardInterrupt
    assert stopped.value.__notes__[-1].endswith("--resume --address head:6379 --one-node` goes on.")


def test_a_worker_takes_the_part_of_its_node_that_its_gpu_is(monkeypatch: pytest.MonkeyPatch) -> None:
    here = SimpleNamespace(get_node_id=lambda: "b")
    gpus = {"a": {"GPU": 2.0}, "b": {"GPU": 8.0}}
    nodes = [{"NodeID": name, "Resources": resources} for name, resources in gpus.items()]
    monkeypatch.setattr("contrasweep.tuning.ray.nodes.ray", SimpleNamespace(get_runtime_context=lambda: here))
    monkeypatch.setattr("contrasweep.tuning.ray.nodes.live_nodes", lambda: nodes)
    taken: list[Share] = []
    monkeypatch.setattr("contrasweep.tuning.ray.nodes.take_share", taken.append)
    take_share_of_node(0.0)
    take_share_of_node(0.25)
    assert taken == [Share(0.25, 8.0)]


@pytest.fixture
def three_nodes() -> Iterator[Cluster]:
    """A head that runs no trials, and three nodes of one core.

    This process keeps the mode of authentication of its first cluster. So the nodes take it from there.
    """
    running = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for _ in range(3):
            _add_node(running)
        yield running
    finally:
        running.shutdown()


def _add_node(cluster: Cluster) -> None:
    """Ray gives a node 30 s to start, which is too short on a busy machine."""
    for _ in range(2):
        with suppress(Exception):
            cluster.add_node(num_cpus=1)
            return
    cluster.add_node(num_cpus=1)


def test_trials_of_nodes_that_die_go_on_elsewhere_each_exactly_once(
    three_nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers run the driver's code: it is a copy that saves after every epoch, which the test sees."""
    monkeypatch.chdir(tmp_path)
    always_saves = tmp_path / "code" / "contrasweep"
    shutil.copytree(our_code(), always_saves, ignore=shutil.ignore_patterns("__pycache__"))
    module = always_saves / "tuning" / "trials" / "checkpoints.py"
    code = module.read_text()
    assert code.count("CHECKPOINT_SECONDS = 10.0") == 1
    module.write_text(code.replace("CHECKPOINT_SECONDS = 10.0", "CHECKPOINT_SECONDS = 0.0"))
    monkeypatch.setattr(cluster_module, "our_code", lambda: always_saves)
    machine = cluster_at(three_nodes.address)
    assert set(machine.nodes) == {0, 1}
    assert machine.cpus >= 3
    results = tmp_path / "results"
    plan = small_plan(
        results, machine=machine, concurrency=2, trials=4, epochs=6, scheduler="none", sampler="random"
    )
    nodes: list[Any] = list(three_nodes.worker_nodes)
    saved: list[int] = []

    def end_two_nodes(progress: SweepProgress) -> None:
        found = [checkpoint_epoch(file.read_bytes()) for file in results.glob("checkpoints/small/*.pt")]
        if not saved and len(found) == 2 and min(found) > 0:
            saved.extend(found)
            for node in nodes[:2]:
                three_nodes.remove_node(node, allow_graceful=False)

    done = run_sweep(plan, progress=end_two_nodes)
    assert saved, "two trials were at work, each past its first epoch"
    assert done.counts == {"completed": 4}
    store = ResultsStore(results)
    rows = store.trials("small").to_pylist()
    assert [(row["trial"], row["status"]) for row in rows] == [(n, "completed") for n in range(4)]
    moved = [row for row in rows if row["attempt"] > 1]
    assert moved, "of two trials on three nodes, one at least was on the two that died"
    epochs = store.epochs("small").to_pylist()
    by_trial = {n: [row for row in epochs if row["trial"] == n] for n in range(4)}
    assert all(
        [row["epoch"] for row in own] == list(range(plan.experiment.epochs + 1)) for own in by_trial.values()
    )
    resumed = [n for n, own in by_trial.items() if {row["attempt"] for row in own} == {1, 2}]
    assert resumed, "one went on from its checkpoint, and not from the beginning"
    values = {k.removeprefix("hp."): v for k, v in rows[resumed[0]].items() if k.startswith("hp.")}
    experiment = plan.experiment_of({name: value for name, value in values.items() if value is not None})
    with torch_threads(plan.resources.cpus):  # as the trial had
        *_, last = pretrain(experiment)
    for name, value in last.metrics.items():
        assert rows[resumed[0]][f"metric.{name}"] == pytest.approx(value, rel=1e-4)
    assert not list(results.glob("checkpoints/small/*.pt"))
