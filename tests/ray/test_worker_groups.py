"""Trials and runs with two workers on a real local Ray: what is kept, what is freed, and deaths."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray.exceptions import RayTaskError
from ray.train import WorkerGroupError
from ray.train.v2._internal.exceptions import UserExceptionWithTraceback
from studies import with_faulty_method

from contrasweep.losses import RanksLost
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.ray.final import final_runs
from contrasweep.tuning.ray.trainer import cause_of, reason_of
from contrasweep.tuning.store import ResultsStore, StoreUnavailable

QUICK = ("probes.max_steps=5", "batch_size=64")
# The driver stops trials with a larger rate after their first epoch, looks at Ray's groups at every report,
# and asks at the end for all cores at once.
DRIVER = """
import json, os
from contextlib import contextmanager
from pathlib import Path
import ray
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.util import placement_group_table
from contrasweep.tuning.ray import cluster, sweep, tuner

class StopsFastOnes(FIFOScheduler):
    def on_trial_result(self, controller, trial, result):
        fast = trial.config["request"].experiment.optimizer.lr > 0.001
        return TrialScheduler.STOP if fast and result["epoch"] == 1 else TrialScheduler.CONTINUE

def show(*_, **__):
    groups = placement_group_table().values()
    at_once.append(sum(group["state"] != "REMOVED" for group in groups))

@contextmanager
def watched(cpus):
    with own(cpus) as scratch:
        yield scratch
        whole = ray.remote(num_cpus=cpus)(lambda: True)
        free = ray.get(whole.remote(), timeout=60)
    Path(os.environ["FAULTS"], "seen.json").write_text(json.dumps([max(at_once), free]))

at_once, own = [], cluster.local_ray
cluster.local_ray = watched
tuner._scheduler = lambda *_: StopsFastOnes()
tuner.ShowProgress.on_trial_result = tuner.ShowProgress.on_trial_complete = show
from contrasweep.tuning.cli import main
main()
"""
COMMAND = "from contrasweep.tuning.cli import main; main()"


def contrasweep(folder: Path, *arguments: str, code: str = COMMAND) -> "subprocess.CompletedProcess[str]":
    """Run the command with the faulty method, as on a machine of two cores."""
    environment = {**os.environ, **with_faulty_method(folder), "COLUMNS": "200", "LOKY_MAX_CPU_COUNT": "2"}
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, "subprocess.CompletedProcess[str]"]:
    """A sweep of four trials of two workers: one is whole, one loses a worker, two are stopped."""
    folder = tmp_path_factory.mktemp("groups")
    (folder / "space.yaml").write_text(
        "fault: {choice: [none, killed-once], default: none}\n"
        "optimizer.lr: {choice: [0.001, 0.002], default: 0.001}\n"
    )
    options = {"space": "space.yaml", "sampler": "grid", "epochs": 3, "name": "groups"}
    options |= {"workers": 2, "concurrency": 2}
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    quick = [text for setting in QUICK for text in ("--set", setting)]
    return folder, contrasweep(folder, "sweep", "faulty", *quick, *given, code=DRIVER)


@pytest.fixture(scope="module")
def trials(swept: tuple[Path, Any]) -> list[dict[str, Any]]:
    """The rows of the trials: whole, killed, and the two stopped ones."""
    folder, done = swept
    assert done.returncode == 0, done.stderr
    rows = ResultsStore(folder / "results").trials("groups").to_pylist()
    return sorted(rows, key=lambda row: (row["hp.optimizer.lr"], len(row["hp.fault"])))


def test_stopped_trials_leave_no_group(swept: tuple[Path, Any], trials: list[dict[str, Any]]) -> None:
    folder, done = swept
    assert "room for 1 trial of 2 workers of 1 cpu each at once, not 2" in done.stdout + done.stderr
    assert [row["status"] for row in trials] == ["completed"] * 2 + ["stopped"] * 2
    assert [row["epoch"] for row in trials] == [3, 3, 1, 1]
    assert {row["cpus"] for row in trials} == {2.0}
    at_once, free = json.loads((folder / "seen.json").read_text())
    assert at_once == 1, "on two cores, one trial of two workers runs at a time"
    assert free, "the last trial's workers are gone as well"


def test_a_worker_killed_in_mid_epoch_costs_a_trial_nothing_but_time(
    swept: tuple[Path, Any], trials: list[dict[str, Any]]
) -> None:
    folder, _ = swept
    assert (folder / "killed").exists()
    whole, killed = trials[:2]
    assert (whole["attempt"], killed["attempt"]) == (1, 2)
    assert killed["metric.val.accuracy"] == whole["metric.val.accuracy"]
    epochs = ResultsStore(folder / "results").epochs("groups").to_pylist()
    of_killed = [(row["epoch"], row["attempt"]) for row in epochs if row["trial"] == killed["trial"]]
    assert of_killed == [(0, 1), (1, 1), (2, 2), (3, 2)]
    assert not list((folder / "results" / "checkpoints").rglob("*.pt"))


def test_a_worker_killed_in_mid_epoch_costs_a_run_nothing_but_time(
    swept: tuple[Path, Any], trials: list[dict[str, Any]], tmp_path: Path
) -> None:
    """A run of `train` ends like the undisturbed trial."""
    store = ResultsStore(swept[0] / "results")
    run = {"method": "faulty", "dataset": store.study("groups").dataset, "epochs": 3}
    (tmp_path / "run.yaml").write_text(json.dumps(run | {"optimizer": {"lr": 0.001}}))
    quick = [text for setting in (*QUICK, "fault=killed-once") for text in ("--set", setting)]
    done = contrasweep(tmp_path, "train", "run.yaml", *quick, "--workers", "2", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["epochs"]
    assert (tmp_path / "killed").exists()
    assert [row["epoch"] for row in found] == [0, 1, 2, 3]
    of_whole = [row for row in store.epochs("groups").to_pylist() if row["trial"] == trials[0]["trial"]]
    losses = [row["metric.train.loss"] for row in of_whole]
    assert [row["train.loss"] for row in found[1:]] == pytest.approx(losses[1:], rel=1e-4)


def test_final_runs_of_two_workers_are_those_of_one(tmp_path: Path) -> None:
    # A small rate and a high temperature, so that rounding does not grow.
    values = {"probes.max_steps": 5, "batch_size": 64, "optimizer.lr": 0.001, "temperature": 0.5, "epochs": 2}
    config = BestConfig("small", 0, {}, resolve("infonce", "digits", values))
    rows = [
        final_runs([config], seeds=1, first_seed=7, results=tmp_path / str(workers), workers=workers).rows[0]
        for workers in (1, 2)
    ]
    for row in rows:
        assert (row["status"], row["attempt"]) == ("completed", 1)
    assert rows[1]["metric.train.loss"] == pytest.approx(rows[0]["metric.train.loss"], rel=1e-4)
    assert rows[1]["metric.test.accuracy"] == pytest.approx(rows[0]["metric.test.accuracy"], abs=0.05)
    assert rows[1]["metric.test.untrained_accuracy"] == rows[0]["metric.test.untrained_accuracy"]
    assert len(list(tmp_path.glob("2/exports/*/*/encoder.safetensors"))) == 1


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        (
            {0: RanksLost("gone"), 1: StoreUnavailable("the disk is full")},
            "StoreUnavailable: the disk is full",
        ),
        ({0: RanksLost("gone")}, "RanksLost: gone"),
        ({}, "ValueError: of the owner"),
    ],
)
def test_a_group_fails_of_the_worker_that_says_most(failures: dict[int, Exception], reason: str) -> None:
    wrapped = {rank: UserExceptionWithTraceback(error, "trace") for rank, error in failures.items()}
    told: Exception = WorkerGroupError("told", wrapped) if failures else ValueError("of the owner")
    assert reason_of(cause_of(RayTaskError("fit", "trace", told))) == reason
