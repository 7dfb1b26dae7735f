"""Trials and runs with two workers on a real local Ray: what is kept, what is freed, and deaths."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.exceptions import RayTaskError
from ray.train import WorkerGroupError
from ray.train.v2._internal.exceptions import UserExceptionWithTraceback
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.util import placement_group_table
from studies import with_faulty_method

from contrasweep.losses import RanksLost
from contrasweep.tuning.planning.best_config import config_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.ray import tuner
from contrasweep.tuning.ray.final import final_runs
from contrasweep.tuning.ray.searcher import Progress
from contrasweep.tuning.ray.session import local_ray
from contrasweep.tuning.ray.sweep import run_sweep
from contrasweep.tuning.ray.trainer import cause_of, reason_of
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.store import ResultsStore, StoreUnavailable

# A small learning rate, so that rounding does not grow.
QUICK = {"probes.max_steps": 5, "batch_size": 64, "optimizer.lr": 0.001, "temperature": 0.5}
STOPPED = 3


class AllButTheLast(FIFOScheduler):
    """Stops every trial after its first epoch, except one, so that a trial completes."""

    def on_trial_result(self, tune_controller: Any, trial: Any, result: dict[str, Any]) -> str:
        number = trial.config["request"].trial
        stops = number < STOPPED and result["epoch"] == 1
        return TrialScheduler.STOP if stops else TrialScheduler.CONTINUE


@pytest.fixture(scope="module")
def freed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int], bool]:
    """Three stopped trials: the results, the groups at any time, and whether all cores were freed."""
    results = tmp_path_factory.mktemp("freed")
    at_once: list[int] = []
    free: list[bool] = []

    def show(progress: Progress) -> None:
        groups = placement_group_table().values()
        at_once.append(sum(group["state"] != "REMOVED" for group in groups))

    @contextmanager
    def watched(cpus: int) -> Iterator[Path]:
        with local_ray(cpus) as scratch:
            yield scratch
            whole = ray.remote(num_cpus=cpus)(lambda: True)
            free.append(ray.get(whole.remote(), timeout=60))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tuner, "_scheduler", lambda *_: AllButTheLast())
        patched.setattr("contrasweep.tuning.ray.session.local_ray", watched)
        patched.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 2)
        options = {"trials": STOPPED + 1, "epochs": 2, "concurrency": 4, "sampler": "random"}
        run_sweep(
            plan_sweep(
                "infonce", "digits", workers=2, values=QUICK, results=results, name="freed", **options
            ),
            show,
        )
    return results, at_once, free == [True]


def test_stopped_trials_leave_no_group(freed: tuple[Path, list[int], bool]) -> None:
    results, at_once, free = freed
    rows = ResultsStore(results).trials("freed").to_pylist()
    assert [row["status"] for row in rows] == ["stopped"] * STOPPED + ["completed"]
    assert [row["epoch"] for row in rows] == [1] * STOPPED + [2]
    assert {row["cpus"] for row in rows} == {2.0}
    assert max(at_once) == 1, "on two cores, one trial of two workers runs at a time"
    assert free, "the last trial's workers are gone as well"


def test_final_runs_of_two_workers_are_those_of_one(
    freed: tuple[Path, list[int], bool], tmp_path: Path
) -> None:
    config = config_of(best_trials(ResultsStore(freed[0]), "freed")[0])
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


def contrasweep(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run the command with the faulty method, as on a machine of two cores."""
    environment = {**os.environ, **with_faulty_method(folder), "COLUMNS": "200", "LOKY_MAX_CPU_COUNT": "2"}
    return subprocess.run(
        [sys.executable, "-c", "from contrasweep.tuning.cli import main; main()", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )


def test_a_worker_killed_in_mid_epoch_costs_a_trial_and_a_run_nothing_but_time(tmp_path: Path) -> None:
    """A trial of a sweep and a run of `train` end like the undisturbed trial."""
    (tmp_path / "faults.yaml").write_text("fault: {choice: [none, killed-once], default: none}\n")
    options = {"space": "faults.yaml", "sampler": "grid", "scheduler": "none", "epochs": 3, "name": "killed"}
    options |= {"workers": 2, "concurrency": 2}
    given = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    done = contrasweep(tmp_path, "sweep", "faulty", "--set", "probes.max_steps=5", *given)
    assert done.returncode == 0, done.stderr
    assert (
        "room for 1 trial of 2 workers each, with 1 cpu a worker at once, not 2" in done.stdout + done.stderr
    )
    store = ResultsStore(tmp_path / "results")
    whole, killed = sorted(store.trials("killed").to_pylist(), key=lambda row: len(row["hp.fault"]))
    assert (tmp_path / "killed").exists()
    assert (whole["status"], whole["attempt"]) == ("completed", 1)
    assert (killed["status"], killed["attempt"]) == ("completed", 2)
    assert killed["metric.val.accuracy"] == whole["metric.val.accuracy"]
    epochs = store.epochs("killed").to_pylist()
    of_killed = [(row["epoch"], row["attempt"]) for row in epochs if row["trial"] == killed["trial"]]
    assert of_killed == [(0, 1), (1, 1), (2, 2), (3, 2)]
    assert not list((tmp_path / "results" / "checkpoints").rglob("*.pt"))

    (tmp_path / "killed").unlink()
    dataset = store.study("killed").dataset
    run = f"method: faulty\ndataset: {dataset}\nepochs: 3\nprobes: {{max_steps: 5}}\n"
    (tmp_path / "run.yaml").write_text(run)
    done = contrasweep(
        tmp_path, "train", "run.yaml", "--set", "fault=killed-once", "--workers", "2", "--json"
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["epochs"]
    assert (tmp_path / "killed").exists()
    assert [row["epoch"] for row in found] == [0, 1, 2, 3]
    of_whole = [row["metric.train.loss"] for row in epochs if row["trial"] == whole["trial"]]
    assert [row["train.loss"] for row in found[1:]] == pytest.approx(of_whole[1:], rel=1e-4)


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
