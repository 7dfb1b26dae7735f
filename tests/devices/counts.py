"""What a training step costs on the stand-in: `python -m tests.devices.counts [--places] [METHOD ...]`.

With `--places` it also prints where the copies, waits and draws are.
"""

import sys
from collections.abc import Iterator, Sequence

import torch

from contrasweep.tuning.methods import METHODS
from tests.devices.counting import KINDS
from tests.devices.method_runs import DeviceRun, method_runs
from tests.devices.standin import install


def table(runs: dict[str, DeviceRun], *, places: bool) -> Iterator[str]:
    """Yield a line for each method: counts a step, and where they are."""
    yield f"{'method':22}" + "".join(f"{kind:>11}" for kind in KINDS)
    for method, run in runs.items():
        yield f"{method:22}" + "".join(f"{run.step.of(kind):11}" for kind in KINDS)
        if run.error:
            yield run.error
        yield from (f"    differs: {one}" for one in run.different)
        for kind in KINDS[1:] if places else ():
            for place, count in run.step.where(kind).items():
                yield f"    {kind:9} {count:3}  {place}"


def main(arguments: Sequence[str]) -> None:
    torch.set_num_threads(1)
    install()
    methods = [one for one in arguments if one != "--places"]
    runs = method_runs(methods or METHODS)
    sys.stdout.write("\n".join(table(runs, places="--places" in arguments)) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
