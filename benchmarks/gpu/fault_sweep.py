"""A real sweep, on Ray, in which two trials break the GPU: they fail, and the trials after them complete."""

import importlib.util
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.gpu.findings import Findings, Limit, NotRun, Place
from benchmarks.gpu.processes import ROOT, environment, last_line

OPTIONS = {
    "data": "colour-digits:images=300,test_images=100",
    "trials": 4,
    "epochs": 1,
    "sampler": "grid",
    "scheduler": "none",
    "concurrency": 1,
    "max-failures": 1,
    "name": "broken",
}


def fault_sweep(place: Place) -> Findings:
    """Sweep over the faults of `broken_method`, one trial after the other in a share of the GPU."""
    for package in ("ray", "optuna", "pyarrow", "tensorboard", "typer", "rich"):
        if importlib.util.find_spec(package) is None:
            raise NotRun(f"{package} is not installed")
    from benchmarks.gpu.broken_method import BROKEN, SOUND

    with tempfile.TemporaryDirectory() as folder:
        done = _swept(Path(folder), place)
        rows = _rows(Path(folder))
    checks = {f"{name} completes": rows.get(name, {}).get("status") == "completed" for name in SOUND}
    for fault, words in BROKEN.items():
        row = rows.get(fault, {})
        checks[f"{fault} fails"] = row.get("status") == "failed"
        told = str(row.get("error"))
        checks[f"{fault} is told"] = words in told or "too little memory" in told
    checks["the sweep ends well"] = done.returncode == 0
    figures: dict[str, Any] = {name: int(held) for name, held in checks.items()}
    figures |= {f"error of {name}": row["error"] for name, row in rows.items() if row["error"]}
    if done.returncode:
        figures["error of the sweep"] = last_line(done.stderr)
    held = sum(checks.values())
    limits = [Limit(name, "at least", 1) for name in checks]
    return Findings(f"{held} of {len(checks)} checks hold", figures, limits)


def _swept(folder: Path, place: Place) -> "subprocess.CompletedProcess[str]":
    options: dict[str, object] = {**OPTIONS, "results": folder / "results"}
    options |= {"gpus-per-worker": 0.5} if place.on_gpu else {"device": "cpu"}
    words = [str(word) for name, value in options.items() for word in (f"--{name}", value)]
    return subprocess.run(
        [sys.executable, "-m", "contrasweep", "sweep", "broken", "--set", "probes.max_steps=5", *words],
        cwd=ROOT,
        env=_with_plugin(folder),
        capture_output=True,
        text=True,
        check=False,
    )


def _with_plugin(folder: Path) -> dict[str, str]:
    """Make the method known as an installed plug-in would be; return the environment that has it."""
    info = folder / "site" / "contrasweep_broken-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: contrasweep-broken\nVersion: 0\n")
    entry = "[contrasweep.methods]\nbroken = benchmarks.gpu.broken_method:METHOD\n"
    (info / "entry_points.txt").write_text(entry)
    path = environment()["PYTHONPATH"]
    return environment(PYTHONPATH=os.pathsep.join([str(info.parent), path]), COLUMNS="200")


def _rows(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    from contrasweep.tuning.store import ResultsStore

    results = folder / "results"
    trials = ResultsStore(results).trials("broken").to_pylist() if results.exists() else []
    return {row["hp.fault"]: row for row in trials}
