"""The remaining time of trials, from simulated futures that are drawn from the trials so far."""

import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from random import Random
from statistics import fmean, median

FUTURES = 40
"""How many futures are drawn; their median is the forecast."""

OUTSIDE = 2
"""How many futures are left out at each end of the interval: it holds the middle 90 %."""

PAUSE = 20.0
"""How many times as long as the drawing took the futures stay: many waiting trials then take a twentieth of
the time at most."""

EARLIER = 4.0
"""How many trials' worth the rule of halving counts, beside what became of the trials at a rung."""


@dataclass(frozen=True)
class TimeLeft:
    """How long work still takes, in seconds: the median of its futures, and the ends of the middle 90 %."""

    seconds: float
    low: float
    high: float


@dataclass
class _Running:
    began: float
    epochs: int
    first: float | None = None
    last: float | None = None
    epoch: int = 0
    trained: int = 0


class Forecast:
    """Forecasts when trials have ended, where weak ones may be stopped at rungs.

    A future of the running and the waiting trials draws which of them go on at each rung, and gives each the
    pace of its own epochs, or that of another trial if it has trained none. Starting Ray and its first
    workers is not part of any pace.

    Args:
        epochs: the epochs of a trial that is not stopped.
        rungs: the epochs after which trials may be stopped; none where they never are.
        share: the share of trials that a rung lets go on in the long run.
        slots: how many trials run at once.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        epochs: int,
        rungs: Sequence[int] = (),
        share: float = 1.0,
        slots: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.epochs = epochs
        self._length = epochs
        self._rungs = tuple(rung for rung in sorted(rungs) if rung < epochs)
        self._share = share
        self._slots = slots
        self._clock = clock
        self._running: dict[Hashable, _Running] = {}
        self._been: Counter[int] = Counter()
        self._more: dict[int, float] = dict.fromkeys(self._rungs, 0.0)
        self._starts: list[float] = []
        self._paces: dict[Hashable, float] = {}
        self._ends: Sequence[float] = ()
        self._drawn_until = -math.inf

    def learn(self, epoch: int, *, stopped: bool) -> None:
        """Learn from a trial that ended before this forecast began, after an epoch."""
        for rung in (rung for rung in self._rungs if rung <= epoch):
            self._pass(rung)
            if stopped and rung == epoch:
                self._more[rung] -= 1

    def begin(self, trial: Hashable, epoch: int = 0, epochs: int | None = None) -> None:
        """Begin a trial that has trained `epoch` epochs.

        `epochs` is its length if it has one of its own; the waiting ones are taken to be as long.
        """
        self._length = self.epochs if epochs is None else epochs
        self._running[trial] = _Running(self._clock(), self._length, epoch=epoch)

    def report(self, trial: Hashable, epoch: int, age: float = 0.0) -> None:
        """Take the report of a running trial after an epoch; epoch 0 is the untrained encoder.

        The epoch ended `age` seconds ago: short epochs are reported together.
        """
        one, now = self._running[trial], self._clock() - age
        if one.first is not None and epoch <= one.epoch:
            # After the death of its worker, a trial repeats epochs.
            one.last = now
            return
        if one.first is None or one.last is None:
            one.first = now
            if epoch == 0:
                self._starts.append(now - one.began)
        else:
            one.trained += epoch - one.epoch
            self._paces[trial] = (now - one.first) / max(1, one.trained)
        one.last, one.epoch = now, epoch
        if epoch in self._rungs:
            # Until it is stopped, it goes on.
            self._pass(epoch)

    def end(self, trial: Hashable, *, stopped: bool = False) -> None:
        """End a trial, after its last report."""
        one = self._running.pop(trial)
        if stopped and one.epoch in self._rungs:
            self._more[one.epoch] -= 1

    def left(self, waiting: int) -> TimeLeft | None:
        """Return the time until the running trials and so many waiting ones have ended.

        It is None until an epoch has been trained. A forecast holds for a while, see `PAUSE`.
        """
        if not self._paces:
            return None
        now = self._clock()
        if now >= self._drawn_until:
            random = Random(0)
            futures = sorted(self._future(waiting, random) for _ in range(FUTURES))
            ends = median(futures), futures[OUTSIDE], futures[-1 - OUTSIDE]
            self._ends = [now + seconds for seconds in ends]
            done = self._clock()
            self._drawn_until = done + PAUSE * (done - now)
        return TimeLeft(*(max(0.0, end - now) for end in self._ends))

    def _pass(self, rung: int) -> None:
        self._more[rung] += 1 - _by_rule(self._share, self._been[rung])
        self._been[rung] += 1

    def _future(self, waiting: int, random: Random) -> float:
        now, paces, been = self._clock(), [*self._paces.values()], Counter(self._been)
        # The first trials start while workers do.
        start = fmean(self._starts[self._slots :] or [min(self._starts, default=0.0)])
        free = [
            self._rest(one, self._paces.get(trial, random.choice(paces)), now, been, random)
            for trial, one in self._running.items()
        ]
        free += [0.0] * max(0, self._slots - len(free))
        heapq.heapify(free)
        end = max(free)
        for _ in range(waiting):
            took = start + random.choice(paces) * self._last_epoch(0, self._length, been, random)
            done = heapq.heappop(free) + took
            heapq.heappush(free, done)
            end = max(end, done)
        return end

    def _rest(self, one: _Running, pace: float, now: float, been: Counter[int], random: Random) -> float:
        """Draw the seconds that a running trial still takes."""
        epochs = self._last_epoch(one.epoch, one.epochs, been, random) - one.epoch
        return max(0.0, epochs * pace - (0.0 if one.last is None else now - one.last))

    def _last_epoch(self, epoch: int, epochs: int, been: Counter[int], random: Random) -> int:
        """Draw the epoch after which a trial ends that has trained `epoch` epochs."""
        for rung in self._rungs:
            if rung <= epoch:
                continue
            goes_on = random.random() < self._chance(rung, been[rung])
            been[rung] += 1
            if not goes_on:
                return rung
        return epochs

    def _chance(self, rung: int, before: int) -> float:
        """Return the chance that a trial goes on from a rung where so many have been before it.

        By the rule alone it must be above the quantile `1 - share` of those; the first goes on always. More
        than that go on if later trials are better than earlier ones.
        """
        more = self._more[rung] / (self._been[rung] + EARLIER)
        return min(1.0, max(0.0, _by_rule(self._share, before) + more))


def _by_rule(share: float, before: int) -> float:
    """Return the chance to be above the quantile `1 - share` of so many equally good trials."""
    return 1.0 if before == 0 else 1 - ((1 - share) * (before - 1) + 1) / (before + 1)
