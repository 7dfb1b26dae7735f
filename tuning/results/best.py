"""What the best trial of a study is: one definition for progress, summaries, reports and files.

Some metrics are better when they are small; `methods.metrics` declares the direction of each. A search, a
scheduler and an analysis compare *merits*, of which the larger is always better. The store, and whatever a
user reads, have the metrics themselves.
"""

import math
import operator
from collections.abc import Mapping, Sequence

from contrasweep.tuning.methods.metrics import is_minimised

RULE = "{extreme} {metric} at the last epoch among completed trials"
"""What best means, wherever a best trial is named; of equal ones, the earliest."""


def merit(metric: str, value: float) -> float:
    """Return the merit of a value of `metric`; given a merit, return the value."""
    return -value if is_minimised(metric) else value


def compared_merit(metric: str, value: float | None) -> float:
    """Return the merit of a running trial as schedulers compare it: minus infinity if it is missing or NaN.

    NaN is never below another score, so ASHA would let the trial go on.
    """
    return -math.inf if value is None or math.isnan(value) else merit(metric, value)


def merit_name(metric: str) -> str:
    """Return what the merit of a metric is called in figures and tables: `val.rankme`, `-val.alignment`."""
    return f"-{metric}" if is_minimised(metric) else metric


def rule_in_words(metric: str, remark: str = "") -> str:
    """Return what best means by a metric, with a remark on it."""
    return RULE.format(extreme="lowest" if is_minimised(metric) else "highest", metric=metric + remark)


def best_name(metric: str) -> str:
    """Return what a best score is called: `best final val.accuracy`."""
    return f"best final {metric}"


def beats(metric: str, score: float, untrained: float | None) -> bool:
    """Return whether a score is better than that of the encoder before training; a missing one is no bar."""
    return untrained is None or merit(metric, score) > merit(metric, untrained)


def not_beaten_in_words(where: str = "") -> str:
    """Say that scores are no better than those before training; `where` names the scores or the trial."""
    return f"training did not beat the untrained encoder{f' in {where}' if where else ''}"


def best_order(trial: int, score: float, metric: str) -> tuple[float, int]:
    """Return the key that sorts completed trials by their final scores, the best first."""
    return -merit(metric, score), trial


def best_final(scores: Mapping[int, float], metric: str) -> tuple[int, float] | None:
    """Return the best of completed trials, and its score, from their final scores; None of none."""
    return min(scores.items(), key=lambda one: best_order(one[0], one[1], metric), default=None)


def ranked(merits: Mapping[int, Sequence[float]]) -> list[int]:
    """Return completed trials, the best first, from their final merits, one for each metric of the search.

    Those on the Pareto front come first (of one metric, the best), then all others; within each, by the first
    merit, of equal ones the earliest.
    """
    trials = list(merits)
    front = {trials[place] for place in pareto_front([merits[trial] for trial in trials])}
    return sorted(trials, key=lambda trial: (trial not in front, -merits[trial][0], trial))


def pareto_front(points: Sequence[Sequence[float]]) -> list[int]:
    """Return the indices of the points on the Pareto front, in order; larger coordinates are better.

    A point is on the front unless another point is at least as large in every coordinate and larger in one.
    Equal points are both on it or both not.
    """
    front: list[int] = []
    # In this order, every point comes after all points that beat it.
    for place in sorted(range(len(points)), key=lambda place: tuple(points[place]), reverse=True):
        point = tuple(points[place])
        others = (tuple(points[other]) for other in front)
        if not any(one != point and all(map(operator.ge, one, point)) for one in others):
            front.append(place)
    return sorted(front)
