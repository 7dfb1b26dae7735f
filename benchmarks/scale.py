"""The cost of a trial for the driver, the search and the store as a study grows, without training.

    python -m benchmarks.scale [--trials 10000] [--through-ray 2000] [--samplers tpe random]

Seconds are processor seconds of this process, so that a machine with other work gives the same figures. Where
other processes compute too, wall-clock seconds stand beside them. There are three parts:

- search: one driver asks, gets five reports and ends each trial; seven trials in ten are stopped;
- store: what workers and driver write for a trial on a local disk, and the requests for it on S3 (a server
  on loopback, if moto is installed);
- driver: real sweeps through Ray with training that takes no time (see `fake_training`).
"""

import argparse
import os
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.fake_training import DATASET, EPOCHS, fake_training
from benchmarks.process_memory import resident_mib
from benchmarks.timing import timed
from contrasweep.tuning.experiment.statuses import Status
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.sweep import run_sweep
from contrasweep.tuning.search import PastTrial, Proposal, SearchStudy
from contrasweep.tuning.store import (
    Location,
    ResultsStore,
    StudyRecord,
    TrialInfo,
    TrialWriter,
    compact,
    end_trial,
    open_location,
    save_study,
)

STOPPED = 0.7
SIZES = (100, 1_000, 3_000)
ASKED = 10
PARTS = 10


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--trials", type=int, default=10_000, help="trials of search and store; 0 leaves both out"
    )
    parser.add_argument(
        "--through-ray", type=int, default=2_000, help="trials of the driver; 0 leaves it out"
    )
    parser.add_argument("--s3", type=int, default=50, help="trials on S3; 0 leaves it out")
    parser.add_argument("--samplers", nargs="+", default=["tpe", "random"])
    options = parser.parse_args()
    if options.trials:
        for sampler in options.samplers:
            search(sampler, options.trials)
        store(options.trials)
    if options.s3:
        on_s3(options.s3)
    if options.through_ray:
        driver(options.through_ray)


class Stages:
    """Prints processor and wall-clock milliseconds per trial, for every tenth of the trials."""

    def __init__(self, trials: int) -> None:
        self._each = max(1, trials // PARTS)
        self._done = 0
        self._cpu, self._wall = time.process_time(), time.perf_counter()
        self.cpu = 0.0

    def trial(self, done: int, more: str = "") -> None:
        if done < self._done + self._each:
            return
        count = done - self._done
        cpu, wall = time.process_time(), time.perf_counter()
        self.cpu, clock = (1000 * spent / count for spent in (cpu - self._cpu, wall - self._wall))
        print(f"  to {done:6}: {self.cpu:8.2f} ms, by the clock {clock:8.2f} {more}")
        self._done, self._cpu, self._wall = done, cpu, wall


def search(sampler: str, trials: int) -> None:
    """Time the search: a resume with many trials, and the driver's work between two trials after it."""
    print(f"search, {sampler}: a trial's ask, {EPOCHS} reports and end, after so many trials")
    plan = study(trials, sampler=sampler)
    drawn = SearchStudy(plan.space, sampler="random", trials=trials)
    past = [_ended(drawn.ask(), random.Random(number)) for number in range(trials)]
    for size in sorted({size for size in SIZES if size < trials} | {trials}):
        grown = SearchStudy(plan.space, sampler=sampler, trials=trials + ASKED)
        begun = time.process_time()
        grown.restore(past[:size])
        restored, scores = time.process_time(), random.Random(0)
        for _ in range(ASKED):
            number, level = grown.ask().number, scores.random()
            for epoch in range(1, EPOCHS + 1):
                grown.report(number, epoch, level * epoch / EPOCHS)
            if scores.random() < STOPPED:
                grown.prune(number)
            else:
                grown.complete(number, level)
        each = 1000 * (time.process_time() - restored) / ASKED
        print(f"  after {size:6}: {each:8.2f} ms; rebuilt in {restored - begun:.2f} s")


def _ended(proposal: Proposal, scores: random.Random) -> PastTrial:
    level, stopped = scores.random(), scores.random() < STOPPED
    epochs = {epoch: level * epoch / EPOCHS for epoch in range(1, 2 if stopped else EPOCHS + 1)}
    state: Status = "stopped" if stopped else "completed"
    return PastTrial(proposal.number, proposal.values, state, epochs, None if stopped else level)


def store(trials: int) -> None:
    """Count what a trial writes, and time the writing, the reading and the merging of all trials."""
    print("store, local disk: a trial's start, epochs and end")
    with tempfile.TemporaryDirectory() as folder:
        plan = study(trials, results=folder)
        location, record = open_location(folder, writable=True), plan.record()
        save_study(location, record)
        stages = Stages(trials)
        for number, stopped in enumerate(fates(trials)):
            write_trial(location, record, plan, number, stopped)
            stages.trial(number + 1)
        files = list(Path(folder).rglob("*.parquet"))
        size = sum(path.stat().st_size for path in files)
        print(f"  {len(files) / trials:.2f} files and {size / trials:.0f} bytes a trial")
        reader = ResultsStore(folder)
        with timed("read trials, not merged"):
            reader.trials(plan.name)
        with timed("merge"):
            compact(location, plan.name)
        with timed("read trials"):
            reader.trials(plan.name)
        with timed("read epochs"):
            reader.epochs(plan.name)
        files = list(Path(folder).rglob("*.parquet"))
        size = sum(path.stat().st_size for path in files)
        print(f"  merged: {len(files)} files, {size / trials:.0f} bytes a trial")


def on_s3(trials: int) -> None:
    """Count the requests of trials that finish and of trials that are stopped."""
    try:
        from tests.store.s3_server import s3_server
    except ImportError as error:
        print(f"store, S3: left out ({error})")
        return
    os.environ.update(AWS_ACCESS_KEY_ID="somebody", AWS_SECRET_ACCESS_KEY="secret")
    with s3_server() as server:
        server.make_bucket("bucket")
        uri = server.uri("bucket/results")
        plan = study(trials, results=uri)
        location, record = open_location(uri, writable=True), plan.record()
        save_study(location, record)
        for begin, stopped in ((0, False), (trials, True)):
            server.counts()
            for number in range(begin, begin + trials):
                write_trial(location, record, plan, number, stopped)
            counts = Counter(server.counts())
            told = ", ".join(f"{count / trials:.1f} {kind}" for kind, count in sorted(counts.items()))
            print(f"store, S3: a {'stopped' if stopped else 'finished'} trial: {told}")


def write_trial(location: Location, record: StudyRecord, plan: SweepPlan, number: int, stopped: bool) -> None:
    """Write what the worker writes and, if the trial is stopped, what the driver writes."""
    values = plan.space.defaults()
    info = TrialInfo(number, 0, "search", "0123456789abcdef", values, EPOCHS)
    writer = TrialWriter(location, record, info)
    writer.start()
    for epoch in range(1 + (1 if stopped else EPOCHS)):
        metrics = {"val.ridge_accuracy": 0.5, "train.loss": 1.0}
        writer.add_epoch(epoch, metrics, seconds=1.0, train_seconds=1.0)
    if stopped:
        writer.flush()
        end_trial(location, record, info, "stopped", rung=1)
    else:
        writer.finish("completed", {"val.accuracy": 0.5})


def driver(trials: int) -> None:
    """Run sweeps whose trials train for no time: the rest is the work of the driver and Ray."""
    print(f"driver: {trials} trials through Ray, two at once, {EPOCHS} epochs each")
    with fake_training(0.0), tempfile.TemporaryDirectory() as folder:
        plan = study(trials, results=folder, concurrency=2, scheduler="asha", sampler="random")
        stages = Stages(trials)

        def show(progress: SweepProgress) -> None:
            stages.trial(progress.done, f"{resident_mib():6.0f} MiB")

        done = run_sweep(plan, progress=show)
        print(f"  {dict(done.counts)}")


def study(trials: int, **options: object) -> SweepPlan:
    given = {"trials": trials, "epochs": EPOCHS, "name": "scale", **options}
    return plan_sweep("fair-cclk", DATASET, **given)  # type: ignore[arg-type]


def fates(trials: int) -> Iterator[bool]:
    """Return for each trial whether it is stopped."""
    drawn = random.Random(1)
    return (drawn.random() < STOPPED for _ in range(trials))


if __name__ == "__main__":
    main()
