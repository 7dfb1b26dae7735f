"""Expected best score against budget: the best score that a search of b trials finds (Dodge et al. 2019).

The estimator is the unbiased one, without replacement (Tang et al. 2020): the mean of the best over all sets
of b of the n trials. It treats trials as independent draws, which is right for a random search. For a search
that learns, it says what the trials would give in any order; the actual progress is shown beside it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import gammaln

from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Observations
from contrasweep.tuning.statistics import (
    Floats,
    Ints,
    improvements,
    jackknife_error,
    percentile_interval,
    t_quantile,
)

RESAMPLES: Final = 400
POINTS: Final = 40


@dataclass(frozen=True)
class BudgetCurve:
    """The expected best of b trials.

    Attributes:
        trials: b, from 1 to `largest_budget` of the ended trials.
        expected: the expected best score.
        low, high: its interval, see `best_interval`.
        seconds_a_trial: mean wall-clock of an ended trial, failed and stopped ones included.
        ended: the number of ended trials.
        without_score: the number of them that were stopped or failed; they count as the worst completed.
        seconds: wall-clock from the start of the study to the last end of a trial.
        progress_trials, progress_seconds, progress_score: at each improvement of the best score, the number
            of trials that had ended, the seconds since the start, and the new best.
        independent: whether the trials were drawn at random.
    """

    trials: Ints
    expected: Floats
    low: Floats
    high: Floats
    seconds_a_trial: float
    ended: int
    without_score: int
    seconds: float
    progress_trials: Ints
    progress_seconds: Floats
    progress_score: Floats
    independent: bool


def budget_curve(observations: Observations) -> BudgetCurve | TooFew:
    """Return the expected best score of a study by number of trials."""
    completed = int(np.count_nonzero(observations.completed))
    if completed < enough.BUDGET:
        return TooFew(completed, enough.BUDGET, "completed trials")
    scores = ended_scores(observations)
    n = len(scores)
    budgets = np.unique(np.geomspace(1, largest_budget(n), POINTS).round().astype(np.int64))
    low, high = best_interval(scores, budgets)
    known = observations.over & np.isfinite(observations.seconds)
    in_time = np.flatnonzero(observations.over)
    in_time = in_time[np.argsort(observations.ended[in_time], kind="stable")]
    better = improvements(observations.score[in_time])
    return BudgetCurve(
        trials=budgets,
        expected=expected_best(scores, budgets),
        low=low,
        high=high,
        seconds_a_trial=float(observations.seconds[known].mean()),
        ended=n,
        without_score=n - completed,
        seconds=float(np.nanmax(observations.ended[observations.over])),
        progress_trials=better + 1,
        progress_seconds=observations.ended[in_time][better],
        progress_score=observations.score[in_time][better],
        independent=observations.sampler == "random",
    )


def ended_scores(observations: Observations) -> Floats:
    """Return the scores of ended trials, ascending; one without a score counts as the worst completed."""
    scores = observations.score[observations.over]
    known = scores[np.isfinite(scores)]
    worst = known.min() if len(known) else np.nan
    return np.sort(np.where(np.isfinite(scores), scores, worst))


def largest_budget(ended: int) -> int:
    """Return the largest b for which so many trials say how uncertain the expected best of b is: a quarter.

    Beyond it, the few highest scores decide, and what n trials did not find is unknown.
    """
    return max(1, ended // 4)


def best_interval(scores: Floats, budgets: Ints) -> tuple[Floats, Floats]:
    """Return the ends of the interval of the expected best of b scores, (budgets,) each.

    It covers Student's interval of the jackknife and the percentile interval of the bootstrap. The one is too
    narrow where many scores are alike at the top, the other where few stand out.
    docs/sensitivity-validation.md shows how often they cover the truth.

    Args:
        scores: n scores, ascending.
        budgets: b, at most `largest_budget(n)`.
    """
    draws = np.random.default_rng(0).integers(len(scores), size=(RESAMPLES, len(scores)))
    low, high = percentile_interval(expected_best(np.sort(scores[draws], axis=1), budgets))
    expected, half = expected_best(scores, budgets), best_error(scores, budgets) * t_quantile(len(scores) - 1)
    return np.minimum(low, expected - half), np.maximum(high, expected + half)


def best_error(scores: Floats, budgets: Ints) -> Floats:
    """Return the jackknife's standard error of the expected best of b of n ascending scores, (budgets,)."""
    n = len(scores)
    weights = best_weights(n - 1, budgets)
    # Without one score, those above it have the weights of the places below.
    below = np.cumsum(scores[:-1, None] * weights, axis=0)
    above = np.cumsum((scores[1:, None] * weights)[::-1], axis=0)[::-1]
    nothing = np.zeros((1, len(budgets)))
    left_out = np.concatenate([nothing, below]) + np.concatenate([above, nothing])
    return jackknife_error(left_out)


def best_weights(n: int, budgets: Ints) -> Floats:
    """Return the weight of each of n ascending scores in the mean best of b of them, (n, budgets)."""
    place = np.arange(1, n + 1)[:, None]
    b = budgets[None, :].astype(float)
    possible = place >= b
    above = np.where(possible, place - b, 0)
    logs = gammaln(place) - gammaln(b) - gammaln(above + 1)
    logs = logs - (gammaln(n + 1) - gammaln(b + 1) - gammaln(n - b + 1))
    weights = np.where(possible, np.exp(logs), 0.0)
    # The logarithms are rounded.
    return np.asarray(weights / weights.sum(axis=0))


def expected_best(scores: Floats, budgets: Ints) -> Floats:
    """Return the mean best over all sets of b of the ascending scores (..., n): (..., budgets)."""
    mean = scores @ best_weights(scores.shape[-1], budgets)
    # A mean of equal scores is that score, to the last digit.
    return np.asarray(np.clip(mean, scores[..., :1], scores[..., -1:]))
