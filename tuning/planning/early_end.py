"""Whether a sweep starts no further trial, and why: the budget is spent, or the search no longer gains."""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from contrasweep.names import counted
from contrasweep.tuning.durations import in_words
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment.conditions import all_hold
from contrasweep.tuning.methods.metrics import is_fraction, is_minimised
from contrasweep.tuning.planning.stop_when import StopWhen, parse_stop_when
from contrasweep.tuning.results.best import best_final, merit
from contrasweep.tuning.results.noise import images_behind, score_noise
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.results.trials import TrialOutcome
from contrasweep.tuning.search import sampler_of
from contrasweep.tuning.statistics import Summary
from contrasweep.tuning.store import SearchRecord

FIRST_FAILURES: Final = 8
"""Where so many trials have failed and none has ended otherwise, no further trial begins."""


@dataclass(frozen=True)
class Reason:
    """Why no further trial begins, and the options that go with `--extend` to add more."""

    why: str
    beside: str = ""


class EarlyEnd:
    """Says whether a further trial of a sweep may begin; those that run go on to their ends.

    A search no longer gains when its best final score rose by too little over the last trials that trained:
    those that completed or that the scheduler stopped, in the order of their numbers, so that a resumed
    search counts as one that never stopped. Failed trials do not count, and neither do trials of earlier
    studies. A trial must have completed before the last ones, or there is nothing to compare with.

    Where the first `FIRST_FAILURES` trials fail, the others would most likely fail too; with many trials at
    once, twice as many must have failed as still run. Those that failed under an earlier driver do not count:
    the user may have mended the cause.

    Args:
        search: how the sweep searches, and its limits.
        held: the trials of earlier drivers.
        spent: the seconds in which trials ran under earlier drivers.
        clock: returns the time in seconds.
    """

    def __init__(
        self,
        search: SearchRecord,
        held: Iterable[TrialOutcome] = (),
        *,
        spent: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._search = search
        self._stop = None if search.stop_when is None else parse_stop_when(search.stop_when)
        self._metric, self._images = search.metrics[0], images_behind(search)
        self._spent, self._clock = spent, clock
        self._first: float | None = None
        self._trained: dict[int, Summary | None] = {}
        self._reason: Reason | None = None
        # The progress asks after every epoch, and the answer costs more with every trial.
        self._changed = False
        self._open, self._failed, self._any_trained = 0, 0, False
        for one in held:
            kept = all_hold(search.keep, one.mean)
            self.end(one.trial, one.status, one.metrics.get(self._metric), kept=kept)
        self._open, self._failed = 0, 0

    def begin(self) -> None:
        """Note that a trial begins: from the first one on, time counts."""
        self._first = self._clock() if self._first is None else self._first
        self._open += 1
        self._changed = True

    def end(self, trial: int, status: str, score: Summary | None, *, kept: bool = True) -> None:
        """Note how a trial ended; a completed one has a final score over its seeds.

        One that has not `kept` the conditions of the search has trained, but is never the best. One whose
        values do not go together is "refused": it says nothing of the others.
        """
        self._open -= 1
        self._changed = True
        if status == "failed":
            self._failed += 1
        elif status in ("completed", "stopped"):
            self._any_trained = True
        if status == "stopped":
            self._trained[trial] = None
        elif status == "completed" and score is not None and math.isfinite(score.mean):
            self._trained[trial] = score if kept else None

    def reason(self) -> Reason | None:
        """Return why no further trial begins; None if one may. Once there is a reason, it stays."""
        self._reason = self._reason or self._time()
        if self._changed:
            self._changed = False
            self._reason = self._reason or self._failing() or self._gain()
        return self._reason

    def _time(self) -> Reason | None:
        budget = self._search.budget
        here = 0.0 if self._first is None else self._clock() - self._first
        if budget is None or self._spent + here < budget:
            return None
        return Reason(f"the budget of {in_words(budget)} was spent", " with a larger --budget")

    def _failing(self) -> Reason | None:
        if self._any_trained or self._failed < max(FIRST_FAILURES, 2 * self._open):
            return None
        return Reason(f"the first {self._failed} trials all failed", " --retry-failed")

    def _gain(self) -> Reason | None:
        stop, numbers = self._stop, sorted(self._trained)
        if stop is None or sum(trial >= self._search.stop_from for trial in numbers) < stop.trials:
            return None
        before, now = self._best(numbers[: -stop.trials]), self._best(numbers)
        if before is None or now is None:
            return None
        gain = merit(self._metric, now.mean) - merit(self._metric, before.mean)
        least = score_noise(now, self._images) if stop.gain is None else stop.gain
        return None if least is None or gain >= least else Reason(self._in_words(stop, gain, least))

    def _best(self, trials: Iterable[int]) -> Summary | None:
        scores = {trial: score.mean for trial in trials if (score := self._trained[trial]) is not None}
        best = best_final(scores, self._metric)
        return None if best is None else self._trained[best[0]]

    def _in_words(self, stop: StopWhen, gain: float, least: float) -> str:
        changed = "fell" if is_minimised(self._metric) else "rose"
        bound = f"its noise of {number_text(least)}" if stop.gain is None else number_text(least)
        return (
            f"the best final {self._metric} {changed} by {number_text(gain)} over the last {stop.trials} "
            f"trials that trained, less than {bound}"
        )


def check_stop_when(search: SearchRecord) -> None:
    """Refuse a condition to end early that means nothing for the search.

    Raises:
        InputError: the search has several metrics, or goes through a grid; or the condition names the noise
            of a score whose noise is unknown.
    """
    if search.stop_when is None:
        return
    if len(search.metrics) > 1:
        raise InputError(
            f"stop-when takes one metric, given {', '.join(search.metrics)}: "
            "a Pareto front may grow while the best of each stays"
        )
    if sampler_of(search.sampler).exhaustive:
        raise InputError(
            f"stop-when does not go with the sampler {search.sampler}: its points come in a fixed order, so "
            "the last ones say nothing of those that are left"
        )
    gain = parse_stop_when(search.stop_when).gain
    if gain is not None and gain >= 1 and is_fraction(search.metric):
        raise InputError(
            f"stop-when: given {search.stop_when!r}, but {search.metric} lies between 0 and 1; "
            "allowed: a gain below 1" + (f", such as {gain / 100:g}" if gain < 100 else "")
        )
    if gain is None and search.seeds == 1 and images_behind(search) is None:
        raise InputError(
            f"stop-when: given {search.stop_when!r}, but the noise of one {search.metric} is unknown; "
            "allowed: a number (gain<NUMBER for TRIALS), --metric accuracy, or --seeds 2 or more"
        )


def unreachable_stop_in_words(search: SearchRecord) -> str | None:
    """Return a warning of a condition that cannot end the search before its last trial; else None."""
    stop = None if search.stop_when is None else parse_stop_when(search.stop_when)
    # One trial must have completed before those that are to gain something.
    if stop is None or stop.trials + 1 < search.trials:
        return None
    return (
        f"stop-when {str(stop)!r} has no effect on {counted(search.trials, 'trial')}: it compares the last "
        f"{stop.trials:,} with those before them."
    )
