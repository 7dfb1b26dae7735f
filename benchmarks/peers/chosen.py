"""The trial that a search chooses: by its score, or by what the model of curves expects of it.

    python -m benchmarks.peers.chosen [--seeds 30] [--first-seed 600] [--workers 2 8] [--recordings NAME ...]

Our default search runs on recorded curves in simulated time. After half of the budget and at its end, the
finished trial with the highest score is compared with the one of which the model expects most
(`--by expected`): what either scores on other seeds, in percent. *Best finished* is the highest of these.
"""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
import optuna

from benchmarks.peers.__main__ import RECORDED
from contrasweep.tuning.planning.request import usual_scheduler
from contrasweep.tuning.replay.recording import read_recording
from contrasweep.tuning.replay.request import settings_of
from contrasweep.tuning.replay.searches import OwnSearch, own_search
from contrasweep.tuning.replay.simulation import Decision, Finished, Job, simulate
from contrasweep.tuning.replay.workload import Workload
from contrasweep.tuning.statistics import Floats, mean_interval, summarise

FULL_TRIALS = 40
SHARES = (0.5, 1.0)


class Watched:
    """A search that is asked after some numbers of epochs of which finished trial it expects most."""

    def __init__(self, search: OwnSearch, after: Sequence[int]) -> None:
        self._search = search
        self._after = after
        self._spent = 0
        self._finished: list[int] = []
        self.expected: dict[int, int] = {}

    def next(self) -> Job | None:
        return self._search.next()

    def report(self, trial: int, epoch: int, score: float) -> Decision:
        decision = self._search.report(trial, epoch, score)
        if decision == "go on":
            self._count()
        return decision

    def end(self, trial: int, epoch: int, last: float, final: float | None) -> None:
        self._search.end(trial, epoch, last, final)
        if final is not None:
            self._finished.append(trial)
        self._count()

    def _count(self) -> None:
        self._spent += 1
        if self._spent in self._after:
            found = self._search.study.expected_finals()
            assert found is not None, "half of a budget has more than four trials"
            self.expected[self._spent] = max(self._finished, key=found.__getitem__)


def choices(workload: Workload, workers: int, seed: int) -> Floats:
    """Return what trials are worth, (shares, 3): chosen by score, by expectation, and the best finished."""
    epochs = workload.recording.epochs
    (setting,) = settings_of("curves", usual_scheduler("curves", ["score"], workers))
    budget = FULL_TRIALS * epochs
    after = [round(share * budget) for share in SHARES]
    search = Watched(own_search(setting, workload, seed), after)
    rng = np.random.default_rng([seed, 1])
    history = simulate(search, workload.run, epochs, workers=workers, budget=budget, rng=rng)
    by_score = history.chosen(np.array(after, dtype=float))
    rows = []
    for spent, score in zip(after, by_score, strict=True):
        worth = _worth(history.finished, spent)
        rows.append([score, worth[search.expected[spent]], max(worth.values())])
    return 100 * np.array(rows)


def _worth(finished: Sequence[Finished], spent: int) -> Mapping[int, float]:
    return {one.trial: one.expected for one in finished if one.spent <= spent}


def _cell(found: Floats) -> str:
    """Return the means of one share, (searches, 3), and the mean difference with half of its interval."""
    score, expected, best = found.mean(axis=0)
    difference = summarise((found[:, 1] - found[:, 0]).tolist())
    assert difference is not None, "the scores are numbers"
    low, high = mean_interval(difference) or (np.nan, np.nan)
    return f"{score:.2f} → {expected:.2f} | {difference.mean:+.2f} ± {(high - low) / 2:.2f} | {best:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=600)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8])
    recorded = sorted(path.stem for path in RECORDED.glob("*.parquet"))
    parser.add_argument("--recordings", nargs="+", choices=recorded, default=recorded)
    given = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    print("| recording | at once | 50 % | difference | best finished | 100 % | difference | best finished |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for name in given.recordings:
        workload = Workload.of(read_recording(RECORDED / f"{name}.parquet"))
        for workers in given.workers:
            seeds = range(given.first_seed, given.first_seed + given.seeds)
            found = np.stack([choices(workload, workers, seed) for seed in seeds])
            cells = " | ".join(_cell(found[:, share]) for share in range(len(SHARES)))
            print(f"| {name} | {workers} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
