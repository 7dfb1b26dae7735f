"""What a step's views cost the CPU where an accelerator makes them: to draw, to plan and to pack them.

    python -m benchmarks.view_plans [--steps 200] [--views 2] [--at-once 4096]

Images have 3 x 32 x 32 pixels. One case is crop and flip; the other one is crop, flip, jitter (.4, .4, .4,
.1; of 80 %) and greyscale (20 %). As in training, views of several steps are drawn together, up to
`--at-once`. Medians in milliseconds of a step, one thread. The plan is packed for torch's device "meta",
which has no memory: so no accelerator is needed, and page-locked memory is not in the times.
"""

import argparse
import platform
import statistics
import time

import torch

from contrasweep.data import RandomViews, torch_generator
from contrasweep.data.packing import to_device

SIZE, SMALLEST_CROP, BATCHES = 32, 0.2, (256, 512)
CASES = {
    "crop + flip": RandomViews(SIZE, SMALLEST_CROP),
    "all": RandomViews(
        SIZE, SMALLEST_CROP, brightness=0.4, contrast=0.4, saturation=0.4, hue=0.1, grayscale=0.2
    ),
}
NOWHERE = torch.device("meta")


def step_seconds(transform: RandomViews, count: int, views: int, steps: range) -> list[float]:
    """Return the seconds of a step to draw, plan and pack the views of `count` images, and their sum."""
    start = time.perf_counter()
    generators = [torch_generator("benchmark", step, view) for step in steps for view in range(views)]
    together = transform.draw_all(count, SIZE, generators)
    rows = views * count
    parameters = [together[first : first + rows] for first in range(0, len(together), rows)]
    drawn = time.perf_counter()
    plans = [transform.plan(one, 3, NOWHERE, [0] * views) for one in parameters]
    planned = time.perf_counter()
    for plan in plans:
        to_device(plan, NOWHERE)
    end = time.perf_counter()
    return [took / len(steps) for took in (drawn - start, planned - drawn, end - planned, end - start)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--views", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=4096)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'views':14s}{'images':>8s}{'draw':>8s}{'plan':>8s}{'pack':>8s}{'all':>8s}   ms")
    for name, transform in CASES.items():
        for count in BATCHES:
            together = max(1, arguments.at_once // (arguments.views * count))
            starts = range(0, arguments.steps, together)
            seconds = [
                step_seconds(transform, count, arguments.views, range(at, at + together)) for at in starts
            ]
            medians = (1e3 * statistics.median(part) for part in zip(*seconds, strict=True))
            print(f"{name:14s}{count:8d}" + "".join(f"{one:8.3f}" for one in medians))
    print(
        f"{arguments.views} views, {arguments.steps} steps, {platform.machine()}, torch {torch.__version__}"
    )


if __name__ == "__main__":
    main()
