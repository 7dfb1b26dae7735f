"""What a training step costs on the stand-in device: `python -m tests.devices.counts [--places] [NAME ...]`.

The names are those of methods, and of settings with which InfoNCE runs (`SETTINGS`); by default all of them.
With `--places` it also prints where the copies, waits and draws are.
"""

import sys
from collections.abc import Iterator, Sequence

import torch

from contrasweep.tuning.methods import METHODS
from tests.devices.counting import KINDS, Counts
from tests.devices.method_runs import SETTINGS, DeviceRun, method_runs, setting_runs
from tests.devices.standin import install


def table(runs: dict[str, DeviceRun], *, places: bool) -> Iterator[str]:
    """Yield a line for each run: counts of a step; another where a resumed run has other counts."""
    yield f"{'':24}" + "".join(f"{kind:>11}" for kind in KINDS)
    for name, run in runs.items():
        yield from _lines(name, run.step, places=places)
        if run.resumed_step.places != run.step.places:
            yield from _lines(f"{name}, resumed", run.resumed_step, places=places)
        if run.error:
            yield run.error
        yield from (f"    differs: {one}" for one in run.different)


def _lines(name: str, step: Counts, *, places: bool) -> Iterator[str]:
    yield f"{name:24}" + "".join(f"{step.of(kind):11}" for kind in KINDS)
    for kind in KINDS[1:] if places else ():
        yield from (f"    {kind:9} {count:3}  {place}" for place, count in step.where(kind).items())


def main(arguments: Sequence[str]) -> None:
    torch.set_num_threads(1)
    install()
    names = [one for one in arguments if one != "--places"] or [*METHODS, *SETTINGS]
    runs = method_runs([name for name in names if name in METHODS])
    runs |= setting_runs([name for name in names if name in SETTINGS])
    sys.stdout.write("\n".join(table(runs, places="--places" in arguments)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
