"""Faults inside the trials of one real sweep: each is recorded, and the sweep goes on."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from studies import with_faulty_method

from contrasweep.tuning.store import ResultsStore
from tests.foreign_packages import write_foreign_packages

TIMEOUT = 100_000
# The driver's clock jumps once the hanging trial hangs, so that the test need not wait for the timeout.
DRIVER = """
import functools, os, signal, time
from pathlib import Path
from contrasweep.tuning.planning import resources
from contrasweep.tuning.trials import trial
from contrasweep.tuning.ray import cluster, sweep, trial_requests, tuner, watch, worker
hanging = Path(os.environ["FAULTS"], "hanging")
clock = lambda: time.monotonic() + 1e6 * hanging.exists()
sweep.TrialWatch = functools.partial(watch.TrialWatch, clock=clock)

class DiesBetweenTrials(worker.TrialWorker):
    def reset_config(self, config):
        fault = config["request"].experiment.hyperparameters["fault"]
        died = Path(os.environ["FAULTS"], "died-before")
        if fault == "nan" and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().reset_config(config)

tuner.TrialWorker = DiesBetweenTrials

# Ray shares out a GPU that is not there. The class travels with the requests, as it is of this program.
class OnCpu(trial.TrialRequest):
    device = "cpu"

trial_requests.TrialRequest = OnCpu
resources.available_gpus = lambda: 1
cluster.start_ray = functools.partial(cluster.start_ray, num_gpus=1)
from contrasweep.tuning.cli import main
main()
"""


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, "subprocess.CompletedProcess[str]"]:
    """A sweep over all faults: the results folder and the output of the command.

    It runs in a folder that is first on the path of the driver and of Ray's workers, and holds a user's own
    `models/` and `data.py`, which fail when imported.
    """
    folder = tmp_path_factory.mktemp("faults")
    write_foreign_packages(folder)
    options = {"trials": 9, "epochs": 3, "scheduler": "none", "sampler": "random", "concurrency": 1}
    options |= {"name": "faults", "max-failures": 1, "trial-timeout": TIMEOUT}
    options |= {"gpus-per-worker": 0.5}
    arguments = [text for name, value in options.items() for text in (f"--{name}", str(value))]
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, "sweep", "faulty", "--set", "probes.max_steps=5", *arguments],
        cwd=folder,
        env={**os.environ, **with_faulty_method(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    return folder / "results", done


@pytest.fixture(scope="module")
def rows(swept: tuple[Path, Any]) -> dict[str, dict[str, Any]]:
    """The rows of the trials, by their fault."""
    trials = ResultsStore(swept[0]).trials("faults").to_pylist()
    return {row["hp.fault"]: row for row in trials}


@pytest.mark.parametrize(
    ("fault", "error", "attempts"),
    [
        ("nan", "loss nan at epoch 2", 1),
        ("memory", "MemoryError", 1),
        ("error", "ValueError: this trial always fails, at contrasweep_faulty.py:78 in act", 1),
        ("crash", "its worker failed 2 times, the last time: it crashed: Segmentation fault (File", 3),
        ("hang", f"timed out after {TIMEOUT} s", 2),
    ],
)
def test_a_fault_is_recorded_with_its_cause(
    rows: dict[str, dict[str, Any]], fault: str, error: str, attempts: int
) -> None:
    """The driver records the end of a dead worker's trial as a further attempt."""
    row = rows[fault]
    assert (row["status"], row["epoch"], row["attempt"]) == ("failed", 1, attempts)
    assert error in row["error"]


def test_a_killed_worker_costs_nothing_but_time(
    rows: dict[str, dict[str, Any]], swept: tuple[Path, Any]
) -> None:
    killed, whole = rows["killed-once"], rows["none"]
    assert (killed["status"], killed["attempt"], whole["attempt"]) == ("completed", 2, 1)
    assert killed["metric.val.accuracy"] == whole["metric.val.accuracy"]
    epochs = ResultsStore(swept[0]).epochs("faults").to_pylist()
    own = {row["epoch"]: row["attempt"] for row in epochs if row["trial"] == killed["trial"]}
    assert own == {0: 1, 1: 1, 2: 2, 3: 2}, "it goes on from the checkpoint of epoch 1"


def test_a_worker_killed_before_it_begins_a_trial_costs_nothing_but_time(
    rows: dict[str, dict[str, Any]], swept: tuple[Path, Any]
) -> None:
    assert (swept[0].parent / "died-before").exists()
    assert (rows["nan"]["epoch"], rows["nan"]["attempt"]) == (1, 1), "it failed of its own fault"


@pytest.mark.parametrize(("fault", "gpus"), [("gpu-once", 0.5), ("gpu-memory-once", 1.0)])
def test_what_a_gpu_did_is_tried_again_in_a_new_process(
    rows: dict[str, dict[str, Any]], swept: tuple[Path, Any], fault: str, gpus: float
) -> None:
    """After a fault as it was; after memory that ran out beside others, with the whole GPU."""
    row, whole = rows[fault], rows["none"]
    assert (row["status"], row["attempt"], row["gpus"]) == ("completed", 2, gpus)
    assert row["metric.val.accuracy"] == whole["metric.val.accuracy"]
    first, second = (swept[0].parent / fault).read_text().split()
    assert first != second


def test_the_summary_says_so(swept: tuple[Path, "subprocess.CompletedProcess[str]"]) -> None:
    results, done = swept
    assert done.returncode == 0, done.stderr
    said = " ".join((done.stdout + done.stderr).split())
    assert "4 completed" in said
    assert "5 failed" in said
    assert "5 trials ended with an error" in done.stderr
    assert "this trial always fails" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr, "Ray keeps its stacks to itself"
    assert said.count("Warning: contrasweep_faulty: a method for tests") == 1, "nine trials warn of it"
    assert not list((results / "checkpoints").rglob("*.pt"))
