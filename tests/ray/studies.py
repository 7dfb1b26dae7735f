"""A small study that tests of sweeps share, and the reading of its outcome."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.store import ResultsStore

ROOT = Path(__file__).parents[2]

# More trials than the sampler draws at random before it uses its model, so that tests cover the model.
TRIALS, EPOCHS = 8, 3
TINY = "colour-digits:images=300,test_images=100"
# Half of the images train: that is quick, and two trials complete.
QUICK = {"probes.max_steps": 5, "validation.fraction": 0.45}


def small_plan(
    results: str | Path, name: str = "small", dataset: str = "colour-digits", **changes: Any
) -> SweepPlan:
    """One trial at a time: with the same seed, the same proposals in the same order."""
    options = {"trials": TRIALS, "epochs": EPOCHS, "concurrency": 1, "values": QUICK, **changes}
    return plan_sweep("fair-cclk", dataset, results=results, name=name, **options)


def tiny_plan(results: str | Path, **changes: Any) -> SweepPlan:
    """The same on so few images that a trial takes a third of a second, for tests that ask how trials end."""
    return small_plan(results, dataset=TINY, **changes)


def outcome(results: str | Path, name: str = "small") -> list[dict[str, Any]]:
    """The rows of a study without the columns that differ from run to run (times, attempts)."""
    rows = ResultsStore(results).trials(name).to_pylist()
    told = ("trial", "seed", "config", "status", "epoch", "rung")
    return [
        {key: value for key, value in row.items() if key in told or key.startswith(("hp.", "metric."))}
        for row in rows
    ]


def with_faulty_method(folder: Path) -> dict[str, str]:
    """Install contrasweep-faulty for a driver and its workers; return the environment that has it."""
    # Not at the top: drive.py imports this module where there is no package `tests`.
    from tests.search_path import search_path

    info = folder / "site" / "contrasweep_faulty-0.1.0.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: contrasweep-faulty\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[contrasweep.methods]\nfaulty = contrasweep_faulty:METHOD\n")
    path = search_path(ROOT / "src", info.parent, Path(__file__).parent / "contrasweep-faulty")
    return {"PYTHONPATH": path, "FAULTS": str(folder)}


def driven(results: Path, ending: str, done: int) -> "subprocess.CompletedProcess[str]":
    """Run drive.py on Ray: it ends as `ending` says, once `done` trials have ended."""
    command = [
        sys.executable,
        str(Path(__file__).parent / "drive.py"),
        str(results),
        ending,
        str(done),
        "ray",
    ]
    environment = {**os.environ, **with_faulty_method(results.parent)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=480, check=False)
