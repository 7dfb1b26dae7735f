"""How strongly the runs speak for a statement, and how strongly against it.

A comparison's margin is a function of means over n paired seeds. The jackknife turns it into n numbers, its
pseudo-values (Tukey 1958; for a difference of means they are the paired differences), and Student's t judges
these. `All` is supported as strongly as its weakest part (an intersection-union test, Berger 1982) and
contradicted by any part, corrected for their number; `Either` is the mirror image.

Samples of n seeds: the whole, then one without each seed, so that a margin has n + 1 values. Several
arrangements of the runs lie one after the other: shapes are (R, n + 1) for R arrangements.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from contrasweep.tuning.statistics import ROUNDING, Floats, student_interval
from contrasweep.tuning.tables.statements import All, Comparison, Either, Statement, comparisons

ERROR = 0.05
"""The rate at which a statement that is false is called supported, and a true one contradicted, at most."""

FEWEST_SEEDS = 5
"""Fewer paired seeds decide nothing."""

Finding = Literal["supports", "contradicts", "equal", "undecided"]


@dataclass(frozen=True)
class JudgedComparison:
    """What the runs say about one comparison.

    Attributes:
        text: the comparison.
        margin: the estimate of its margin, positive where the comparison is true.
        low, high: the 90 % interval of the margin: each end is passed by chance in 5 % of the cases. NaN
            where the margins of all seeds are equal: they do not say how far those of others would be away.
        finding: `supports` where the interval lies above 0, `contradicts` where it lies below, `equal` where
            it lies within the smallest difference that counts, else `undecided`. Without an interval, the
            sign test decides; margins of exactly 0 support `>=`, and make the sides of `>` equal.
    """

    text: str
    margin: float
    low: float
    high: float
    finding: Finding


def leave_one_out(seeds: int) -> Floats:
    """Return the weights `(n + 1, n)` of the samples: the mean of all seeds, then without each."""
    weights = (1 - np.eye(seeds)) / max(seeds - 1, 1)
    return np.vstack([np.full((1, seeds), 1 / seeds), weights])


def against_and_for(statement: Statement, seeds: int) -> tuple[Floats, Floats]:
    """Return two p values `(R,)`: that the statement is false, and that it is true.

    The runs support the statement where the first is at most `ERROR`, and contradict it where the second is.
    """
    return join(statement, lambda comparison: _one_sided(comparison, seeds))


def join(statement: Statement, test: Callable[[Comparison], tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    """Return the p values `(R,)` that a statement is false and that it is true, from those of comparisons."""
    if isinstance(statement, Comparison):
        return test(statement)
    found = [join(part, test) for part in statement.parts]
    if not found:
        is_all = isinstance(statement, All)
        return np.array([0.0 if is_all else 1.0]), np.array([1.0 if is_all else 0.0])
    false, true = (np.stack(np.broadcast_arrays(*side)) for side in zip(*found, strict=True))
    if isinstance(statement, All):
        return false.max(axis=0), _any(true)
    return _any(false), true.max(axis=0)


def judge_each(statement: Statement, seeds: int) -> list[JudgedComparison]:
    """Return what the runs, in their first arrangement, say about each comparison."""
    return [_judged(one, seeds) for one in comparisons(statement)]


def contradicting(statement: Statement, seeds: int) -> list[str]:
    """Return the comparisons for which the runs contradict a statement, the smallest p value first.

    They are those that `against_and_for` counts: after the correction for the parts of an `All`, and of an
    `Either` only if all of its parts are contradicted. Without one, the statement is not contradicted.
    """
    return [text for _, text in sorted(_contradicting(statement, seeds, ERROR), key=lambda one: one[0])]


def _contradicting(statement: Statement, seeds: int, error: float) -> list[tuple[float, str]]:
    if isinstance(statement, Comparison):
        p = float(_one_sided(_unshuffled(statement, seeds), seeds)[1][0])
        return [(p, statement.text)] if p <= error else []
    if isinstance(statement, All):
        parts = [_contradicting(part, seeds, error / len(statement.parts)) for part in statement.parts]
    else:
        parts = [_contradicting(part, seeds, error) for part in statement.parts]
        parts = parts if all(parts) else []
    return [one for part in parts for one in part]


def finding_of(statement: Statement, seeds: int) -> Finding:
    """Return whether a statement is equal or supported, without a correction for its number of comparisons.

    An `All` is equal where each part is supported or equal, an `Either` where each part is equal. What is
    neither equal nor supported is `undecided` here, contradicted or not.
    """
    if isinstance(statement, Comparison):
        return _judged(statement, seeds).finding
    found = {finding_of(part, seeds) for part in statement.parts}
    if found == {"equal"} or (isinstance(statement, All) and found == {"equal", "supports"}):
        return "equal"
    if found == {"supports"} or (isinstance(statement, Either) and "supports" in found):
        return "supports"
    return "undecided"


def mean_beyond(values: Sequence[float], bound: float, of: int) -> bool:
    """Return whether the mean of values is shown to lie more than `bound` from 0, on either side.

    Args:
        values: the values, one for each seed.
        bound: the bound.
        of: how many means are asked; `ERROR` is the rate at which any of them is wrongly said to lie beyond.
    """
    numbers = np.asarray(values)
    error = float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
    low, high = student_interval(float(numbers.mean()), error, len(numbers) - 1, 1 - ERROR / of)
    return low > bound or high < -bound


def _any(ps: Floats) -> Floats:
    """Return the p value that at least one of several holds: the smallest, corrected for their number."""
    corrected: Floats = np.minimum(1.0, len(ps) * ps.min(axis=0))
    return corrected


def _one_sided(comparison: Comparison, seeds: int) -> tuple[Floats, Floats]:
    from scipy.special import stdtr

    estimate, error = _estimate(comparison, seeds)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = estimate / error
    false, true = stdtr(seeds - 1, -t), stdtr(seeds - 1, t)
    still = error == 0
    # Scores move in steps, so that the margins of all seeds can be equal. Then only their signs are evidence
    # (sign test). A margin of exactly 0 is evidence for >= alone. Facts of the data are beyond doubt.
    p = 0.5**seeds if _is_measured(comparison) else 0.0
    above = estimate > 0 if comparison.strict else estimate >= 0
    false = np.where(still, np.where(above, p, 1.0), false)
    true = np.where(still, np.where(estimate < 0, p, 1.0), true)
    return np.nan_to_num(false, nan=1.0), np.nan_to_num(true, nan=1.0)


def _is_measured(comparison: Comparison) -> bool:
    """Return whether a margin has a value for each sample of the seeds; one of facts has a single value."""
    return np.size(comparison.margin) > 1


def _estimate(comparison: Comparison, seeds: int) -> tuple[Floats, Floats]:
    """Return the jackknife's estimate of the margin and its standard error, `(R,)` each."""
    margins = np.asarray(comparison.margin, dtype=float)
    # What is left of two equal numbers by rounding is no margin.
    margins = np.where(np.abs(margins) <= ROUNDING * comparison.scale, 0.0, margins)
    # A comparison of facts beside runs is alike in every sample.
    margins = np.broadcast_to(margins, seeds + 1) if margins.size == 1 else margins
    margins = margins.reshape(-1, seeds + 1)
    with np.errstate(invalid="ignore"):
        pseudo = seeds * margins[:, :1] - (seeds - 1) * margins[:, 1:]
        error = pseudo.std(axis=1, ddof=1) / math.sqrt(seeds)
        # What is alike in every sample has no spread but the rounding of its sums.
        error[np.ptp(margins, axis=1) <= ROUNDING * comparison.scale] = 0.0
    return pseudo.mean(axis=1), error


def _unshuffled(comparison: Comparison, seeds: int) -> Comparison:
    """Return a comparison on the first arrangement of the runs alone."""
    return replace(comparison, margin=np.atleast_1d(comparison.margin)[: seeds + 1])


def _judged(comparison: Comparison, seeds: int) -> JudgedComparison:
    comparison = _unshuffled(comparison, seeds)
    estimates, errors = _estimate(comparison, seeds)
    estimate = float(estimates[0])
    # Both one-sided tests at `ERROR` read this interval.
    low, high = student_interval(estimate, float(errors[0]), seeds - 1, 1 - 2 * ERROR)
    false, true = (float(p[0]) for p in _one_sided(comparison, seeds))
    within = comparison.same_within
    finding: Finding = "undecided"
    if false <= ERROR:
        finding = "supports"
    elif true <= ERROR:
        finding = "contradicts"
    elif within is not None and -within <= low and high <= within:
        finding = "equal"
    if errors[0] == 0 and _is_measured(comparison):
        low = high = math.nan
    return JudgedComparison(comparison.text, estimate, low, high, finding)
