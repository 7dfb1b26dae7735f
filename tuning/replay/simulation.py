"""A search in simulated time: workers run epochs of known scores and lengths, and nothing is trained."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.statistics import Floats, improvements

Decision = Literal["go on", "stop"]
"""What becomes of a trial after an epoch."""


@dataclass(frozen=True)
class Run:
    """What a trial would do if it were never stopped.

    Attributes:
        scores: what the scheduler sees after epoch 1, 2, ..., (epochs,); larger is better.
        final: the score by which the best trial is chosen, known after the last epoch.
        expected: `final` without the noise of its seed.
        seconds: of an epoch.
    """

    scores: Floats
    final: float
    expected: float
    seconds: float


RunOf = Callable[[Mapping[str, Scalar], np.random.Generator], Run]
"""Returns the run of a configuration; the generator draws the noise of its seed."""


@dataclass(frozen=True)
class Job:
    """What a free worker does next: a trial that begins."""

    trial: int
    values: Mapping[str, Scalar]


class Search(Protocol):
    """A sampler and a scheduler, as the simulation sees them."""

    def next(self) -> Job | None:
        """Return what a free worker does; None if it has to wait for others."""
        ...

    def report(self, trial: int, epoch: int, score: float) -> Decision:
        """Take the score of a trial after an epoch that is not its last; say what becomes of the trial."""
        ...

    def end(self, trial: int, epoch: int, last: float, final: float | None) -> None:
        """Take the end of a trial: the score after its last epoch, and the final one of a whole trial."""
        ...


@dataclass(frozen=True)
class Finished:
    """A trial that trained to its last epoch, after so many epochs and seconds of the whole search."""

    trial: int
    spent: int
    time: float
    score: float
    expected: float


@dataclass
class History:
    """What a search did, in the order of time.

    Attributes:
        finished: the trials that trained to their last epochs.
        begun: how many trials began.
        spent: the epochs of all trials.
    """

    finished: list[Finished] = field(default_factory=list)
    begun: int = 0
    spent: int = 0

    def chosen(self, spent: Floats) -> Floats:
        """Return what the best trial after so many epochs is expected to score on other seeds.

        The best is the finished trial with the highest score so far. Before the first one, the value is NaN.
        """
        places = improvements(np.array([one.score for one in self.finished], dtype=float))
        best = [self.finished[place] for place in places]
        after = np.searchsorted([one.spent for one in best], spent, side="right")
        return np.array([np.nan, *(one.expected for one in best)])[after]


@dataclass
class _Trial:
    run: Run
    epoch: int = 0


def simulate(
    search: Search, run_of: RunOf, epochs: int, *, workers: int, budget: int, rng: np.random.Generator
) -> History:
    """Run a search until its trials have trained `budget` epochs, or until it has nothing left to do.

    Args:
        search: proposes trials and stops them.
        run_of: returns what each proposed configuration would do.
        epochs: the length of a trial that is not stopped.
        workers: how many trials run at once.
        budget: the epochs of all trials together.
        rng: draws the noise of seeds.
    """
    history = History()
    trials: dict[int, _Trial] = {}
    ends: list[tuple[float, int, int]] = []
    now, order = 0.0, 0
    while history.spent < budget:
        while len(ends) < workers and (job := search.next()) is not None:
            trials[job.trial] = _Trial(run_of(job.values, rng))
            history.begun += 1
            order += 1
            heapq.heappush(ends, (now + trials[job.trial].run.seconds, order, job.trial))
        if not ends:
            break
        now, _, number = heapq.heappop(ends)
        if _advance(search, number, trials[number], epochs, history, now):
            order += 1
            heapq.heappush(ends, (now + trials[number].run.seconds, order, number))
    return history


def _advance(search: Search, number: int, trial: _Trial, epochs: int, history: History, now: float) -> bool:
    """Take the end of a trial's epoch; return whether it goes on at once."""
    trial.epoch += 1
    history.spent += 1
    run, score = trial.run, float(trial.run.scores[trial.epoch - 1])
    if trial.epoch == epochs:
        search.end(number, epochs, score, run.final)
        history.finished.append(Finished(number, history.spent, now, run.final, run.expected))
        return False
    if search.report(number, trial.epoch, score) == "go on":
        return True
    search.end(number, trial.epoch, score, None)
    return False
