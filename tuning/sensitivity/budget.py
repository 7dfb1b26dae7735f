"""Expected best score against budget: the best score that a search of b trials finds (Dodge et al. 2019).

The estimator is the unbiased one, without replacement (Tang et al. 2020): the mean of the best over all sets
of b of the n trials. It treats trials as independent draws, which is right for a random search. For a search
that learns, it says what the trials would give in any order; the actual progress is shown beside it.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy.special import gammaln

from contrasweep.tuning.search.axes import Floats
from contrasweep.tuning.sensitivity import enough
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.observations import Ints, Observations
from contrasweep.tuning.statistics import improvements, percentile_interval

RESAMPLES: Final = 400
POINTS: Final = 40


@dataclass(frozen=True)
class BudgetCurve:
    """The expected best of b trials.

    Attributes:
        trials: b, from 1 to half of the ended trials; beyond that, resampling understates the spread.
        expected: the expected best score.
        low, high: its 95 % bootstrap interval.
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
    scores = ended_scores(observations)
    n = len(scores)
    if n < enough.BUDGET:
        return TooFew(n, enough.BUDGET, "ended trials")
    if not observations.completed.any():
        return TooFew(0, enough.BUDGET, "completed trials")
    budgets = np.unique(np.geomspace(1, max(1, n // 2), POINTS).round().astype(np.int64))
    weights = best_weights(n, budgets)
    rng = np.random.default_rng(0)
    resampled = np.sort(scores[rng.integers(n, size=(RESAMPLES, n))], axis=1) @ weights
    low, high = percentile_interval(resampled)
    known = observations.over & np.isfinite(observations.seconds)
    in_time = np.flatnonzero(observations.over)
    in_time = in_time[np.argsort(observations.ended[in_time], kind="stable")]
    better = improvements(observations.score[in_time])
    return BudgetCurve(
        trials=budgets,
        expected=scores @ weights,
        low=low,
        high=high,
        seconds_a_trial=float(observations.seconds[known].mean()),
        ended=n,
        without_score=n - int(np.count_nonzero(observations.completed)),
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


def best_weights(n: int, budgets: Ints) -> Floats:
    """Return the weight of each of n ascending scores in the mean best of b of them, (n, budgets)."""
    place = np.arange(1, n + 1)[:, None]
    b = budgets[None, :].astype(float)
    possible = place >= b
    above = np.where(possible, place - b, 0)
    logs = gammaln(place) - gammaln(b) - gammaln(above + 1)
    logs = logs - (gammaln(n + 1) - gammaln(b + 1) - gammaln(n - b + 1))
    return np.asarray(np.where(possible, np.exp(logs), 0.0))


def expected_best(scores: Floats, budget: int) -> Floats:
    """Return the mean best over all sets of `budget` of the scores, (..., n), which are ascending."""
    return np.asarray(scores @ best_weights(scores.shape[-1], np.array([budget]))[:, 0])
