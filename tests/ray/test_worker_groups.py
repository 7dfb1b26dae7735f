"""Trials and runs with two workers on a real local Ray: what is kept, what is freed, and deaths."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ray.exceptions import RayActorError, RayTaskError
from ray.train import WorkerGroupError
from ray.train.v2._internal.exceptions import UserExceptionWithTraceback
from studies import with_faulty_method

from contrasweep.losses import RanksLost
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.ray.final import final_runs
from contrasweep.tuning.ray.trainer import cause_of, error_in_one_line
from contrasweep.tuning.ray.worker_group import _most_telling
from contrasweep.tuning.store import ResultsStore, StoreUnavailable
from contrasweep.tuning.trials.trial import TrialReport

QUICK = ("probes.max_steps=5", "batch_size=64")
# One driver runs a sweep, a run of `train` and a final run on one Ray, because Ray takes long to start. The
# sweep stops the trial whose fault would come after epoch 1. The driver looks at Ray's groups at every
# report; when each of the three has ended, it asks for all cores at once.
DRIVER = """
import json, os, sys
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
import ray
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.util import placement_group_table
from contrasweep.tuning.cli import main
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.ray import cluster, final, trainer, tuner

class StopsTheFaulty(FIFOScheduler):
    def on_trial_result(self, controller, trial, result):
        faulty = trial.config["request"].experiment.hyperparameters["fault"] == "error"
        return TrialScheduler.STOP if faulty and result["epoch"] == 1 else TrialScheduler.CONTINUE

def show(*_, **__):
    groups = placement_group_table().values()
    at_once.append(sum(group["state"] != "REMOVED" for group in groups))

@contextmanager
def shared(cpus):
    yield scratch
    whole = ray.remote(num_cpus=cpus)(lambda: True)
    free.append(ray.get(whole.remote(), timeout=60))

def command(name, *arguments):
    sys.argv = ["contrasweep", *arguments]
    with open(folder / f"{name}.out", "w") as out, redirect_stdout(out):
        try:
            main()
        except SystemExit as left:
            assert not left.code, (name, left.code)

at_once, free, folder = [], [], Path(os.environ["FAULTS"])
given = json.loads(os.environ["GIVEN"])
with cluster.local_ray(2) as scratch:
    cluster.local_ray = trainer.local_ray = shared
    tuner.scheduler_for = lambda *_: StopsTheFaulty()
    tuner.ShowProgress.on_trial_result = tuner.ShowProgress.on_trial_complete = show
    command("sweep", *given["sweep"])
    (folder / "killed").unlink()
    command("train", *given["train"])
    config = BestConfig("small", 0, {}, resolve("infonce", "digits", given["final"]))
    final.final_runs([config], seeds=1, first_seed=7, results=folder / "2", workers=2)
(folder / "seen.json").write_text(json.dumps([max(at_once), free]))
"""
# A small rate and a high temperature, so that rounding does not grow.
FINAL = {"probes.max_steps": 5, "batch_size": 64, "optimizer.lr": 0.001, "temperature": 0.5, "epochs": 2}


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The driver's folder and what it said, after a sweep of three trials of two workers and two runs.

    One trial is whole, one loses a worker, one is stopped. The run of `train` loses a worker too.
    """
    folder = tmp_path_factory.mktemp("groups")
    (folder / "space.yaml").write_text("fault: {choice: [none, killed-once, error], default: none}\n")
    run = {"method": "faulty", "dataset": "colour-digits", "epochs": 3, "optimizer": {"lr": 0.001}}
    (folder / "run.yaml").write_text(json.dumps(run))
    options = {"space": "space.yaml", "sampler": "grid", "epochs": 3, "name": "groups"}
    options |= {"workers": 2, "concurrency": 2, "data": "colour-digits"}
    quick = [text for setting in QUICK for text in ("--set", setting)]
    sweep = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    given = {
        "sweep": ["sweep", "faulty", *quick, "--set", "optimizer.lr=0.001", *sweep],
        "train": ["train", "run.yaml", *quick, "--set", "fault=killed-once", "--workers", "2", "--json"],
        "final": FINAL,
    }
    # As on a machine of two cores.
    environment = {"GIVEN": json.dumps(given), "COLUMNS": "200", "LOKY_MAX_CPU_COUNT": "2"}
    done = subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=folder,
        env={**os.environ, **with_faulty_method(folder), **environment},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder, (folder / "sweep.out").read_text() + done.stderr


@pytest.fixture(scope="module")
def trials(ended: tuple[Path, str]) -> dict[str, dict[str, Any]]:
    """The rows of the trials by their fault."""
    rows = ResultsStore(ended[0] / "results").trials("groups").to_pylist()
    return {row["hp.fault"]: row for row in rows}


def test_no_group_outlives_its_trial_or_run(
    ended: tuple[Path, str], trials: dict[str, dict[str, Any]]
) -> None:
    folder, said = ended
    assert "room for 1 trial of 2 workers of 1 cpu each at once, not 2" in said
    assert said.count("Warning: contrasweep_faulty: a method for tests") == 2, "once by sweep, once by train"
    found = {fault: (row["status"], row["epoch"]) for fault, row in trials.items()}
    assert found == {"none": ("completed", 3), "killed-once": ("completed", 3), "error": ("stopped", 1)}
    assert {row["cpus"] for row in trials.values()} == {2.0}
    at_once, free = json.loads((folder / "seen.json").read_text())
    assert at_once == 1, "on two cores, one trial of two workers runs at a time"
    assert free == [True] * 3, "after the sweep and both runs, their workers are gone"


def test_a_worker_killed_in_mid_epoch_costs_a_trial_nothing_but_time(
    ended: tuple[Path, str], trials: dict[str, dict[str, Any]]
) -> None:
    whole, killed = trials["none"], trials["killed-once"]
    assert (whole["attempt"], killed["attempt"]) == (1, 2)
    assert killed["metric.val.accuracy"] == whole["metric.val.accuracy"]
    results = ended[0] / "results"
    epochs = ResultsStore(results).epochs("groups").to_pylist()
    of_killed = [(row["epoch"], row["attempt"]) for row in epochs if row["trial"] == killed["trial"]]
    assert of_killed == [(0, 1), (1, 1), (2, 2), (3, 2)]
    assert not list((results / "checkpoints").rglob("*.pt"))


def test_a_worker_killed_in_mid_epoch_costs_a_run_nothing_but_time(
    ended: tuple[Path, str], trials: dict[str, dict[str, Any]]
) -> None:
    """A run of `train` ends like the undisturbed trial."""
    folder, _ = ended
    found = json.loads((folder / "train.out").read_text())["epochs"]
    assert (folder / "killed").exists()
    assert [row["epoch"] for row in found] == [0, 1, 2, 3]
    epochs = ResultsStore(folder / "results").epochs("groups").to_pylist()
    losses = [row["metric.train.loss"] for row in epochs if row["trial"] == trials["none"]["trial"]]
    assert [row["train.loss"] for row in found[1:]] == pytest.approx(losses[1:], rel=1e-4)


def test_a_final_run_of_two_workers_is_that_of_one(ended: tuple[Path, str], tmp_path: Path) -> None:
    config = BestConfig("small", 0, {}, resolve("infonce", "digits", FINAL))
    one = final_runs([config], seeds=1, first_seed=7, results=tmp_path).rows[0]
    (two,) = ResultsStore(ended[0] / "2").trials("small-final").to_pylist()
    for row in (one, two):
        assert (row["seed"], row["status"], row["attempt"]) == (7, "completed", 1)
    assert two["metric.train.loss"] == pytest.approx(one["metric.train.loss"], rel=1e-4)
    assert two["metric.test.accuracy"] == pytest.approx(one["metric.test.accuracy"], abs=0.05)
    assert two["metric.test.untrained_accuracy"] == one["metric.test.untrained_accuracy"]
    assert len(list(ended[0].glob("2/exports/*/*/encoder.safetensors"))) == 1


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        (
            {0: RanksLost("gone"), 1: StoreUnavailable("the disk is full")},
            "StoreUnavailable: the disk is full",
        ),
        ({0: RanksLost("gone")}, "RanksLost: gone"),
        ({0: ValueError("own"), 1: StoreUnavailable("full")}, "StoreUnavailable: full"),
        ({}, "ValueError: of the owner"),
    ],
)
def test_a_group_fails_of_the_worker_that_says_most(failures: dict[int, Exception], reason: str) -> None:
    wrapped = {rank: UserExceptionWithTraceback(error, "trace") for rank, error in failures.items()}
    told: Exception = WorkerGroupError("told", wrapped) if failures else ValueError("of the owner")
    assert error_in_one_line(cause_of(RayTaskError("fit", "trace", told))) == reason


def of_rank(error: Exception) -> RayTaskError:
    return RayTaskError("advance", "trace", error)


EPOCH = TrialReport(1, {}, 0.0)
LOST = RanksLost("another rank is gone: timed out")


@pytest.mark.parametrize(
    ("errors", "reports", "silent", "told"),
    [
        ({0: of_rank(LOST)}, {}, [1], "worker 1 hung: .* the others: another rank is gone: timed out"),
        ({0: of_rank(LOST)}, {1: EPOCH}, [2, 3], "worker 2 and worker 3 hung: .* timed out"),
        ({}, {0: EPOCH}, [1], "worker 1 hung: all others have ended the epoch"),
        ({0: of_rank(LOST), 1: RayActorError(error_msg="died")}, {}, [2], "died"),
        ({0: of_rank(LOST), 1: of_rank(ValueError("own"))}, {}, [], "own"),
        ({0: of_rank(StoreUnavailable("full")), 1: of_rank(LOST)}, {}, [2], "^full$"),
        ({0: of_rank(ValueError("own")), 1: of_rank(StoreUnavailable("full"))}, {}, [], "^full$"),
        ({0: of_rank(LOST)}, {1: EPOCH}, [], "another rank is gone"),
        ({}, {0: EPOCH, 1: TrialReport(2, {}, 0.0)}, [], "different epochs"),
    ],
)
def test_a_group_says_which_worker_hung(
    errors: dict[int, Any], reports: dict[int, TrialReport], silent: list[int], told: str
) -> None:
    found = _most_telling(errors, reports, silent)
    assert re.search(told, str(getattr(found, "cause", found)))
