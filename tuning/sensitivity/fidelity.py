"""Fidelity: whether the score after few epochs predicts the final score, so that stopping early is safe."""

import math
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.stats import kendalltau, rankdata

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.statistics import normal_interval

SAFE: Final = 0.5
"""An epoch is called safe if the whole interval of its rank correlation lies above this, unsafe if below."""

Verdict = Literal["safe", "unsafe", "too few to tell"]


@dataclass(frozen=True)
class EpochFidelity:
    """How well the score after one epoch ranks the completed trials, against their final scores.

    Attributes:
        epoch: the epoch.
        trials: the number of completed trials with both scores.
        spearman: Spearman's rank correlation.
        low, high: its 95 % interval (Fisher's z, variance of Bonett and Wright 2000).
        kendall: Kendall's rank correlation: the share of pairs in the same order less those in the opposite.
        kendall_low, kendall_high: its 95 % interval (Fieller et al. 1957).
        corrected: `spearman` corrected for the selection (see `Fidelity`); None if nothing was stopped.
        best_rank: the rank at this epoch of the trial that is best in the end; 1 is the first.
        reached: the number of trials that reached the epoch, completed or not.
    """

    epoch: int
    trials: int
    spearman: float
    low: float
    high: float
    kendall: float
    kendall_low: float
    kendall_high: float
    corrected: float | None
    best_rank: int
    reached: int

    @property
    def verdict(self) -> Verdict:
        """Whether it is safe to stop trials at this epoch."""
        if self.low >= SAFE:
            return "safe"
        return "unsafe" if self.high < SAFE else "too few to tell"


@dataclass(frozen=True)
class Fidelity:
    """Fidelity at every epoch.

    Stopped trials have no final score, so fidelity is measured on the trials that went on. Their early scores
    are alike, which makes the correlation smaller than it is over all trials. `corrected` undoes this, if the
    relation is a straight line with even scatter (Thorndike's case 2, from the spread of the early score over
    all trials and over completed ones). Neither number shows a trial that was stopped by mistake.

    Attributes:
        epochs: one entry for each epoch with scores.
        rungs: the epochs at which trials were stopped.
        completed, stopped: the number of trials with a final score, and of those that were stopped.
        metric, final_metric: the early score and the final one.
    """

    epochs: tuple[EpochFidelity, ...]
    rungs: tuple[int, ...]
    completed: int
    stopped: int
    metric: str
    final_metric: str

    def at(self, epoch: int) -> EpochFidelity | None:
        """Return the fidelity at an epoch; None if the epoch has no scores."""
        return next((one for one in self.epochs if one.epoch == epoch), None)


def fidelity(observations: Observations) -> Fidelity | TooFew:
    """Return how well each epoch ranks the trials."""
    done = observations.completed
    if np.count_nonzero(done) < enough.FIDELITY:
        return TooFew(int(np.count_nonzero(done)), enough.FIDELITY, "completed trials")
    final = observations.score[done]
    found = [
        _at_epoch(epoch, observations.curve[:, epoch], observations.curve[done, epoch], final)
        for epoch in range(1, observations.curve.shape[1])
    ]
    stops = observations.rung[observations.ending == "stopped"]
    return Fidelity(
        epochs=tuple(one for one in found if one is not None),
        rungs=tuple(int(rung) for rung in np.unique(stops[np.isfinite(stops)])),
        completed=len(final),
        stopped=observations.count("stopped"),
        metric=observations.rung_metric,
        final_metric=observations.metric,
    )


def _at_epoch(epoch: int, everyone: Floats, early: Floats, final: Floats) -> EpochFidelity | None:
    known = np.isfinite(early)
    early, final = early[known], final[known]
    n = len(early)
    if n < enough.FIDELITY or np.ptp(early) == 0 or np.ptp(final) == 0:
        return None
    spearman = float(np.corrcoef(rankdata(early), rankdata(final))[0, 1])
    kendall = float(kendalltau(early, final).statistic)
    reached = everyone[np.isfinite(everyone)]
    low, high = _fisher(spearman, math.sqrt((1 + spearman**2 / 2) / (n - 3)))
    kendall_low, kendall_high = _fisher(kendall, math.sqrt(0.437 / (n - 4)))
    return EpochFidelity(
        epoch=epoch,
        trials=n,
        spearman=spearman,
        low=low,
        high=high,
        kendall=kendall,
        kendall_low=kendall_low,
        kendall_high=kendall_high,
        corrected=None if len(reached) == n else widened(spearman, reached.std() / early.std()),
        best_rank=int(np.count_nonzero(early > early[np.argmax(final)])) + 1,
        reached=len(reached),
    )


def widened(correlation: float, ratio: float) -> float:
    """Return the correlation in a population that is spread `ratio` times as widely as its selected part."""
    return correlation * ratio / math.sqrt(1 + correlation**2 * (ratio**2 - 1))


def _fisher(correlation: float, error: float) -> tuple[float, float]:
    z = math.atanh(max(-1 + 1e-9, min(1 - 1e-9, correlation)))
    low, high = normal_interval(z, error)
    return math.tanh(low), math.tanh(high)
