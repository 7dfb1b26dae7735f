"""The commands of docs/cluster.md, as they are printed, on nodes on this machine (`make cluster`).

As root, each node has a network and a name of its own; a node can then be cut off from the others.
"""

import json
import shlex
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("moto")
pytest.importorskip("flask")

from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.store import ResultsStore, open_location
from contrasweep.tuning.store.record import SearchRecord
from contrasweep.tuning.training.pretrain import pretrain
from tests.cluster.machines import HEAD, Machines, machines
from tests.cluster.networks import lacking, networks
from tests.store.s3_server import LOOPBACK, s3_server

pytestmark = pytest.mark.cluster
TINY = "colour-digits:images=300,test_images=100"
EPOCHS = 200
"""So many that the first checkpoint comes before the end: a trial saves after ten seconds."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """Two machines of one core, results in a shared folder and in a bucket."""
    shared = tmp_path_factory.mktemp("shared") / "results"
    with ExitStack() as stack:
        apart = stack.enter_context(networks()) if lacking() is None else None
        server = stack.enter_context(s3_server(LOOPBACK if apart is None else apart.outside))
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        server.make_bucket("bucket")
        places = {"/shared/results": str(shared), "s3://bucket/results": server.uri("bucket/results")}
        there = stack.enter_context(machines(places, apart))
        there.start("head")
        there.start("second")
        yield there


def _trials(there: Machines, place: str, study: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = ResultsStore(there.places[place]).trials(study).to_pylist()
    return rows


def test_a_sweep_uses_both_machines(two: Machines) -> None:
    done = two.run(two.line("--name two-nodes"))
    assert done.returncode == 0, done.stderr
    record = ResultsStore(two.places["/shared/results"]).study("two-nodes")
    assert isinstance(record.search, SearchRecord)
    assert record.search.concurrency == 2, "a machine has one core"
    assert len(_trials(two, "/shared/results", "two-nodes")) == 4


def test_a_laptop_outside_sweeps_into_a_bucket(two: Machines) -> None:
    done = two.run(two.line("--name from-outside"), outside=True)
    assert done.returncode == 0, done.stderr
    assert len(_trials(two, "s3://bucket/results", "from-outside")) == 4


def test_a_sweep_is_submitted_as_a_job_and_its_winner_runs_from_the_bucket(two: Machines) -> None:
    address = two.line("export RAY_ADDRESS=")[1].removeprefix("RAY_ADDRESS=")
    done = two.run(two.line("--name as-job"), RAY_ADDRESS=address)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(_trials(two, "/shared/results", "as-job")) == 4

    final = two.line("contrasweep run demo")
    final[final.index("demo")] = "from-outside"
    final[final.index("--seeds") + 1] = "2"
    done = two.run(final, RAY_ADDRESS=two.address)
    assert done.returncode == 0, done.stderr
    assert len(_trials(two, "s3://bucket/results", "from-outside-final")) == 2


def test_a_trial_of_two_workers_outlives_a_machine(two: Machines, tmp_path: Path) -> None:
    """Its workers lie on two machines of three. The one that it loses is not the head."""
    two.start("third")
    results = two.places["s3://bucket/results"]
    quick = f"--data {TINY} --epochs {EPOCHS} --trials 1 --set probes.max_steps=5 --set batch_size=64"
    wide = f"contrasweep sweep fair-cclk {quick} --workers 2 --concurrency 1 --name wide --scheduler none"
    words = [*shlex.split(wide), "--results", results, "--address", two.address]
    location = open_location(results)
    with (tmp_path / "said").open("wb") as said:
        sweep = two.begin(words, said)

    def saved() -> bool:
        assert sweep.poll() is None, (tmp_path / "said").read_text()
        return bool(location.files("checkpoints/wide"))

    two.wait_for(saved, "a checkpoint")
    used = two.seen()["used"]
    assert len(used) == 2, "a machine has one core"
    two.lose(next(name for name in used if name != "head"))
    assert sweep.wait(600) == 0, (tmp_path / "said").read_text()
    (trial,) = _trials(two, "s3://bucket/results", "wide")
    assert (trial["status"], trial["attempt"], trial["epoch"]) == ("completed", 2, EPOCHS)
    epochs = ResultsStore(results).epochs("wide").to_pylist()
    assert [row["epoch"] for row in epochs] == list(range(EPOCHS + 1))
    assert {row["attempt"] for row in epochs} == {1, 2}, "it went on from its checkpoint"
    told = json.loads(two.run(["contrasweep", "show", "wide", "--results", results, "--json"]).stdout)
    assert told
    settings = {"probes.max_steps": 5, "batch_size": 64, "epochs": EPOCHS}
    alone = next(iter(pretrain(resolve("fair-cclk", TINY, settings))))
    there = epochs[0]["metric.val.ridge_accuracy"]
    assert there == pytest.approx(alone.metrics["val.ridge_accuracy"]), "one process begins alike"


def test_a_trial_outlives_a_network_that_is_cut(two: Machines, tmp_path: Path) -> None:
    """Its machine goes on, but nobody reaches it; the last test took another one away."""
    if two.networks is None:
        pytest.skip(f"{lacking()}")
    results = two.places["s3://bucket/results"]
    epochs = 3 * EPOCHS
    quick = f"--data {TINY} --epochs {epochs} --trials 2 --set probes.max_steps=5 --set batch_size=64"
    words = shlex.split(f"contrasweep sweep fair-cclk {quick} --concurrency 2 --name cut --scheduler none")
    location = open_location(results)
    with (tmp_path / "said").open("wb") as said:
        sweep = two.begin([*words, "--results", results, "--address", two.address], said)

    def both_saved() -> bool:
        assert sweep.poll() is None, (tmp_path / "said").read_text()
        return len(location.files("checkpoints/cut")) == 2

    two.wait_for(both_saved, "two checkpoints")
    two.networks.cut_off(next(name for name in two.running if name != HEAD))
    assert sweep.wait(600) == 0, (tmp_path / "said").read_text()
    trials = _trials(two, "s3://bucket/results", "cut")
    assert sorted((one["status"], one["attempt"], one["epoch"]) for one in trials) == [
        ("completed", 1, epochs),
        ("completed", 2, epochs),
    ]
