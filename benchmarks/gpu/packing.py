"""Many LeNet-5 trainings on one device: what they do in a minute together, with and without NVIDIA's MPS.

A small network keeps the host busy, not the GPU: several trials share it. MPS lets their kernels run at the
same time; without it, the processes take turns.
"""

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.gpu.findings import Findings, Limit, Place
from benchmarks.gpu.packed import BATCH, PATIENCE, POLL
from benchmarks.gpu.processes import ROOT, command, environment, last_line

COUNTS = (1, 4, 8, 16)
IMAGES, SECONDS = 60_000, 5
MPS = "nvidia-cuda-mps-control"
MPS_SECONDS = 20.0
"""Seconds that starting or ending MPS may take."""


@contextmanager
def mps(folder: Path) -> Iterator[Mapping[str, str]]:
    """Run an MPS of our own inside; yield the variables by which processes find it.

    Raises:
        OSError, subprocess.SubprocessError: it cannot be started.
    """
    places = {"CUDA_MPS_PIPE_DIRECTORY": "pipe", "CUDA_MPS_LOG_DIRECTORY": "log"}
    changes = {name: str(folder / place) for name, place in places.items()}
    for place in changes.values():
        Path(place).mkdir(parents=True)
    _control(changes, "-d")
    try:
        yield changes
    finally:
        _control(changes, said="quit\n")


def _control(changes: Mapping[str, str], *arguments: str, said: str = "") -> None:
    # MPS goes on in the background and would keep pipes open.
    subprocess.run(
        [MPS, *arguments],
        input=said,
        text=True,
        env={**os.environ, **changes},
        timeout=MPS_SECONDS,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def epochs_a_minute(counts: Sequence[int], place: Place, changes: Mapping[str, str]) -> dict[str, float]:
    """Return what so many trainings do together, in epochs of 60,000 images a minute, by their number.

    Raises:
        RuntimeError: a training failed; the message is its last line.
    """
    images = place.sized(IMAGES, 64)
    with tempfile.TemporaryDirectory() as folder:
        started = [
            _started(number, counts, Path(folder), place, images, changes) for number in range(max(counts))
        ]
        try:
            # All have started before the first round: until then, those of later rounds take cores too.
            _wait_for(Path(folder), "ready-*", max(counts), started)
            found = {}
            for count in counts:
                _wait_for(Path(folder), f"ready-{count}-*", count, started)
                (Path(folder) / f"go-{count}").touch()
                done = _wait_for(Path(folder), f"done-{count}-*", count, started)
                results = [json.loads(file.read_text(encoding="utf-8")) for file in done]
                steps = sum(one["steps"] / one["seconds"] for one in results)
                found[str(count)] = 60 * steps * min(BATCH, images) / IMAGES
        finally:
            for process in started:
                process.kill()
                process.communicate()
    return found


def packing(place: Place) -> Findings:
    """Measure every number of processes, without MPS and, where it can be started, with it."""
    counts = COUNTS if place.on_gpu else (1, 2)
    plain = epochs_a_minute(counts, place, {})
    figures: dict[str, object] = {"epochs/min without MPS": plain, "MPS": "not tried"}
    if place.on_gpu:
        figures |= _with_mps(counts, place)
    figures["trainings that finished"] = sum(counts)
    told = ", ".join(f"{count}: {rate:,.1f}" for count, rate in plain.items())
    return Findings(
        f"epochs/min together by processes: {told}; MPS: {figures['MPS']}",
        figures,
        [Limit("trainings that finished", "at least", sum(counts))],
    )


def _with_mps(counts: tuple[int, ...], place: Place) -> dict[str, object]:
    if shutil.which(MPS) is None:
        return {"MPS": f"{MPS} is not there"}
    with tempfile.TemporaryDirectory() as folder:
        try:
            with mps(Path(folder)) as changes:
                return {"epochs/min with MPS": epochs_a_minute(counts, place, changes), "MPS": "used"}
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            return {"MPS": f"did not work: {str(error).splitlines()[0]}"}


def _started(
    number: int, counts: Sequence[int], folder: Path, place: Place, images: int, changes: Mapping[str, str]
) -> "subprocess.Popen[str]":
    line = command("gpu.packed", number, folder, "--device", place.device, "--images", images)
    line += ["--seconds", str(place.sized(SECONDS, 1)), "--counts", ",".join(map(str, counts))]
    with (folder / f"said-{number}").open("w") as said:
        return subprocess.Popen(
            line, env=environment(**changes), cwd=ROOT, stdout=said, stderr=said, text=True
        )


def _wait_for(
    folder: Path, pattern: str, count: int, started: "Sequence[subprocess.Popen[str]]"
) -> list[Path]:
    """Wait until so many files are there, and return them.

    Raises:
        RuntimeError: a training failed, or the files did not come in time.
    """
    deadline = time.monotonic() + PATIENCE
    while len(found := list(folder.glob(pattern))) < count:
        failed = [number for number, process in enumerate(started) if process.poll()]
        if failed or time.monotonic() > deadline:
            said = (folder / f"said-{failed[0]}").read_text() if failed else "a training does not answer"
            raise RuntimeError(last_line(said))
        time.sleep(POLL)
    return found
