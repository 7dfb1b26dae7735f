"""The scores of trials at each rung and at the end: measured, or estimated for those stopped before.

A rung is an epoch at which the scheduler stopped trials. All trials reach the first one. Only the better
trials reach later rungs, and this selection biases an analysis of these trials alone. So the scores that the
others would have had are estimated (see `continuation`), many times, and the result of each analysis includes
how much the estimates differ.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from contrasweep.tuning.methods.metrics import bounds_of
from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.basis import basis_of
from contrasweep.tuning.sensitivity.continuation import fit_continuation
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.statistics import Floats, Ints

DRAWS: Final = 96
"""How often missing scores are drawn."""


@dataclass(frozen=True)
class ScoredTrials:
    """Trials with a score, in an order that does not depend on how the trials are numbered.

    Attributes:
        row: the place of each trial in the observations.
        codes: values in units, (trials, axes).
        score: measured scores, and the means of estimated ones.
        draws: the scores with the estimates as drawn, (draws, trials); a single row if nothing is estimated.
        estimated: which scores are estimates.
        is_default: which trials ran the defaults (trial 0).
        lost: the configurations of ended trials without a score, (trials, axes): failed, or never scored.
        known: the share of the scores' variance that is not uncertainty of the estimates.
    """

    row: Ints
    codes: Floats
    score: Floats
    draws: Floats
    estimated: NDArray[np.bool_]
    is_default: NDArray[np.bool_]
    lost: Floats
    known: float

    def __len__(self) -> int:
        return len(self.score)

    @property
    def left_out(self) -> int:
        """The number of ended trials without a score."""
        return len(self.lost)

    def some(self, rows: NDArray[Any]) -> "ScoredTrials":
        """Return some of the trials, by their places or by a mask."""
        return replace(
            self,
            row=self.row[rows],
            codes=self.codes[rows],
            score=self.score[rows],
            draws=self.draws[:, rows],
            estimated=self.estimated[rows],
            is_default=self.is_default[rows],
        )


@dataclass(frozen=True)
class Stage:
    """An epoch at which trials are compared: a rung, or the end of training.

    Attributes:
        epoch: the epoch.
        is_end: whether it is the end; then the score is the study's metric, before it is its cheap form.
        metric: the score.
        reached: the number of trials with a measured score there.
        trials: the trials with a measured or an estimated score; TooFew if there is nothing to estimate from.
    """

    epoch: int
    is_end: bool
    metric: str
    reached: int
    trials: ScoredTrials | TooFew

    @property
    def name(self) -> str:
        """The stage in words."""
        return stage_name(self.epoch, self.is_end)

    @property
    def known(self) -> ScoredTrials | TooFew:
        """The trials, if enough is known to say what parameters do to their scores; else what is missing."""
        if isinstance(self.trials, TooFew) or not self.trials.estimated.any():
            return self.trials
        if self.reached < enough.REACHED:
            return TooFew(self.reached, enough.REACHED, f"trials that reached {self.name}")
        if self.trials.known < enough.KNOWN:
            percent = math.floor(100 * max(0.0, self.trials.known))
            what = f"of the variance of the scores at {self.name} measured rather than estimated"
            return TooFew(percent, round(100 * enough.KNOWN), what, unit=" %")
        return self.trials


def stage_name(epoch: int, is_end: bool) -> str:
    """Return a stage in words."""
    return "the end" if is_end else f"epoch {epoch}"


def stages(observations: Observations) -> tuple[Stage, ...]:
    """Return the rungs at which trials were stopped, and the end; without early stopping, only the end.

    A configuration that was repeated counts once.
    """
    o = observations.distinct()
    rungs = _rungs(o)
    measured = np.stack([*(o.curve[:, rung] for rung in rungs), o.score], axis=1)
    # Nothing depends on how trials are numbered: not the draws either.
    order = np.lexsort((*np.nan_to_num(np.concatenate([o.codes, measured], axis=1), nan=-1.0).T,))
    names = [*(stage_name(rung, is_end=False) for rung in rungs), stage_name(o.epochs, is_end=True)]
    drawn = _drawn(o, measured, order, names)
    found = []
    for place, epoch in enumerate((*rungs, o.epochs)):
        is_end = place == len(rungs)
        metric = o.metric if is_end else o.rung_metric
        reached = int(np.isfinite(measured[:, place]).sum())
        scores = drawn[place]
        trials = scores if isinstance(scores, TooFew) else _scored(o, scores, measured[:, place])
        found.append(Stage(epoch, is_end, metric, reached, trials))
    return tuple(found)


def _rungs(o: Observations) -> tuple[int, ...]:
    """Return the epochs at which trials were stopped, without those at which none has a score."""
    stopped = o.ending == "stopped"
    last = np.where(np.isfinite(o.curve), np.arange(o.curve.shape[1]), 0).max(axis=1, initial=0)
    stops = np.where(np.isfinite(o.rung), o.rung, last)[stopped].astype(int)
    inside = np.unique(stops[(stops > 0) & (stops <= o.epochs)])
    return tuple(int(rung) for rung in inside if np.isfinite(o.curve[:, rung]).any())


def _drawn(o: Observations, measured: Floats, order: Ints, names: Sequence[str]) -> list[Floats | TooFew]:
    """Return the scores at each stage, (draws, trials), with drawn ones where a trial was stopped before."""
    columns = basis_of(o.axes, o.codes).columns
    metrics = [*[o.rung_metric] * (len(names) - 1), o.metric]
    rng = np.random.default_rng(0)
    goes_on = ~np.isin(o.ending, ["failed", "no score", "completed"])
    found: list[Floats | TooFew] = []
    chain: list[Floats] = []
    for place, own in enumerate(measured.T):
        scores = own[None]
        before = [np.isfinite(one).all(axis=0) for one in chain]
        lacking = np.logical_and.reduce([goes_on, np.isnan(own), *before]) & bool(chain)
        missing = order[lacking[order]]
        if len(missing):
            both = order[np.isfinite(measured[order, : place + 1]).all(axis=1)]
            if len(both) < enough.LINK:
                lack = TooFew(len(both), enough.LINK, f"trials that reached {names[place]}")
                return found + [lack] * (len(names) - place)
            fitted = fit_continuation(measured[both, :place], columns[both], own[both])
            earlier = np.stack([np.broadcast_to(one, (DRAWS, len(own))) for one in chain], axis=2)
            scores = np.repeat(scores, DRAWS, axis=0)
            scores[:, missing] = np.clip(
                fitted.draw(earlier[:, missing], columns[missing], rng), *_bounds(metrics[place], own)
            )
        chain.append(scores)
        found.append(scores)
    return found


def _bounds(metric: str, measured: Floats) -> tuple[float, float]:
    """Return the values between which a score lies: a line through its scores would leave them."""
    low, high = bounds_of(metric)
    if metric.startswith("-"):
        low, high = -high, -low
    known = measured[np.isfinite(measured)]
    # Scores that leave them themselves are of another scale.
    inside = bool(((known >= low) & (known <= high)).all())
    return (low, high) if inside else (-np.inf, np.inf)


def _scored(o: Observations, scores: Floats, measured: Floats) -> ScoredTrials:
    there = np.isfinite(scores).all(axis=0)
    mean = np.where(np.isfinite(measured), measured, scores.mean(axis=0))
    rows = np.flatnonzero(there)
    keys = np.nan_to_num(o.codes[rows], nan=-1.0)
    rows = rows[np.lexsort((*keys.T, mean[rows]))]
    doubt = float(scores[:, rows].var(axis=0).mean()) if len(rows) else 0.0
    total = float(mean[rows].var()) + doubt if len(rows) else 0.0
    return ScoredTrials(
        row=rows,
        codes=o.codes[rows],
        score=mean[rows],
        draws=scores[:, rows],
        estimated=np.isnan(measured[rows]),
        is_default=o.trial[rows] == 0,
        lost=o.codes[o.over & ~there],
        known=1 - doubt / total if total > 0 else 1.0,
    )
