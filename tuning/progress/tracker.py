"""Trackers: they are told what trials and runs do, and give their progress."""

import time
from collections import Counter
from collections.abc import Callable, Collection, Hashable

from contrasweep.tuning.progress.forecast import Forecast
from contrasweep.tuning.progress.states import RunsProgress, SweepProgress, TrainingProgress
from contrasweep.tuning.results.best import best_final

STARTING_RAY = "starting Ray"
STARTING_WORKERS = "starting workers"
SCORING = "scoring the untrained encoder"


class _Beginnings:
    """What runs do before their first report: their workers start, then they score the untrained encoder."""

    def __init__(self) -> None:
        self._starting: set[Hashable] = set()
        self._scoring: set[Hashable] = set()

    def begin(self, run: Hashable) -> None:
        """Begin a run: its worker starts."""
        self._starting.add(run)

    def start(self, run: Hashable, epoch: int) -> None:
        """Note that the worker of a run is there; a run that goes on after `epoch` was scored before."""
        if run in self._starting:
            self._starting.remove(run)
            if epoch == 0:
                self._scoring.add(run)

    def end(self, run: Hashable) -> None:
        """End the beginning of a run: it has reported, or ended."""
        self._starting.discard(run)
        self._scoring.discard(run)

    def stage(self, running: Collection[Hashable]) -> str | None:
        """Return what the running ones do; None if one of them is further."""
        if not running or len(self._starting) + len(self._scoring) < len(running):
            return None
        return SCORING if self._scoring else STARTING_WORKERS


class SweepTracker:
    """Follows the trials of a sweep.

    Args:
        planned: how many trials the sweep has in all.
        metric: the metric that the search maximises.
        forecast: forecasts the end of trials of this sweep; the tracker tells it what they do.
    """

    def __init__(self, planned: int, metric: str, forecast: Forecast) -> None:
        self._planned = planned
        self._metric = metric
        self._forecast = forecast
        self._running: dict[int, int] = {}
        self._beginnings = _Beginnings()
        self._counts: Counter[str] = Counter()
        self._finals: dict[int, float] = {}

    def restore(self, trial: int, status: str, epoch: int, final: float | None) -> None:
        """Count a trial that ended before this driver began; a completed one has a final score."""
        self._count(trial, status, final)
        self._forecast.learn(epoch, stopped=status == "stopped")

    def begin(self, trial: int, epoch: int = 0) -> None:
        """Begin a trial; one that goes on has trained `epoch` epochs."""
        self._running[trial] = epoch
        self._beginnings.begin(trial)
        self._forecast.begin(trial, epoch)

    def start(self, trial: int) -> None:
        """Note that the worker of a trial is there."""
        self._beginnings.start(trial, self._running.get(trial, 0))

    def report(self, trial: int, epoch: int, age: float = 0.0) -> None:
        """Take the report of a running trial after an epoch, which ended `age` seconds ago."""
        self._beginnings.end(trial)
        self._running[trial] = epoch
        self._forecast.report(trial, epoch, age)

    def end(self, trial: int, status: str, final: float | None = None) -> None:
        """End a trial; a completed one has a final score."""
        del self._running[trial]
        self._beginnings.end(trial)
        self._forecast.end(trial, stopped=status == "stopped")
        self._count(trial, status, final)

    def progress(self, stage: str | None = None, not_begun: int = 0) -> SweepProgress:
        """Return the state of the sweep now.

        Args:
            stage: what goes on before the first trial begins.
            not_begun: how many of the planned trials will not begin, as the sweep ends early.
        """
        planned = self._planned - not_begun
        waiting = planned - self._counts.total() - len(self._running)
        left = self._forecast.left(max(0, waiting))
        return SweepProgress(
            planned=planned,
            epochs=self._forecast.epochs,
            metric=self._metric,
            running=dict(self._running),
            counts=self.counts,
            best=best_final(self._finals, self._metric),
            left=None if left is None else left.seconds,
            left_between=None if left is None else (left.low, left.high),
            stage=stage or self._beginnings.stage(self._running),
        )

    @property
    def counts(self) -> dict[str, int]:
        """The number of ended trials by status."""
        return dict(self._counts)

    def _count(self, trial: int, status: str, final: float | None) -> None:
        self._counts[status] += 1
        if status == "completed" and final is not None:
            self._finals[trial] = final


class TrainingTracker:
    """Follows one training, step by step.

    Args:
        epochs: its epochs.
        clock: returns the time in seconds.
    """

    def __init__(self, epochs: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._epochs = epochs
        self._clock = clock
        self._first: tuple[float, int] | None = None

    def progress(self, epoch: int, step: int, steps: int) -> TrainingProgress:
        """Return how far the training is after a step."""
        now, done = self._clock(), (epoch - 1) * steps + step
        if self._first is None:
            self._first = now, done
        since, before = self._first
        left = (now - since) / (done - before) * (self._epochs * steps - done) if done > before else None
        return TrainingProgress(epoch, self._epochs, step, steps, left)


class RunsTracker:
    """Follows final runs, each by a name, which are never stopped early.

    Args:
        planned: how many runs there are in all.
        done: how many of them had ended before.
        slots: how many go on at once.
        clock: returns the time in seconds.
    """

    def __init__(
        self, planned: int, done: int, *, slots: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._planned = planned
        self._done = done
        self._forecast = Forecast(1, slots=slots, clock=clock)
        self._running: dict[str, tuple[int, int]] = {}
        self._beginnings = _Beginnings()

    def begin(self, run: str, epochs: int) -> None:
        """Begin a run of so many epochs."""
        self._running[run] = (0, epochs)
        self._beginnings.begin(run)
        self._forecast.begin(run, epochs=epochs)

    def start(self, run: str) -> None:
        """Note that the worker of a run is there."""
        self._beginnings.start(run, 0)

    def report(self, run: str, epoch: int) -> None:
        """Take the report of a run after an epoch; one that has ended is left alone."""
        if run in self._running:
            self._beginnings.end(run)
            self._running[run] = (epoch, self._running[run][1])
            self._forecast.report(run, epoch)

    def end(self, run: str) -> None:
        """End a run."""
        del self._running[run]
        self._beginnings.end(run)
        self._forecast.end(run)
        self._done += 1

    def progress(self, stage: str | None = None) -> RunsProgress:
        """Return the state of the runs now; `stage` says what goes on before the first."""
        waiting = self._planned - self._done - len(self._running)
        left = self._forecast.left(max(0, waiting))
        return RunsProgress(
            self._done,
            self._planned,
            dict(self._running),
            left=None if left is None else left.seconds,
            left_between=None if left is None else (left.low, left.high),
            stage=stage or self._beginnings.stage(self._running),
        )
