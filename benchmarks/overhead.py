"""The cost of a trial besides its training: contrasweep against bare Ray Tune and against the floor.

    python -m benchmarks.overhead [--rounds 3]

All train for a fixed processor time (see `fake_training`). The floor is the wall-clock time of the training,
spread over the workers; on a machine with other work it is longer than the fixed time. The figures:

- what a trial costs beside its training, while all workers have one: the first trials, in which workers
  import torch, and the last, after which workers are idle, are left out. Other work on the machine makes it
  longer;
- the processor time of driver and workers beside the training, for the same trials: other work changes it
  little;
- what the run takes beside that once: Ray's start and end, the first imports, idle workers at the end;
- the whole run in floors. It includes what the run takes once, so it falls with the number of trials.

Bare Tune has no store, no searcher and no scheduler; its workers import torch. "Settings as ours" gives it
the environment variables that switch Tune's own files off; by default they are on.
"""

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ray
from ray import cloudpickle, tune

import benchmarks.fake_training
from benchmarks.fake_training import DATASET, EPOCHS, fake_training, spin
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.cluster import local_ray
from contrasweep.tuning.ray.sweep import run_sweep
from contrasweep.tuning.store import ResultsStore

WARM_UP = 4
"""Trials of each worker that are left out at the beginning."""

_AGENTS = ("ray::Dashboard", "ray::RuntimeEnv")
"""Processes of Ray that look like workers, and do the same whatever the workers do."""


@dataclass(frozen=True)
class Epoch:
    """When an epoch of training ended (seconds since 1970), and the seconds that it took."""

    ended: float
    seconds: float


@dataclass(frozen=True)
class Timing:
    """The seconds of a whole run, its epochs, those of no training too, and when trials began and ended.

    `processor` is what a trial takes of it beside its training, see `Processor`.
    """

    wall: float
    workers: int
    epochs: Sequence[Epoch]
    begun: Sequence[float]
    ended: Sequence[float]
    processor: float

    @property
    def floor(self) -> float:
        """The seconds of training, spread over the workers."""
        return sum(epoch.seconds for epoch in self.epochs) / self.workers

    @property
    def each(self) -> float:
        """The seconds of a worker that a trial takes beside its training, while all workers have a trial."""
        first = sorted(self.begun)[WARM_UP * self.workers]
        last = sorted(self.ended)[-self.workers]
        trained = sum(
            max(0.0, min(last, epoch.ended) - max(first, epoch.ended - epoch.seconds))
            for epoch in self.epochs
        )
        trials = sum(first < end <= last for end in self.ended)
        return (self.workers * (last - first) - trained) / trials

    @property
    def once(self) -> float:
        """The seconds that the run takes beside its trials."""
        return self.wall - self.floor - self.each * len(self.ended) / self.workers


class Processor:
    """The processor seconds that trials take beside training: of this process and of Ray's workers below it.

    Counted from the end of one trial to that of another, while all workers have a trial.
    """

    def __init__(self, trials: int, training: float, workers: int) -> None:
        self._first, self._last = WARM_UP * workers, trials - workers
        self._training = training
        self._ended = 0
        self._begun = 0.0
        self.each = math.nan

    def trial_ended(self) -> None:
        """Count the end of a trial."""
        self._ended += 1
        if self._ended == self._first:
            self._begun = self._spent()
        if self._ended == self._last:
            trials = self._last - self._first
            self.each = (self._spent() - self._begun) / trials - self._training

    def _spent(self) -> float:
        here, processes = str(os.getpid()), dict(_processes())
        # A worker's parent is Ray's process of the node, which is a child of this one.
        workers = [
            one
            for one in processes.values()
            if one.name.startswith("ray::")
            and not one.name.startswith(_AGENTS)
            and processes.get(one.parent, one).parent == here
        ]
        return sum(one.seconds for one in (processes[here], *workers))


@dataclass(frozen=True)
class _Process:
    name: str
    parent: str
    seconds: float


def _processes() -> Iterator[tuple[str, _Process]]:
    """Yield the processes of this machine (Linux), by their numbers."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            name, _, rest = (folder / "stat").read_text().partition("(")[2].rpartition(")")
            fields = rest.split()
            ticks = int(fields[11]) + int(fields[12])
            yield folder.name, _Process(name, fields[1], ticks / os.sysconf("SC_CLK_TCK"))


Run = Callable[[int, float, int], Timing]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--short", type=int, default=100, help="trials of 0.5 s; 0 leaves them out")
    parser.add_argument("--long", type=int, default=16, help="trials of 10 s; 0 leaves them out")
    parser.add_argument("--rounds", type=int, default=1, help="rounds, in which the three take turns")
    parser.add_argument("--only", help="the beginning of the name of one of the three")
    options = parser.parse_args()
    runs: dict[str, Run] = {
        "contrasweep": contrasweep,
        "Tune, actors reused, settings as ours": lambda *setting: bare_tune(*setting, tuned=True),
        "Tune, by default": lambda *setting: bare_tune(*setting, tuned=False),
    }
    chosen = [name for name in runs if name.startswith(options.only or "")]
    if not chosen:
        parser.error(f"--only: given {options.only!r}; allowed: the beginning of one of {list(runs)}")
    least = (WARM_UP + 2) * options.concurrency
    if any(0 < trials < least for trials in (options.short, options.long)):
        parser.error(f"--short and --long take 0, or {least} or more: first and last trials are left out")
    for trials, seconds, names in ((options.short, 0.5, chosen), (options.long, 10.0, chosen[:2])):
        if not trials:
            continue
        print(f"{trials} trials of {seconds} s, {options.concurrency} at once")
        for name in names * options.rounds:
            timing = runs[name](trials, seconds, options.concurrency)
            print(
                f"  {name:38} {1000 * timing.each:5.0f} ms a trial ({1000 * timing.processor:.0f} of a "
                f"processor), {timing.once:5.1f} s once; "
                f"{timing.wall:6.1f} s in all, {timing.wall / timing.floor:.2f} x the floor",
                flush=True,
            )


def contrasweep(trials: int, seconds: float, concurrency: int) -> Timing:
    """Time a sweep."""
    processor, done = Processor(trials, seconds, concurrency), 0

    def count(progress: SweepProgress) -> None:
        nonlocal done
        for _ in range(progress.done - done):
            processor.trial_ended()
        done = progress.done

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
        run_sweep(plan, progress=count)
        wall = time.perf_counter() - started
        store = ResultsStore(results)
        epochs, ends = store.epochs("overhead").to_pylist(), store.trials("overhead").to_pylist()
    return Timing(
        wall,
        concurrency,
        [Epoch(row["time"].timestamp(), row["train_seconds"]) for row in epochs],
        [row["time"].timestamp() for row in epochs if row["epoch"] == 0],
        [row["finished"].timestamp() for row in ends],
        processor.each,
    )


def bare_tune(trials: int, seconds: float, concurrency: int, *, tuned: bool) -> Timing:
    """Time the same training under Ray Tune alone; `tuned` reuses actors and sets variables as we do."""

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
            done = self.epoch == EPOCHS
            return {"score": 0.5, "epoch": self.epoch, "ended": time.time(), "spent": spent, "done": done}

    class Reports(tune.Callback):
        def on_trial_result(self, *_: Any, result: dict[str, Any], **__: Any) -> None:
            epochs.append(Epoch(result["ended"], result["spent"]))
            if result["epoch"] == 0:
                begun.append(result["ended"])

        def on_trial_complete(self, *_: Any, **__: Any) -> None:
            ended.append(time.time())
            processor.trial_ended()

        def __getstate__(self) -> dict[str, Any]:
            return {}

    cloudpickle.register_pickle_by_value(benchmarks.fake_training)
    processor = Processor(trials, seconds, concurrency)
    epochs: list[Epoch] = []
    begun: list[float] = []
    ended: list[float] = []
    started = time.perf_counter()
    with local_ray(concurrency) if tuned else _ray_by_default(concurrency) as scratch:
        tune.Tuner(
            tune.with_resources(Training, {"CPU": 1}),
            param_space={"lr": tune.loguniform(1e-3, 1.0)},
            tune_config=tune.TuneConfig(
                num_samples=trials, max_concurrent_trials=concurrency, reuse_actors=tuned
            ),
            run_config=tune.RunConfig(
                storage_path=str(Path(scratch, "tune")),
                verbose=0,
                callbacks=[Reports()],
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=0, checkpoint_at_end=False),
            ),
        ).fit()
    return Timing(time.perf_counter() - started, concurrency, epochs, begun, ended, processor.each)


@contextmanager
def _ray_by_default(cpus: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as scratch:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray.init(address="local", num_cpus=cpus, include_dashboard=False, log_to_driver=False)
        try:
            yield Path(scratch)
        finally:
            ray.shutdown()


if __name__ == "__main__":
    main()
