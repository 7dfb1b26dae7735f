"""Does contrasweep work on this GPU, and how fast? Ten minutes on one GPU with 16 cores, without internet.

    python -m benchmarks.gpu_acceptance --out DIR                    every part
    python -m benchmarks.gpu_acceptance --out DIR --part parity      one part, in this process
    python -m benchmarks.gpu_acceptance --out DIR --only parity,resume
    python -m benchmarks.gpu_acceptance --out DIR --device cpu --small

Run it from the root of the repository; an installation of contrasweep is not needed. Every part runs in a
process of its own, within its time limit, and writes `DIR/PART.json`; what it said is in `DIR/PART.log`. The
table at the end has a row for each part, `DIR/acceptance.json` all records. The exit code is 1 if a part
failed or none ran, else 0; a part that cannot run here says why and counts as not run. The last line above is
a dry run: every part that does without a GPU, with sizes cut; its figures say nothing about a GPU.

docs/gpu-check.md says how to read it.
"""

import argparse
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.gpu.findings import Place, outcome, recorded, write_record
from benchmarks.gpu.parts import BY_NAME, PARTS, Part
from benchmarks.gpu.processes import ROOT, command, environment, last_line

NEEDED = (
    "torch",
    "torchvision",
    "numpy",
    "scipy",
    "sklearn",
    "joblib",
    "pydantic",
    "yaml",
    "safetensors",
    "filelock",
)
"""What every part imports; docs/gpu-check.md says how to bring what a machine without internet lacks."""

WORDS = {True: "ok", False: "FAILED", None: "not run"}
GRACE = 60.0
"""Seconds that a killed process may take to end: on a busy machine, or with much memory, it takes a few."""


def run_apart(part: Part, place: Place, seconds: float) -> dict[str, Any]:
    """Run a part in a process of its own and return its record, whatever becomes of the process."""
    if part.needs_gpu and not place.on_gpu:
        return _written(part, place, outcome(None, "not run: it needs a GPU"), 0.0)
    file = place.out / f"{part.name}.json"
    file.unlink(missing_ok=True)
    line = command("gpu_acceptance", "--part", part.name, "--out", place.out, "--device", place.device)
    line += ["--small"] if place.small else []
    started = time.perf_counter()
    with (place.out / f"{part.name}.log").open("w", encoding="utf-8") as log:
        # A session of its own: the processes that the part starts end with it.
        process = subprocess.Popen(
            line,
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment(**_threads(place)),
            cwd=ROOT,
            start_new_session=True,
        )
        fault = _waited(process, seconds)
    if fault is None and file.exists():
        record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return record
    said = last_line((place.out / f"{part.name}.log").read_text(encoding="utf-8", errors="replace"))
    error = fault or f"the process ended with {process.returncode} and no record: {said}"
    return _written(part, place, outcome(False, error), time.perf_counter() - started)


def _threads(place: Place) -> dict[str, str]:
    """Return the variables that give a dry run on a CPU one thread: such machines are shared."""
    return {} if place.on_gpu or not place.small else {"OMP_NUM_THREADS": "1"}


def _waited(process: "subprocess.Popen[bytes]", seconds: float) -> str | None:
    """Wait for a process, and end all that it started; return why it was ended too early, if it was."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return f"it took longer than its limit of {seconds:g} s"
    finally:
        with suppress(ProcessLookupError):  # raised if nothing of it is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait(GRACE)
    return None


def _written(part: Part, place: Place, found: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    # The name of the GPU and the versions are not looked up: this process leaves the GPU to the parts.
    here = {"device": place.device, "dry_run": place.dry_run, "versions": {}}
    record = {"part": part.name, **found, **here, "seconds": round(seconds, 2)}
    write_record(record, place.out)
    return record


def table(records: Sequence[Mapping[str, Any]]) -> str:
    """Return a row for each part, and below them what was missed and what went wrong."""
    rows = [(one["part"], WORDS[one["ok"]], f"{one['seconds']:.0f} s", one["headline"]) for one in records]
    rows = [("part", "result", "time", "figures"), *rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)] + [0]
    lines = ["  ".join(map(str.ljust, row, widths)) for row in rows]
    for one in records:
        lines += [f"{one['part']}: {_in_words(limit, one)}" for limit in one["limits"] if not limit["holds"]]
        lines += [f"{one['part']}: {line}" for line in (one["error"] or "").splitlines()]
    return "\n".join(line.rstrip() for line in lines)


def _in_words(limit: Mapping[str, Any], record: Mapping[str, Any]) -> str:
    value = record["figures"].get(limit["figure"])
    shown = f"{value:.4g}" if isinstance(value, int | float) else str(value)
    judged = "missed" if limit["judged"] else "missed, not judged here"
    return f"{judged}: {limit['figure']} is {shown}, {limit['rule']} {limit['bound']:g} is wanted"


def run_all(parts: Sequence[Part], place: Place, factor: float) -> list[dict[str, Any]]:
    """Run the parts one after the other and write `acceptance.json` after each."""
    records = []
    for part in parts:
        print(f"{part.name}: {part.asks} ...", file=sys.stderr, flush=True)
        records.append(run_apart(part, place, part.seconds * factor))
        text = json.dumps(records, indent=1)
        (place.out / "acceptance.json").write_text(text + "\n", encoding="utf-8")
    return records


def exit_code(records: Sequence[Mapping[str, Any]]) -> int:
    """Return 1 if a part failed or none ran, else 0."""
    results = [one["ok"] for one in records]
    return int(False in results or True not in results)


def title(records: Sequence[Mapping[str, Any]]) -> str:
    """Return the line above the table: the device, and whether it was a dry run."""
    first = next((one for one in records if one["versions"]), records[0])
    dry = "DRY RUN, no figures of a GPU: " if first["dry_run"] else ""
    versions = ", ".join(f"{name} {first['versions'].get(name)}" for name in ("torch", "python"))
    return f"{dry}{first['device']}, {versions}"


def missing_packages() -> list[str]:
    """Return what every part needs and this Python lacks."""
    return [name for name in NEEDED if importlib.util.find_spec(name) is None]


def _parse(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder for records, logs and the trace")
    parser.add_argument("--part", choices=list(BY_NAME), metavar="NAME", help="run one part in this process")
    parser.add_argument("--only", default="", metavar="NAMES", help=f"some parts: {','.join(BY_NAME)}")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--small", action="store_true", help="cut the sizes, judge no limit of speed")
    parser.add_argument("--time-factor", type=float, default=1.0, help="multiplies the time limits")
    options = parser.parse_args(words)
    unknown = [name for name in options.only.split(",") if name and name not in BY_NAME]
    if unknown:
        parser.error(f"--only: given {', '.join(unknown)}; allowed: {', '.join(BY_NAME)}")
    missing = missing_packages()
    if missing:
        parser.error(f"not installed: {', '.join(missing)}; docs/gpu-check.md says how to bring them")
    if options.device == "cuda" and not options.part and not _finds_gpu():
        parser.error("torch finds no GPU here; a dry run: --device cpu --small")
    return options


def _finds_gpu() -> bool:
    """Return whether torch finds a GPU; it is asked in a process of its own, which leaves nothing on it."""
    asked = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0


def main(words: Sequence[str] | None = None) -> int:
    """Run what the options ask for and return the exit code."""
    options = _parse(words)
    options.out.mkdir(parents=True, exist_ok=True)
    place = Place(options.device, options.small, options.out.resolve())
    if options.part:
        _use_this_checkout()
        record = recorded(options.part, BY_NAME[options.part].load, place)
        write_record(record, place.out)
        print(table([record]))
        return exit_code([record])
    chosen = options.only.split(",") if options.only else list(BY_NAME)
    records = run_all([part for part in PARTS if part.name in chosen], place, options.time_factor)
    print(title(records), table(records), sep="\n")
    return exit_code(records)


def _use_this_checkout() -> None:
    """Let this process, and those that it starts, import contrasweep from this checkout."""
    os.environ.update(environment())
    if str(ROOT / "src") not in sys.path:
        sys.path.insert(0, str(ROOT / "src"))


if __name__ == "__main__":
    sys.exit(main())
