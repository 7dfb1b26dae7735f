"""The memory of a sweep's driver as the number of trials grows.

python -m benchmarks.driver_memory --trials 1000
"""

import argparse
import gc
import tempfile
from pathlib import Path

from benchmarks.fake_training import DATASET, fake_training
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.sweep import run_sweep


def main() -> None:
    parser = argparse.ArgumentParser(description="The memory of a sweep's driver as trials go by.")
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--sampler", default="random")
    options = parser.parse_args()
    seen: dict[int, float] = {}

    def show(progress: SweepProgress) -> None:
        if progress.done % (options.trials // 10) == 0 and progress.done not in seen:
            gc.collect()
            seen[progress.done] = resident_mib()
            print(f"{progress.done:5} trials: {seen[progress.done]:.1f} MiB", flush=True)

    with fake_training(0.0), tempfile.TemporaryDirectory() as results:
        plan = plan_sweep(
            "fair-cclk",
            DATASET,
            trials=options.trials,
            epochs=1,
            scheduler="none",
            sampler=options.sampler,
            results=results,
            name="memory",
        )
        run_sweep(plan, show)
    warm = seen[options.trials // 10]
    last = seen[max(seen)]
    each = 1024 * (last - warm) / (max(seen) - options.trials // 10)
    print(f"from trial {options.trials // 10} on: {last - warm:+.1f} MiB, {each:.1f} KiB a trial")


def resident_mib() -> float:
    """Return the resident memory of this process in MiB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    (resident,) = (line for line in lines if line.startswith("VmRSS:"))
    return int(resident.split()[1]) / 1024


if __name__ == "__main__":
    main()
