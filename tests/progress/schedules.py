"""Synthetic sweeps on a fake clock: trials of random scores and paces, stopped as ASHA stops them."""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np

from contrasweep.tuning.progress.forecast import Forecast, TimeLeft


@dataclass
class Schedule:
    """Trials on `slots` workers; an epoch takes about `seconds`, and each trial has a pace of its own.

    Attributes:
        spread: of the paces, as the deviation of their logarithm.
        start: seconds from a trial's beginning to its first report.
        better: how much better later trials are, in deviations of the score from the first to the last.
    """

    trials: int
    epochs: int
    rungs: tuple[int, ...]
    slots: int
    seconds: float
    spread: float = 0.5
    start: float = 3.0
    better: float = 0.0
    share: float = 1 / 3
    seed: int = 0

    def run(self) -> Iterator[tuple[float, TimeLeft | None]]:
        """Yield the time of each report, and what is left by the forecast; the last is the end."""
        self._random, self._now = Random(self.seed), 0.0
        share = self.share if self.rungs else 1.0
        self._forecast = Forecast(self.epochs, self.rungs, share, self.slots, lambda: self._now)
        self._scores: dict[int, list[float]] = {rung: [] for rung in self.rungs}
        self._events: list[tuple[float, int, int, float]] = []
        self._waiting = list(range(self.trials))
        for _ in range(self.slots):
            self._begin()
        while self._events:
            self._now, trial, epoch, pace = heapq.heappop(self._events)
            self._forecast.report(trial, epoch)
            stopped = self._stops(trial, epoch)
            if stopped or epoch == self.epochs:
                self._forecast.end(trial, stopped=stopped)
                self._begin()
            else:
                heapq.heappush(self._events, (self._now + pace, trial, epoch + 1, pace))
            yield self._now, self._forecast.left(len(self._waiting))

    def _begin(self) -> None:
        if self._waiting:
            trial = self._waiting.pop(0)
            self._forecast.begin(trial)
            pace = self.seconds * self._random.lognormvariate(0, self.spread)
            heapq.heappush(self._events, (self._now + self.start, trial, 0, pace))

    def _stops(self, trial: int, epoch: int) -> bool:
        """Whether a trial is below the quantile of those before it at a rung, as Tune's ASHA stops it."""
        if epoch not in self.rungs or epoch == self.epochs:
            return False
        score = self._random.gauss(self.better * trial / self.trials, 1)
        before = self._scores[epoch]
        below = bool(before) and score < float(np.percentile(before, 100 * (1 - self.share)))
        before.append(score)
        return below
