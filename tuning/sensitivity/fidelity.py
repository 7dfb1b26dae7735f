"""Fidelity: whether the score after few epochs predicts a later one, so that stopping early is safe.

Trials that continued have similar early scores, because they were selected by these scores. So the
correlation among them is smaller than it is among all. The estimated scores of the others (see `scores`) undo
this: the correlation over all trials is taken on each draw of them; the interval covers both what is drawn
and which trials ran.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from scipy.stats import kendalltau

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.sensitivity.scores import ScoredTrials, Stage, stage_name
from contrasweep.tuning.statistics import (
    Floats,
    concordance_interval,
    percentile_interval,
    rank_correlation,
    rank_correlation_interval,
)

RESAMPLES: Final = 384
"""Four bootstrap samples of the trials for each draw of estimated scores."""

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
        kendall_low, kendall_high: its 95 % interval (`concordance_interval`).
        best_rank: the rank at this epoch of the trial that is best in the end; 1 is the first. Of several
            that are best in the end, the one that is best at this epoch counts.
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
    best_rank: int
    reached: int

    @property
    def verdict(self) -> Verdict:
        """Whether it is safe to stop trials at this epoch."""
        return _verdict(self.low, self.high)


@dataclass(frozen=True)
class RungFidelity:
    """How well the scores at one rung rank the trials at a later stage.

    Attributes:
        epoch: the rung.
        later: the later epoch.
        is_end: whether it is the end of training.
        trials: the number of trials with both scores.
        spearman, low, high: rank correlation among those, and its 95 % interval, as in `EpochFidelity`.
        everyone: the number of trials with a measured or an estimated score at the later stage.
        estimated: the rank correlation among those, the mean over draws of the estimates.
        estimated_low, estimated_high: its 95 % interval.
    """

    epoch: int
    later: int
    is_end: bool
    trials: int
    spearman: float
    low: float
    high: float
    everyone: int
    estimated: float
    estimated_low: float
    estimated_high: float

    @property
    def later_name(self) -> str:
        """The later stage in words."""
        return stage_name(self.later, self.is_end)

    @property
    def verdict(self) -> Verdict:
        """Whether it is safe to stop trials at the rung, as far as the later stage tells."""
        return _verdict(self.estimated_low, self.estimated_high)


@dataclass(frozen=True)
class Fidelity:
    """Fidelity of every epoch to the final score, and of each rung to the later ones.

    Attributes:
        epochs: one entry for each epoch with scores; none with too few completed trials.
        rungs: the epochs at which trials were stopped.
        links: each rung against each later stage, as far as enough trials have both scores.
        missing: what the first later stage without links lacks; None if all have them.
        completed, stopped: the number of trials with a final score, and of those that were stopped.
        metric, final_metric: the early score and the final one.
    """

    epochs: tuple[EpochFidelity, ...]
    rungs: tuple[int, ...]
    links: tuple[RungFidelity, ...]
    missing: TooFew | None
    completed: int
    stopped: int
    metric: str
    final_metric: str

    def at(self, epoch: int) -> EpochFidelity | None:
        """Return the fidelity at an epoch; None if the epoch has no scores."""
        return next((one for one in self.epochs if one.epoch == epoch), None)


def fidelity(observations: Observations, found: Sequence[Stage]) -> Fidelity | TooFew:
    """Return how well each epoch ranks the trials in the end, and each rung at the later ones.

    Args:
        observations: the trials.
        found: their stages.
    """
    done = observations.completed
    links = tuple(_links(found))
    if np.count_nonzero(done) < enough.FIDELITY and not links:
        return TooFew(int(np.count_nonzero(done)), enough.FIDELITY, "completed trials")
    final, curve = observations.score[done], observations.curve
    epochs = [
        _at_epoch(epoch, curve[:, epoch], curve[done, epoch], final) for epoch in range(1, curve.shape[1])
    ]
    return Fidelity(
        epochs=tuple(one for one in epochs if one is not None),
        rungs=tuple(stage.epoch for stage in found if not stage.is_end),
        links=links,
        missing=next((stage.trials for stage in found if isinstance(stage.trials, TooFew)), None),
        completed=len(final),
        stopped=observations.count("stopped"),
        metric=observations.rung_metric,
        final_metric=observations.metric,
    )


def _links(found: Sequence[Stage]) -> Iterator[RungFidelity]:
    for place, rung in enumerate(found):
        for stage in found[place + 1 :]:
            if isinstance(rung.trials, TooFew) or isinstance(stage.trials, TooFew):
                continue
            link = _link(rung, rung.trials, stage, stage.trials)
            if link is not None:
                yield link


def _link(rung: Stage, before: ScoredTrials, stage: Stage, after: ScoredTrials) -> RungFidelity | None:
    _, early, late = np.intersect1d(before.row, after.row, return_indices=True)
    first, second = before.draws[:, early], after.draws[:, late]
    both = ~before.estimated[early] & ~after.estimated[late]
    own, other = before.score[early][both], after.score[late][both]
    if len(own) < enough.LINK or np.ptp(own) == 0 or np.ptp(other) == 0:
        return None
    spearman = float(rank_correlation(own, other))
    low, high = rank_correlation_interval(spearman, len(own))
    first = np.broadcast_to(first, (max(len(first), len(second)), len(early)))
    rng = np.random.default_rng(0)
    draw = np.arange(RESAMPLES)[:, None] % len(second)
    rows = rng.integers(len(early), size=(RESAMPLES, len(early)))
    ends = percentile_interval(rank_correlation(first[draw, rows], second[draw, rows]))
    return RungFidelity(
        epoch=rung.epoch,
        later=stage.epoch,
        is_end=stage.is_end,
        trials=len(own),
        spearman=spearman,
        low=low,
        high=high,
        everyone=len(early),
        estimated=float(rank_correlation(first, second).mean()),
        estimated_low=float(ends[0]),
        estimated_high=float(ends[1]),
    )


def _at_epoch(epoch: int, everyone: Floats, early: Floats, final: Floats) -> EpochFidelity | None:
    known = np.isfinite(early)
    early, final = early[known], final[known]
    n = len(early)
    if n < enough.FIDELITY or np.ptp(early) == 0 or np.ptp(final) == 0:
        return None
    spearman = float(rank_correlation(early, final))
    kendall = float(kendalltau(early, final).statistic)
    reached = everyone[np.isfinite(everyone)]
    low, high = rank_correlation_interval(spearman, n)
    kendall_low, kendall_high = concordance_interval(kendall, n)
    return EpochFidelity(
        epoch=epoch,
        trials=n,
        spearman=spearman,
        low=low,
        high=high,
        kendall=kendall,
        kendall_low=kendall_low,
        kendall_high=kendall_high,
        best_rank=int(np.count_nonzero(early > early[final == final.max()].max())) + 1,
        reached=len(reached),
    )


def _verdict(low: float, high: float) -> Verdict:
    if low >= SAFE:
        return "safe"
    return "unsafe" if high < SAFE else "too few to tell"
