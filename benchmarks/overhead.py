"""The cost of a trial besides its training: contrasweep against bare Ray Tune and against the floor.

    python -m benchmarks.overhead

All train for a fixed processor time (see `fake_training`). The floor is the wall-clock time of the training,
spread over the workers. On a machine with other work it is longer than the fixed time; ratios then say more
than milliseconds. A trial's overhead is counted from the first report to the end, without the start of Ray;
the ratio includes the start. Bare Tune has no store, no searcher and no scheduler; its workers import torch.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
from ray import cloudpickle, tune

import benchmarks.fake_training
from benchmarks.fake_training import DATASET, EPOCHS, fake_training, spin
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.ray.cluster import local_ray
from contrasweep.tuning.ray.sweep import run_sweep
from contrasweep.tuning.store import ResultsStore


@dataclass(frozen=True)
class Timing:
    """Seconds of the whole run, from its first report on, and inside training (summed over the trials)."""

    wall: float
    steady: float
    trained: float


Run = Callable[[int, float, int], Timing]


def main() -> None:
    parser = argparse.ArgumentParser(description="What a trial costs beside its training.")
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--short", type=int, default=60, help="trials of 0.5 s")
    parser.add_argument("--long", type=int, default=16, help="trials of 10 s; 0 leaves them out")
    options = parser.parse_args()
    runs: dict[str, Run] = {
        "contrasweep": contrasweep,
        "Tune, actors reused": lambda *setting: bare_tune(*setting, reuse=True),
        "Tune, by default": lambda *setting: bare_tune(*setting, reuse=False),
    }
    for trials, seconds, names in ((options.short, 0.5, list(runs)), (options.long, 10.0, list(runs)[:2])):
        if not trials:
            continue
        print(f"{trials} trials of {seconds} s, {options.concurrency} at once")
        for name in names:
            timing = runs[name](trials, seconds, options.concurrency)
            floor = timing.trained / options.concurrency
            overhead = 1000 * (timing.steady - floor) * options.concurrency / trials
            print(
                f"  {name:20} {timing.wall:6.1f} s, floor {floor:5.1f} s: {timing.wall / floor:5.2f} x; "
                f"{overhead:6.0f} ms a trial"
            )


def contrasweep(trials: int, seconds: float, concurrency: int) -> Timing:
    """Time a sweep."""
    reports: list[float] = []
    with fake_training(seconds), tempfile.TemporaryDirectory() as results:
        started = time.perf_counter()
        plan = plan_sweep(
            "fair-cclk",
            DATASET,
            trials=trials,
            epochs=EPOCHS,
            concurrency=concurrency,
            scheduler="none",
            results=results,
            name="overhead",
        )
        run_sweep(plan, lambda _: reports.append(time.perf_counter()))
        ended = time.perf_counter()
        trained = pc.sum(ResultsStore(results).trials("overhead")["train_seconds"]).as_py()
    return Timing(ended - started, ended - reports[0], trained)


def bare_tune(trials: int, seconds: float, concurrency: int, *, reuse: bool) -> Timing:
    """Time the same training under Ray Tune alone."""

    class Training(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            import torch  # noqa: F401

            self.epoch = -1

        def reset_config(self, new_config: dict[str, Any]) -> bool:
            self.epoch = -1
            return True

        def step(self) -> dict[str, Any]:
            self.epoch += 1
            spent = spin(0.0 if self.epoch == 0 else seconds / EPOCHS)
            return {"score": 0.5, "spent": spent, "done": self.epoch == EPOCHS}

    class Reports(tune.Callback):
        def on_trial_result(self, *_: Any, result: dict[str, Any], **__: Any) -> None:
            reports.append((time.perf_counter(), result["spent"]))

        def __getstate__(self) -> dict[str, Any]:
            return {}

    cloudpickle.register_pickle_by_value(benchmarks.fake_training)
    reports: list[tuple[float, float]] = []
    started = time.perf_counter()
    with local_ray(concurrency) as scratch:
        tune.Tuner(
            tune.with_resources(Training, {"CPU": 1}),
            param_space={"lr": tune.loguniform(1e-3, 1.0)},
            tune_config=tune.TuneConfig(
                num_samples=trials, max_concurrent_trials=concurrency, reuse_actors=reuse
            ),
            run_config=tune.RunConfig(
                storage_path=str(Path(scratch, "tune")),
                verbose=0,
                callbacks=[Reports()],
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
            ),
        ).fit()
    ended = time.perf_counter()
    return Timing(ended - started, ended - reports[0][0], sum(spent for _, spent in reports))


if __name__ == "__main__":
    main()
