"""Several studies: what each finds with the same budget, and whether the differences are more than chance."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.axes import Floats
from contrasweep.tuning.sensitivity.budget import best_weights, ended_scores
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations

RESAMPLES: Final = 2000


@dataclass(frozen=True)
class StudyAtBudget:
    """A study, and the best score to expect of it with the common budget.

    Attributes:
        study: its name.
        method: what it trains.
        dataset: on what.
        metric: its score.
        ended: trials that came to an end.
        completed: of these, with a final score.
        epochs: a trial's budget.
        seconds: wall-clock of all trials.
        best: best score of all.
        expected: of the common number of trials.
        low: lower end of its 95 % bootstrap interval.
        high: upper end.
    """

    study: str
    method: str
    dataset: str
    metric: str
    ended: int
    completed: int
    epochs: int
    seconds: float
    best: float
    expected: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference:
    """Two studies of one dataset and metric: the first's expected best less the second's.

    Attributes:
        first: study.
        second: study.
        difference: in the score's units.
        low: lower end of the 95 % bootstrap interval (trials resampled within each study).
        high: upper end.
        wins: how often the first's best beats the second's (ties count half), with the common budget.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    wins: float


@dataclass(frozen=True)
class EqualBudget:
    """Studies side by side with one budget.

    Attributes:
        budget: trials each study is allowed: half of what the smallest has, so that intervals mean something.
        studies: in the order given.
        differences: of each two on one dataset with one metric.
        unequal: what else differs between studies of one dataset, in words; it limits the comparison.
    """

    budget: int
    studies: tuple[StudyAtBudget, ...]
    differences: tuple[Difference, ...]
    unequal: tuple[str, ...]


def equal_budget(studies: Sequence[Observations], seed: int = 0) -> EqualBudget | TooFew:
    """Compare studies by the best score to expect of equally many of their trials."""
    smallest = min(studies, key=lambda one: int(one.over.sum()))
    count = int(smallest.over.sum())
    if count < enough.BUDGET:
        return TooFew(count, enough.BUDGET, f"ended trials in study {smallest.study}")
    without = [one.study for one in studies if not one.completed.any()]
    if without:
        return TooFew(0, 1, f"completed trials in study {without[0]}")
    budget = max(1, count // 2)
    resampled = {one.study: _resampled(one, budget, seed + i) for i, one in enumerate(studies)}
    pairs = [(a, b) for a, b in itertools.combinations(studies, 2) if _comparable(a, b)]
    return EqualBudget(
        budget=budget,
        studies=tuple(_at_budget(one, budget, resampled[one.study]) for one in studies),
        differences=tuple(_difference(a, b, budget, resampled) for a, b in pairs),
        unequal=tuple(line for a, b in pairs for line in _unequal(a, b)),
    )


def wins(first: Floats, second: Floats, budget: int) -> float:
    """Return the probability that the best of `budget` of the first scores beats that of the second.

    Args:
        first: scores, ascending.
        second: scores, ascending.
        budget: how many are drawn from each, without replacement.
    """
    chances_first = best_weights(len(first), np.array([budget]))[:, 0]
    chances_second = np.cumsum(best_weights(len(second), np.array([budget]))[:, 0])
    below = np.concatenate([[0.0], chances_second])
    less = below[np.searchsorted(second, first, side="left")]
    less_or_equal = below[np.searchsorted(second, first, side="right")]
    return float(chances_first @ ((less + less_or_equal) / 2))


def _comparable(first: Observations, second: Observations) -> bool:
    return first.dataset == second.dataset and first.metric == second.metric


def _resampled(study: Observations, budget: int, seed: int) -> Floats:
    scores = ended_scores(study)
    draws = np.random.default_rng(seed).integers(len(scores), size=(RESAMPLES, len(scores)))
    return np.asarray(np.sort(scores[draws], axis=1) @ best_weights(len(scores), np.array([budget]))[:, 0])


def _at_budget(study: Observations, budget: int, resampled: Floats) -> StudyAtBudget:
    scores = ended_scores(study)
    low, high = np.quantile(resampled, [0.025, 0.975])
    return StudyAtBudget(
        study=study.study,
        method=study.method,
        dataset=study.dataset,
        metric=study.metric,
        ended=len(scores),
        completed=int(study.completed.sum()),
        epochs=study.epochs,
        seconds=float(np.nansum(study.seconds)),
        best=float(scores[-1]),
        expected=float(scores @ best_weights(len(scores), np.array([budget]))[:, 0]),
        low=float(low),
        high=float(high),
    )


def _difference(
    first: Observations, second: Observations, budget: int, resampled: dict[str, Floats]
) -> Difference:
    weights = [
        scores @ best_weights(len(scores), np.array([budget]))[:, 0]
        for scores in (ended_scores(first), ended_scores(second))
    ]
    low, high = np.quantile(resampled[first.study] - resampled[second.study], [0.025, 0.975])
    chance = wins(ended_scores(first), ended_scores(second), budget)
    return Difference(
        first.study, second.study, float(weights[0] - weights[1]), float(low), float(high), chance
    )


def _unequal(first: Observations, second: Observations) -> list[str]:
    found = []
    if first.epochs != second.epochs:
        found.append(
            f"{first.study} trains for {first.epochs} epochs, {second.study} for {second.epochs}: "
            "equal trials are not equal budgets"
        )
    stopped = [one.study for one in (first, second) if one.count("stopped")]
    if len(stopped) == 1:
        found.append(f"only {stopped[0]} had trials stopped early: its trials cost less")
    return found
