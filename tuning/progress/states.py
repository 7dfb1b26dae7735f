"""The states of running work, for the progress display."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class SweepProgress:
    """The state of a sweep.

    Attributes:
        planned: how many trials the sweep has in all.
        epochs: the epochs of a trial that is not stopped.
        metric: the metric of `best`, which the search maximises.
        running: the last epoch of each running trial, by its number; 0 before the first has ended.
        counts: how many trials ended in which way.
        best: the completed trial with the highest value of the metric after its last epoch, and that value:
            the one that `contrasweep best` names. None until a trial has completed.
        left: the seconds until the end, as `forecast` gives them; None until an epoch has been trained.
        left_between: the ends of the middle 90 % of what it may be.
        stage: what goes on while no running trial has reported anything, or that none is left to run.
    """

    planned: int
    epochs: int
    metric: str
    running: Mapping[int, int] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    best: tuple[int, float] | None = None
    left: float | None = None
    left_between: tuple[float, float] | None = None
    stage: str | None = None

    @property
    def done(self) -> int:
        """How many trials have ended, in any way."""
        return sum(self.counts.values())

    @property
    def share(self) -> float:
        """How much of the work is done, 0 to 1: a running trial counts by its epochs."""
        return _share(self.done + sum(at / self.epochs for at in self.running.values()), self.planned)


@dataclass(frozen=True)
class RunsProgress:
    """The state of final runs.

    Attributes:
        done: how many have ended.
        planned: how many there are in all.
        running: the last epoch of each running run and all its epochs, by `trial T, seed S`.
        left: the seconds until the end; None until an epoch has been trained.
        left_between: the ends of the middle 90 % of what it may be.
        stage: what goes on while no run has reported anything.
    """

    done: int
    planned: int
    running: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    left: float | None = None
    left_between: tuple[float, float] | None = None
    stage: str | None = None

    @property
    def share(self) -> float:
        """How much of the work is done, 0 to 1: a running run counts by its epochs."""
        return _share(self.done + sum(at / of for at, of in self.running.values()), self.planned)


@dataclass(frozen=True)
class TrainingProgress:
    """The state of one training: the epoch and the step in it, and the seconds until the end."""

    epoch: int
    epochs: int
    step: int
    steps: int
    left: float | None = None


def _share(done: float, planned: int) -> float:
    """Return how much is done, 0 to 1; a sweep that ends before its first trial has begun plans nothing."""
    return min(1.0, done / planned) if planned else 1.0


Progress = SweepProgress | RunsProgress
