"""Effects: whether the score depends on a parameter beyond what the other parameters explain.

An adaptive search repeats all parameters of its good trials, also those without effect.
Judged one by one, such parameters seem to matter. So each is judged beside the others: what all others
explain (a line and a parabola of each number, a level of each category; ridge regression) is taken out of the
scores and of the parameter's columns, and the rest of the scores is permuted (Freedman and Lane 1983).

At a rung that not all trials reached, estimated scores continue the earlier ones, so a parameter that
mattered early would always seem to matter. So an effect must also be visible, in the same direction, among
only the trials that reached the rung, where the selection of these trials weakens it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from contrasweep.tuning.search.axes import Axis
from contrasweep.tuning.sensitivity.basis import STRENGTHS, Basis, basis_of
from contrasweep.tuning.sensitivity.scores import ScoredTrials
from contrasweep.tuning.statistics import LEVEL, Floats, holm

PERMUTATIONS: Final = 999
"""The smallest p is one in a thousand: with Holm's correction, enough for 50 parameters."""

CAUTIOUS: Final = 0.1
"""An effect is judged by this quantile over the draws of estimated scores, not by the mean."""

TIED: Final = 1e-9
"""Shares of the variance that differ by less are equal: they differ by rounding."""

Verdict = Literal["matters", "may matter", "no evidence"]


@dataclass(frozen=True)
class Effect:
    """What one parameter does to the score beyond the others.

    Attributes:
        parameter: its name.
        share: the share of the scores' variance that it explains beyond the others, less what chance gives.
        p: of a permutation test that it explains nothing beyond the others.
        p_holm: the same corrected for the number of parameters (Holm 1979).
        trials, reached: the number of trials with a score, and of those whose score is measured.
    """

    parameter: str
    share: float
    p: float
    p_holm: float
    trials: int
    reached: int

    @property
    def verdict(self) -> Verdict:
        """Whether it matters: surely if that holds for all parameters at once, perhaps if for it alone."""
        if self.p_holm <= 1 - LEVEL:
            return "matters"
        return "may matter" if self.p <= 1 - LEVEL else "no evidence"


@dataclass(frozen=True)
class _Test:
    """A parameter judged beside the others: share and p as in `Effect`, and its effect on each trial."""

    share: float
    p: float
    effect: Floats


def effects(axes: Sequence[Axis], trials: ScoredTrials) -> list[Effect]:
    """Return the effect of each parameter, in the order of the axes."""
    basis = basis_of(axes, trials.codes)
    measured = ~trials.estimated
    of_measured = basis_of(axes, trials.codes[measured]) if trials.estimated.any() else None
    found = []
    for place in range(len(axes)):
        test = _judge(basis, place, trials.draws)
        p = test.p
        if of_measured is not None:
            own = _judge(of_measured, place, trials.score[None, measured])
            alike = float(own.effect @ (test.effect[measured] - test.effect[measured].mean())) > 0
            p = max(p, own.p) if alike else 1.0
        found.append((test.share, p))
    corrected = holm([p for _, p in found])
    return [
        Effect(axis.name, share, p, p_holm, len(trials), int(measured.sum()))
        for axis, (share, p), p_holm in zip(axes, found, corrected, strict=True)
    ]


def _judge(basis: Basis, place: int, draws: Floats) -> _Test:
    """Judge one parameter by scores, (draws, trials)."""
    own = basis.owner == place
    scores = draws.T - draws.mean(axis=1)
    others = _smoother(basis.columns[:, ~own], scores.mean(axis=1))
    columns = others.rest(basis.columns[:, own])
    left, values, right = np.linalg.svd(columns, full_matrices=False)
    there = values > 1e-6 * max(1.0, float(values.max(initial=0)))
    left, values, right = left[:, there], values[there], right[there]
    rest = others.rest(scores)
    if not len(values) or not (rest**2).sum(axis=0).all():
        return _Test(0.0, 1.0, np.zeros(len(scores)))
    rng = np.random.default_rng(0)
    shuffled = np.stack(
        [rng.permutation(rest[:, number % len(draws)]) for number in range(PERMUTATIONS)], axis=1
    )
    chance, observed = _explained(left, others.rest(shuffled)), _explained(left, rest)
    # Permutations that give the very same share count as no less: few values give it often.
    cautious = float(np.quantile(observed, CAUTIOUS)) - TIED
    beyond = (rest**2).sum(axis=0) / (scores**2).sum(axis=0)
    weights = right.T @ ((left.T @ rest).mean(axis=1) / values)
    effect = basis.columns[:, own] @ weights
    return _Test(
        share=max(0.0, float(np.mean(beyond * (observed - chance.mean())))),
        p=(1 + int(np.count_nonzero(chance >= cautious))) / (1 + PERMUTATIONS),
        effect=effect - effect.mean(),
    )


def _explained(left: Floats, rest: Floats) -> Floats:
    """Return the share of each column's variance that lies in the directions `left`."""
    centred = rest - rest.mean(axis=0)
    return np.asarray(((left.T @ rest) ** 2).sum(axis=0) / np.maximum((centred**2).sum(axis=0), 1e-300))


@dataclass(frozen=True)
class _Smoother:
    """Ridge regression on some columns: directions, and how much of each it explains."""

    directions: Floats
    kept: Floats

    def rest(self, values: Floats) -> Floats:
        """Return what the regression leaves of each column of values, (trials, columns)."""
        centred = values - values.mean(axis=0)
        return np.asarray(centred - self.directions @ (self.kept[:, None] * (self.directions.T @ centred)))


def _smoother(columns: Floats, scores: Floats) -> _Smoother:
    """Return the regression of the scores on the columns, with the most probable strength."""
    centred = columns - columns.mean(axis=0)
    directions, values, _ = np.linalg.svd(centred, full_matrices=False)
    directions, values = directions[:, values > 1e-9], values[values > 1e-9]
    count, freedom = max(1, columns.shape[1]), len(scores) - 1
    inside = directions.T @ scores
    outside = max(0.0, float(scores @ scores - inside @ inside))

    def evidence(strength: float) -> float:
        growth = 1 + strength * values**2 / count
        residual = max(outside + float((inside**2 / growth).sum()), 1e-12)
        return float(-0.5 * np.log(growth).sum() - freedom / 2 * np.log(residual))

    growth = max(STRENGTHS, key=evidence) * values**2 / count
    return _Smoother(directions, growth / (1 + growth))
