"""Real faults in real sweeps: what the command says, how soon, and whether the study goes on from there.

    python -m benchmarks.faults [CASE...]

Each case starts a sweep by the command line, waits for its first checkpoint, and does harm. A table tells the
exit code, the seconds from the fault to the end of the command, the state that the store then shows, whether
each trial and each epoch is there once after `--resume`, and what the fault left behind in a cluster that
outlived it: actors and placement groups that are not gone. Linux only.
"""

import argparse
import fcntl
import os
import pty
import signal
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster
from ray.util import placement_group_table
from ray.util.state import list_actors

from contrasweep.tuning.store import ResultsStore

STUDY, TRIALS, EPOCHS = "x", 2, 40
SWEEP = ["fair-cclk", "--name", STUDY]
NEW = ["--data", "colour-digits", "--trials", str(TRIALS), "--epochs", str(EPOCHS), "--concurrency", "1"]
NEW += ["--scheduler", "none", "--set", "probes.max_steps=5"]


@dataclass
class Running:
    """A sweep at work, in a session of its own; `terminal` is our end of its terminal, if it has one."""

    process: "subprocess.Popen[bytes]"
    results: Path
    terminal: int | None = None
    cluster: Any = None


Harm = Callable[[Running], object]


@dataclass(frozen=True)
class Case:
    """A fault, and where the sweep runs: on this machine, or on a cluster of so many nodes of one core."""

    harm: Harm
    nodes: int = 0
    options: tuple[str, ...] = ()
    in_terminal: bool = False
    head_dies: bool = False


def to_driver(number: signal.Signals) -> Harm:
    return lambda running: os.kill(running.process.pid, number)


def to_all(number: signal.Signals) -> Harm:
    """Slurm signals every process of a job step; a closing terminal all of its foreground."""
    return lambda running: os.killpg(running.process.pid, number)


def close_terminal(running: Running) -> None:
    assert running.terminal is not None, "the case asks for a terminal"
    os.close(running.terminal)


def kill_child(name: str) -> Harm:
    """Kill a process of Ray that the driver started."""

    def harm(running: Running) -> None:
        children = (
            Path(f"/proc/{running.process.pid}/task/{running.process.pid}/children").read_text().split()
        )
        (child,) = (pid for pid in children if Path(f"/proc/{pid}/exe").resolve().name == name)
        os.kill(int(child), signal.SIGKILL)

    return harm


def kill_nodes(count: int) -> Harm:
    """Remove the last nodes of the cluster, as a power cut would."""

    def harm(running: Running) -> None:
        for node in list(running.cluster.worker_nodes)[:count]:
            running.cluster.remove_node(node, allow_graceful=False)

    return harm


def kill_head(running: Running) -> None:
    running.cluster.remove_node(running.cluster.head_node, allow_graceful=False)


CASES: dict[str, Case] = {
    "SIGTERM to the driver": Case(to_driver(signal.SIGTERM)),
    "SIGTERM to all processes": Case(to_all(signal.SIGTERM)),
    "SIGHUP to the driver": Case(to_driver(signal.SIGHUP)),
    "terminal closed": Case(close_terminal, in_terminal=True),
    "driver killed": Case(to_driver(signal.SIGKILL)),
    "raylet killed": Case(kill_child("raylet")),
    "GCS killed": Case(kill_child("gcs_server")),
    "one node of three lost, two workers a trial": Case(kill_nodes(1), 3, ("--workers", "2")),
    "two nodes of three lost": Case(kill_nodes(2), 3),
    "head of the cluster lost": Case(kill_head, 1, head_dies=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"one of: {', '.join(CASES)}; default: all")
    asked = parser.parse_args().cases or list(CASES)
    os.environ["RAY_AUTH_MODE"] = "disabled"
    # Under `nohup`, the sweeps would ignore it too.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    print("| fault | exit | seconds | state | error line | after `--resume` | left in the cluster |")
    print("|---|---|---|---|---|---|---|")
    for name in asked:
        with tempfile.TemporaryDirectory(prefix="faults-") as folder:
            print(f"| {name} | {' | '.join(run_case(CASES[name], Path(folder)))} |", flush=True)


def run_case(case: Case, folder: Path) -> list[str]:
    """Run one case and return the cells of its row."""
    results, said = folder / "results", folder / "said"
    with cluster_of(case.nodes) as cluster:
        running = start(case, results, said, cluster)
        wait_for_checkpoint(running)
        harmed = time.monotonic()
        case.harm(running)
        code = running.process.wait(timeout=500)
        seconds = time.monotonic() - harmed
        left = "" if cluster is None or case.head_dies else left_behind(cluster)
    state = ResultsStore(results).studies()[0].state
    error = next((line for line in said.read_text().splitlines() if "goes on" in line), "")
    again = "" if code == 0 else resume(case, results)
    return [str(code), f"{seconds:.0f}", state, error[:160], f"{again}{once(results)}", left or "-"]


def start(case: Case, results: Path, said: Path, cluster: Any) -> Running:
    command = [sys.executable, "-m", "contrasweep", "sweep", *SWEEP, *NEW, *case.options]
    command += ["--results", str(results), *address_of(cluster)]
    if not case.in_terminal:
        with said.open("wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
        return Running(process, results, cluster=cluster)
    said.touch()
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,  # noqa: PLW1509 no other thread runs
    )
    os.close(theirs)
    return Running(process, results, ours)


def wait_for_checkpoint(running: Running) -> None:
    while not list(running.results.glob("checkpoints/*/*.pt")):
        if running.process.poll() is not None:
            raise RuntimeError(f"the sweep ended with {running.process.returncode} before the fault")
        time.sleep(0.2)


@contextmanager
def cluster_of(nodes: int) -> Iterator[Any]:
    """Run a cluster of a head without cores and nodes of one core; None for no nodes."""
    if not nodes:
        yield None
        return
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": True})
    try:
        for _ in range(nodes):
            cluster.add_node(num_cpus=1)
        yield cluster
    finally:
        cluster.shutdown()


def address_of(cluster: Any) -> list[str]:
    return [] if cluster is None else ["--address", cluster.address]


def left_behind(cluster: Any) -> str:
    """Count the actors and placement groups that a living cluster still has."""
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        groups = sum(group["state"] != "REMOVED" for group in placement_group_table().values())
        actors = sum(actor.state != "DEAD" for actor in list_actors(address=cluster.address))
    finally:
        ray.shutdown()
    return f"{actors} actors, {groups} groups"


def resume(case: Case, results: Path) -> str:
    """Resume the study, on a new cluster if it ran on one; return the exit code where it is not 0."""
    with cluster_of(case.nodes) as cluster:
        command = [
            sys.executable,
            "-m",
            "contrasweep",
            "sweep",
            *SWEEP,
            "--results",
            str(results),
            "--resume",
        ]
        done = subprocess.run([*command, *address_of(cluster)], capture_output=True, check=False)
    return "" if done.returncode == 0 else f"exit {done.returncode}: "


def once(results: Path) -> str:
    """Say whether the store has every trial, completed, and every epoch of it, once."""
    store = ResultsStore(results)
    trials = [(row["trial"], row["status"]) for row in store.trials(STUDY).to_pylist()]
    epochs = sorted((row["trial"], row["epoch"]) for row in store.epochs(STUDY).to_pylist())
    whole = [(trial, epoch) for trial in range(TRIALS) for epoch in range(EPOCHS + 1)]
    right = trials == [(trial, "completed") for trial in range(TRIALS)] and epochs == whole
    return "each trial and epoch once" if right else f"trials {trials}, {len(epochs)} epochs"


if __name__ == "__main__":
    main()
