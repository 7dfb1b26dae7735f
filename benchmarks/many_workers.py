"""What a search costs its driver while very many trials run at once; workers are simulated, Ray is not there.

    python -m benchmarks.many_workers [--workers 1000] [--ended 300] [--samplers random tpe cmaes curves]

Each sampler proposes a trial for every worker. After that one trial ends, and the next is proposed in its
place, again and again; seven trials in ten were stopped early. Seconds are processor seconds of this process,
so that a machine with other work gives the same figures. The memory is that of the driver's own part: the
searcher that Ray Tune asks, with its study, its forecast and the requests of all running trials.
"""

import argparse
import gc
import random
import time
from dataclasses import dataclass

from benchmarks.fake_training import DATASET, EPOCHS
from benchmarks.process_memory import resident_mib
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.ray.searcher import StoreSearcher
from contrasweep.tuning.search import SearchStudy
from contrasweep.tuning.store import open_location

STOPPED = 0.7
UNUSED = "/nowhere"


@dataclass(frozen=True)
class Cost:
    """Processor milliseconds of a proposal: the mean while workers get their first trial, and after it."""

    first: float
    later: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, nargs="+", default=[1000], help="trials that run at once")
    parser.add_argument("--ended", type=int, default=300, help="trials that end, one after the other")
    parser.add_argument("--samplers", nargs="+", default=["random", "tpe", "cmaes", "curves"])
    options = parser.parse_args()
    for sampler in options.samplers:
        for workers in options.workers:
            cost = proposals(plan_of(sampler, workers + options.ended), workers, options.ended)
            print(
                f"{sampler:7} {workers:5} workers: {cost.first:8.1f} ms a first proposal, then "
                f"{cost.later:8.1f} ms: {1000 / cost.later:7.1f} proposals a second",
                flush=True,
            )
    for workers in options.workers:
        print(f"{workers:5} running trials: {1024 * memory(workers) / workers:.1f} KiB each in the driver")


def plan_of(sampler: str, trials: int) -> SweepPlan:
    """Return a plan of so many trials, of which nothing is written."""
    return plan_sweep(
        "fair-cclk", DATASET, trials=trials, epochs=EPOCHS, sampler=sampler, results=UNUSED, name="many"
    )


def proposals(plan: SweepPlan, workers: int, ended: int) -> Cost:
    """Time proposals while `workers` trials run, and `ended` of them end and are replaced."""
    study: SearchStudy = plan.new_study()
    drawn = random.Random(0)
    begun = time.process_time()
    running = [study.ask().number for _ in range(workers)]
    first = time.process_time() - begun
    later = 0.0
    for _ in range(ended):
        end_one(study, running.pop(drawn.randrange(len(running))), drawn)
        begun = time.process_time()
        running.append(study.ask().number)
        later += time.process_time() - begun
    return Cost(1000 * first / workers, 1000 * later / ended)


def end_one(study: SearchStudy, number: int, drawn: random.Random) -> None:
    """Report the epochs of a trial, and end it."""
    level, stopped = drawn.random(), drawn.random() < STOPPED
    for epoch in range(1, 2 if stopped else EPOCHS + 1):
        study.report(number, epoch, level * epoch / EPOCHS)
    if stopped:
        study.prune(number)
    else:
        study.complete(number, level)


def memory(workers: int) -> float:
    """Return the MiB by which the driver's searcher grows with so many running trials."""
    plan = plan_of("random", workers)
    searcher = StoreSearcher(plan, plan.record(), open_location(UNUSED), [])
    gc.collect()
    before = resident_mib()
    for worker in range(workers):
        searcher.suggest(str(worker))
        searcher.on_trial_start(str(worker))
        searcher.on_trial_result(str(worker), {"epoch": 0, "score": 0.5})
    gc.collect()
    return resident_mib() - before


if __name__ == "__main__":
    main()
