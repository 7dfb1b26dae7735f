"""Searches compared on one workload: equal budgets, many seeds, expected score of the chosen trial."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.stats import rankdata

from contrasweep.tuning.replay.simulation import History, Search, simulate
from contrasweep.tuning.replay.workload import Workload
from contrasweep.tuning.statistics import Floats, mean_interval, summarise

SHARES: Final = (0.25, 0.5, 1.0)
"""The parts of the budget after which the chosen trial is looked at."""
POINTS: Final = 40

SearchOf = Callable[[Workload, int], Search]
"""Returns a new search of a workload, from a seed."""


@dataclass(frozen=True)
class Standing:
    """How one search did, over seeds.

    Attributes:
        name: of the search.
        chosen: what the chosen trial scores on other seeds after each of `POINTS` equal parts of the budget,
            (seeds, points); NaN before the first trial has trained to its end.
        ranks: among all searches at the end, by seed; 1 is the best, ties share.
        begun, finished: the mean number of trials that began, and that trained to their last epoch.
    """

    name: str
    chosen: Floats
    ranks: Floats
    begun: float
    finished: float

    def after(self, share: float) -> tuple[float, float]:
        """Return the mean score after a share of the budget, and half the width of its interval.

        A seed without any finished trial counts as the worst score of all seeds then. With fewer than two
        such scores the width is unknown (NaN), and without any the mean is, too.
        """
        found = self.chosen[:, round(share * POINTS) - 1]
        known = np.isfinite(found)
        if np.count_nonzero(known) < 2:
            return (float(found[known][0]) if known.any() else np.nan), np.nan
        return _mean_and_half(np.nan_to_num(found, nan=float(np.nanmin(found))))

    def rank(self) -> tuple[float, float]:
        """Return the mean rank, and half the width of its interval."""
        return _mean_and_half(self.ranks)


def compare(
    searches: Mapping[str, SearchOf],
    workload: Workload,
    *,
    workers: int,
    budget: int,
    seeds: int,
    tell: Callable[[str], object] = lambda _: None,
) -> list[Standing]:
    """Run every search with every seed, each with the same noise for its n-th trial.

    Args:
        searches: by name.
        workload: on which they search.
        workers: trials at once.
        budget: epochs of all trials of a search together.
        seeds: how many times each search runs.
        tell: is called with the name of each search before it runs.
    """
    found: dict[str, list[History]] = {}
    for name, search_of in searches.items():
        tell(name)
        found[name] = [
            simulate(
                search_of(workload, seed),
                workload.run,
                workload.recording.epochs,
                workers=workers,
                budget=budget,
                rng=np.random.default_rng([seed, 1]),
            )
            for seed in range(seeds)
        ]
    points = budget * np.arange(1, POINTS + 1) / POINTS
    chosen = {name: np.stack([one.chosen(points) for one in runs]) for name, runs in found.items()}
    at_end = np.stack([of_one[:, -1] for of_one in chosen.values()])
    ranks = rankdata(-np.nan_to_num(at_end, nan=-np.inf), axis=0)
    return [
        Standing(
            name,
            chosen[name],
            ranks[place],
            float(np.mean([one.begun for one in runs])),
            float(np.mean([len(one.finished) for one in runs])),
        )
        for place, (name, runs) in enumerate(found.items())
    ]


def _mean_and_half(values: Floats) -> tuple[float, float]:
    summary = summarise(values.tolist())
    assert summary is not None, "the values are numbers"
    interval = mean_interval(summary)
    return summary.mean, np.nan if interval is None else (interval[1] - interval[0]) / 2
