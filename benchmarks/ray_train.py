"""Ray Train inside the trials of a sweep, against our own groups of workers: what it leaves behind and costs.

    unshare --pid --fork --mount-proc python -m benchmarks.ray_train [--cases ...] [--ways ...] [--json FILE]

Each case is a real sweep of two workers a trial in a process of its own (`benchmarks.ray_train_driver`). The
first table tells, for each fault and each way to run the workers: how the sweep ended, whether the store has
each trial and epoch once, how many placement groups there were at most, and what Ray held when the sweep was
over (the last of several looks within 20 s, while the driver lived; for a driver that dies, in the cluster
that outlives it). The second tells the seconds from the end of a trial to the first report of the next, and
between two reports. The ways take turns, because the machine may be busy: compare the ways of one run, not
the seconds of two. `--cases start` measures only the second table.

`unshare` (as root) hides every other Ray of the machine. Without it, a second Ray changes what is found: see
the case "beside another Ray". Linux only.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import ray
from ray.cluster_utils import Cluster

from benchmarks.ray_train_driver import LASTS, STUDY, look, nothing_in
from contrasweep.tuning.store import ResultsStore

WAYS: dict[str, dict[str, Any]] = {
    "groups": {"way": "groups"},
    "groups, new for each trial": {"way": "groups, new"},
    "TorchTrainer": {"way": "TorchTrainer"},
    "TorchTrainer, 1 MB checkpoints": {"way": "TorchTrainer", "checkpoint_bytes": 1_000_000},
    "TorchTrainer, no dashboard": {"way": "TorchTrainer", "dashboard": False},
}
CASES: dict[str, dict[str, Any]] = {
    "one after the other": {"epochs": 1},
    "two at once": {"epochs": 1, "at_once": 2},
    "stopped by ASHA": {"epochs": 4, "scheduler": "asha"},
    "trial killed": {"trials": 3, "epochs": 3, "fault": "trial killed"},
    "trial killed at its start": {"trials": 3, "epochs": 3, "fault": "trial killed at its start"},
    "worker killed": {"trials": 3, "epochs": 3, "fault": "worker killed"},
    "driver killed": {"trials": 3, "epochs": 3, "fault": "driver killed"},
    "Ctrl-C": {"trials": 3, "epochs": 3, "fault": "Ctrl-C"},
    "stopped by ASHA, beside another Ray": {"epochs": 4, "scheduler": "asha"},
}
BESIDE = "beside another Ray"
ON_CLUSTER = ("driver killed", "Ctrl-C")
START = "start"
START_CASE = {"trials": 4, "epochs": 3}
LOOKS = (0, 2, 5, 10, 20)

Record = dict[str, Any]
NOTHING: Record = {"ended": "no trial began", "left": [], "events": [], "most": {"groups": 0, "actors": {}}}


@dataclass(frozen=True)
class Asked:
    """What to run; after `patience` seconds without a word, a sweep counts as hung."""

    cases: Sequence[str]
    ways: Sequence[str]
    rounds: int
    trials: int
    patience: float
    out: Path | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=[*CASES, START], default=[*CASES, START])
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), default=list(WAYS))
    parser.add_argument("--rounds", type=int, default=3, help="how often each way has its turn in `start`")
    parser.add_argument("--trials", type=int, default=30, help="of the cases without a fault")
    parser.add_argument("--patience", type=float, default=300.0, help="seconds of silence: a sweep is hung")
    parser.add_argument("--json", type=Path, help="append each result to this file, as a line of JSON")
    given = parser.parse_args()
    os.environ["RAY_AUTH_MODE"] = "disabled"
    asked = Asked(given.cases, given.ways, given.rounds, given.trials, given.patience, given.json)
    run_faults(asked)
    if START in asked.cases:
        run_starts(asked)


def run_faults(asked: Asked) -> None:
    """Print the first table."""
    print("| case | way | sweep ended | store | groups at most | left behind | after s |")
    print("|---|---|---|---|---|---|---|")
    for case in asked.cases:
        for way in asked.ways if case != START else ():
            record = run(case, way, CASES[case], asked)
            looks = record["left"]
            last = looks[-1] if looks else {"groups": "?", "actors": {}, "seconds": "?"}
            most = record["most"]["groups"]
            cells = [case, way, record["ended"], record["store"], most, in_words(last), last["seconds"]]
            print(f"| {' | '.join(map(str, cells))} |", flush=True)


def run_starts(asked: Asked) -> None:
    """Print the second table: the ways take turns."""
    records: dict[str, list[Record]] = {way: [] for way in asked.ways}
    for _ in range(asked.rounds):
        for way in asked.ways:
            records[way].append(run(START, way, START_CASE, asked))
    print("| way | to the next trial, s | beside training, s a report | actors of a trial |")
    print("|---|---|---|---|")
    for way, of_way in records.items():
        gaps = [gap for record in of_way for gap in gaps_of(record["events"])]
        waits = [wait for record in of_way for wait in waits_of(record["events"])]
        held = {name: count for name, count in of_way[-1]["most"]["actors"].items() if name != LASTS}
        print(f"| {way} | {median_of(gaps)} | {median_of(waits)} | {sum(held.values())} |", flush=True)


def gaps_of(events: Sequence[Any]) -> list[float]:
    """Return the seconds from each trial's end to the first report of the next."""
    marks = [(when, what) for when, what, _, epoch, _ in events if what == "end" or epoch == 0]
    return [
        after - before
        for (before, what), (after, then) in pairwise(marks)
        if (what, then) == ("end", "report")
    ]


def waits_of(events: Sequence[Any]) -> list[float]:
    """Return the seconds between two reports of a trial that its training did not take."""
    reports = [(when, trial, spent) for when, what, trial, epoch, spent in events if what == "report"]
    return [
        when - before - spent for (before, one, _), (when, other, spent) in pairwise(reports) if one == other
    ]


def median_of(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f}, n = {len(values)})"


def run(case: str, way: str, settings: Record, asked: Asked) -> Record:
    """Run one sweep, and return what it told and what is left."""
    with tempfile.TemporaryDirectory(prefix="ray-train-", ignore_cleanup_errors=True) as folder:
        given = {
            "trials": asked.trials,
            "patience": asked.patience,
            **settings,
            **WAYS[way],
            "results": f"{folder}/results",
            "out": f"{folder}/out",
        }
        with cluster_for(case, WAYS[way].get("dashboard", True)) as address:
            began = time.monotonic()
            drive({**given, "address": address})
            out = Path(given["out"])
            told = json.loads(out.read_text()) if out.exists() else NOTHING
            if address is not None:
                told = {**told, "left": left_in(address)}
        record = {**given, **told, "case": case, "way": way, "seconds": time.monotonic() - began}
        record["store"] = in_store(Path(given["results"]), given["trials"])
        record["load"] = os.getloadavg()[0]
    if asked.out is not None:
        with asked.out.open("a", encoding="utf-8") as lines:
            lines.write(json.dumps(record) + "\n")
    return record


def drive(given: Record) -> None:
    command = [sys.executable, "-m", "benchmarks.ray_train_driver", json.dumps(given)]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)


@contextmanager
def cluster_for(case: str, dashboard: bool) -> Iterator[str | None]:
    """Run a cluster of one node for a case whose driver does not end well; yield its address, or None.

    The other Ray of a case is such a cluster too, but the sweep has nothing to do with it.
    """
    if case not in ON_CLUSTER and not case.endswith(BESIDE):
        yield None
        return
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": dashboard})
    try:
        yield cluster.address if case in ON_CLUSTER else None
    finally:
        cluster.shutdown()


def left_in(address: str) -> list[Record]:
    """Look at a living cluster until it holds nothing any more, or 20 s have passed."""
    looks: list[Record] = []
    ray.init(address=address, log_to_driver=False)
    try:
        began = time.monotonic()
        for seconds in LOOKS:
            time.sleep(max(0.0, began + seconds - time.monotonic()))
            looks.append(look(seconds))
            if nothing_in(looks[-1]):
                break
    finally:
        ray.shutdown()
    return looks


def in_words(look: Record) -> str:
    leaked = {name: count for name, count in look["actors"].items() if name != LASTS}
    names = ", ".join(f"{count} {name}" for name, count in sorted(leaked.items()))
    return f"{look['groups']} groups, {names or '0 actors'}"


def in_store(results: Path, of: int) -> str:
    """Return how many trials ended how, and whether each epoch of them is there once."""
    store = ResultsStore(results)
    trials = store.trials(STUDY).to_pylist()
    counts = Counter(row["status"] for row in trials)
    epochs = Counter((row["trial"], row["epoch"]) for row in store.epochs(STUDY).to_pylist())
    whole = {(row["trial"], epoch) for row in trials for epoch in range((row["epoch"] or 0) + 1)}
    ended = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
    once = set(epochs) == whole and set(epochs.values()) <= {1}
    return f"{ended} of {of}{'' if once else ', epochs are missing or there twice'}"


if __name__ == "__main__":
    main()
