"""Faults of a GPU in a process of their own: they are told, and the next process works."""

from benchmarks.gpu.faulty import AGAIN
from benchmarks.gpu.findings import Findings, Limit, Place
from benchmarks.gpu.processes import finished, last_line

SECONDS = 60.0


def faults(place: Place) -> Findings:
    """Run out of memory, then trip a device assert; after each, train in a fresh process."""
    figures: dict[str, str | int] = {}
    told = {"memory": ("out of memory",), "assert": ("device-side assert", "out of bounds")}
    for fault, words in told.items():
        ended = finished("gpu.faulty", fault, place.device, seconds=SECONDS)
        # CUDA's own message ends in hints, which speak of assertions too: the error is above them.
        lines = [line for line in ended.stderr.splitlines() if "Error" in line]
        said = [line for line in lines if any(word in line for word in words)]
        figures[f"{fault}: told"] = int(bool(said))
        figures[f"{fault}: ends the process"] = int(ended.returncode != 0)
        figures[f"{fault}: error"] = said[-1] if said else last_line(ended.stderr)
        for line in _again(ended.stdout):
            figures[f"{fault}: {AGAIN[:-1]}"] = line.removeprefix(AGAIN).strip()
        after = finished("gpu.faulty", "none", place.device, seconds=SECONDS)
        figures[f"after {fault}: a fresh process works"] = int(after.returncode == 0)
        if after.returncode:
            figures[f"after {fault}: error"] = last_line(after.stderr)
    wanted = [name for name, value in figures.items() if isinstance(value, int)]
    held = sum(int(figures[name]) for name in wanted)
    return Findings(
        f"{held} of {len(wanted)} checks hold", figures, [Limit(name, "at least", 1) for name in wanted]
    )


def _again(said: str) -> list[str]:
    return [line for line in said.splitlines() if line.startswith(AGAIN)]
