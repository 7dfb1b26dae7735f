"""A sweep's wall-clock time over its floor: the time inside `pretrain`, spread over the sweep's cores.

    python -m benchmarks.sweep --trials 8 --epochs 30

No trial is stopped early, so that all have the same length. Everything outside `pretrain` counts: starting
Ray and the workers, imports, loading data, proposals, writing the store, waiting for the last trial.
"""

import argparse
import tempfile
import time
from pathlib import Path

from contrasweep.tuning.ray.sweep import sweep
from contrasweep.tuning.store import ResultsStore


def main() -> None:
    parser = argparse.ArgumentParser(description="A sweep's wall-clock over its floor.")
    parser.add_argument("--data", default="colour-digits")
    parser.add_argument("--data-root", type=Path)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--concurrency", type=int)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as results:
        started = time.perf_counter()
        done = sweep(
            "fair-cclk",
            options.data,
            trials=options.trials,
            epochs=options.epochs,
            concurrency=options.concurrency,
            data_root=options.data_root,
            scheduler="none",
            results=results,
            name="overhead",
        )
        wall = time.perf_counter() - started
        rows = ResultsStore(results).trials("overhead").to_pylist()
    inside = [row["train_seconds"] + row["evaluate_seconds"] for row in rows]
    at_once = done.plan.resources.concurrency
    floor = sum(inside) / at_once
    print(f"{len(rows)} trials of {min(inside):.1f} to {max(inside):.1f} s, {at_once} at once")
    print(f"floor {floor:.1f} s, wall-clock {wall:.1f} s: ratio {wall / floor:.2f}")


if __name__ == "__main__":
    main()
