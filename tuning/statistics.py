"""Statistics of scores: means and deviations, intervals, paired tests, Holm's correction, the best so far."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Number = TypeVar("Number", float, Floats)

LEVEL: Final = 0.95
"""The confidence level of every interval."""

TAILS: Final = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
"""The two quantiles between which an interval lies."""

Z: Final = 1.96
"""Half the width of a normal interval, in standard errors."""

ROUNDING: Final = 1e-12
"""What is smaller than this, relative to the numbers that it comes from, is rounding."""


@dataclass(frozen=True)
class Summary:
    """Mean and sample standard deviation (n - 1) of n values; a single value has no deviation."""

    mean: float
    std: float | None
    n: int

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None of a single value."""
        return None if self.std is None else self.std / math.sqrt(self.n)


def is_number(value: float | None) -> TypeGuard[float]:
    """Whether a score is there and finite: others are left out of every summary."""
    return value is not None and math.isfinite(value)


def summarise(values: Iterable[float | None]) -> Summary | None:
    """Summarise the values that are finite numbers; None without any."""
    numbers = [value for value in values if is_number(value)]
    if not numbers:
        return None
    std = statistics.stdev(numbers) if len(numbers) > 1 else None
    # The mean of equal values may differ from them in its last digit, and another value may be equal to it.
    mean = min(max(statistics.fmean(numbers), min(numbers)), max(numbers))
    return Summary(mean, std, len(numbers))


FEW_SEEDS = 3
"""With fewer runs, nothing is concluded: an interval of two is 12.7 times as wide as their distance."""


@dataclass(frozen=True)
class Comparison:
    """The difference between the scores of `encoder` and `reference`, its baseline, seed by seed.

    Attributes:
        encoder, reference: the names of the compared encoder, and of the one that it is compared with.
        difference: `encoder` minus `reference`, over the seeds that both have.
        interval: of the mean difference, see `difference_interval`.
        p, p_holm: two-sided p value of the paired t test, and the same corrected by Holm for all comparisons
            of the table that have `FEW_SEEDS` seeds or more. With a single seed both are None; with fewer
            than `FEW_SEEDS`, `p_holm` is.
    """

    encoder: str
    reference: str
    difference: Summary
    interval: tuple[float, float] | None
    p: float | None
    p_holm: float | None


def seed_by_seed(own: Mapping[int, float], other: Mapping[int, float]) -> Summary | None:
    """Summarise `own` minus `other` over the seeds that both have; None if they share none."""
    return summarise(score - other[seed] for seed, score in own.items() if seed in other)


def mean_interval(summary: Summary) -> tuple[float, float] | None:
    """Return the interval of a mean, by Student's t with n - 1 degrees of freedom; None for a single run."""
    if summary.error is None:
        return None
    return student_interval(summary.mean, summary.error, summary.n - 1)


def difference_interval(difference: Summary) -> tuple[float, float] | None:
    """Return the interval of a mean difference of scores, by Student's t; None without any spread.

    Scores move in steps, of an image of the test split. So differences that are all equal do not say how far
    those of other seeds would be away, and neither does a single one.
    """
    alike = difference.std is None or difference.std <= ROUNDING * max(1.0, abs(difference.mean))
    return None if alike else mean_interval(difference)


def student_interval(
    estimate: float, error: float, freedom: float, level: float = LEVEL
) -> tuple[float, float]:
    """Return the interval of an estimate, by Student's t with `freedom` degrees of freedom."""
    half = t_quantile(freedom, level) * error
    return estimate - half, estimate + half


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Return half the width of an interval by Student's t, in standard errors."""
    # Imported late, here and below: it takes up to a second, and Ray's workers need means alone. What
    # scipy.stats puts around this function takes far longer than the number.
    from scipy.special import stdtrit

    return float(stdtrit(freedom, (1 + level) / 2))


def welch_interval(first: Summary, second: Summary) -> tuple[float, float]:
    """Return the interval of the difference `first` - `second` of two means (Welch 1947).

    Both need a deviation. Without any spread the interval is the difference itself.
    """
    assert first.std is not None, "a single run has no deviation"
    assert second.std is not None, "a single run has no deviation"
    own, other = first.std**2 / first.n, second.std**2 / second.n
    bottom = own**2 / (first.n - 1) + other**2 / (second.n - 1)
    freedom = (own + other) ** 2 / bottom if bottom > 0 else first.n - 1.0
    return student_interval(first.mean - second.mean, math.sqrt(own + other), freedom)


def normal_interval(estimate: Number, error: Number) -> tuple[Number, Number]:
    """Return the interval of an estimate (a number or an array) from its standard error."""
    return estimate - Z * error, estimate + Z * error


def binomial_noise(share: float, images: int) -> float:
    """Return by how much a share of correct answers differs by chance from that on other images.

    It is half the width of the normal interval of a binomial share, and one image at least. Shares within it
    are ties.

    Args:
        share: of correct answers, 0 to 1.
        images: how many images were asked for.
    """
    return max(Z * math.sqrt(share * (1 - share) / images), 1 / images)


def rank_correlation(first: Floats, second: Floats) -> Floats:
    """Return Spearman's rank correlation of each row of two arrays, (..., n); 0 where a row is all alike."""
    return np.asarray((standard_ranks(first) * standard_ranks(second)).sum(axis=-1))


def standard_ranks(values: Floats) -> Floats:
    """Return the ranks of each row, (..., n), centred and of length 1; zeros where a row is all alike.

    The product of two of them, summed, is Spearman's rank correlation.
    """
    from scipy.stats import rankdata

    ranks = rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2
    norm = np.sqrt((ranks**2).sum(axis=-1, keepdims=True))
    return np.asarray(np.divide(ranks, norm, out=np.zeros_like(ranks), where=norm > 0))


def rank_correlation_interval(rho: float, count: int) -> tuple[float, float]:
    """Return the interval of Spearman's rho of `count` pairs, 4 or more (Bonett and Wright 2000).

    Pairs in the same order count as half of the way to the next lower rho: 1 would have no interval.
    """
    step = 6 / (count * (count**2 - 1))
    return fisher_interval(rho, math.sqrt((1 + rho**2 / 2) / (count - 3)), 1 - step)


def concordance_interval(tau: float, count: int) -> tuple[float, float]:
    """Return the interval of Kendall's tau of `count` pairs, 5 or more (Fieller et al. 1957).

    It is too short above 0.9 (their variance holds up to about 0.8). Pairs in the same order count as half of
    the way to the next lower tau: 1 would have no interval.
    """
    step = 2 / (count * (count - 1))
    return fisher_interval(tau, math.sqrt(0.437 / (count - 4)), 1 - step)


def fisher_interval(correlation: float, error: float, most: float) -> tuple[float, float]:
    """Return the interval of a correlation, from the standard error of its arctanh (Fisher 1915).

    A correlation of more than `most`, or less than its negative, counts as that.
    """
    z = math.atanh(max(-most, min(most, correlation)))
    low, high = normal_interval(z, error)
    return math.tanh(low), math.tanh(high)


def jackknife_error(*left_out: Floats) -> Floats:
    """Return the jackknife's standard error of a statistic (Tukey 1958), (...).

    Args:
        left_out: for each independent sample that it is computed from, its values without one of the n
            members each, (n, ...).
    """
    return np.asarray(np.sqrt(sum((len(one) - 1) * one.var(axis=0) for one in left_out)))


LEAST_SHARE: Final = 1e-9
"""Shares nearer to 0 or 1 count as this: the logarithm of their odds would be infinite."""


def share_interval(share: Floats, error: Floats, freedom: float) -> tuple[Floats, Floats]:
    """Return the interval of shares from their standard errors, by Student's t on the scale of log odds.

    It lies between 0 and 1, and is longer towards 1/2, where an estimate near 0 or 1 may well belong.
    """
    inside = np.clip(share, LEAST_SHARE, 1 - LEAST_SHARE)
    odds, half = np.log(inside / (1 - inside)), t_quantile(freedom) * error / (inside * (1 - inside))
    low, high = (1 / (1 + np.exp(-np.clip(end, -700, 700))) for end in (odds - half, odds + half))
    return low, high


def percentile_interval(resampled: Floats) -> tuple[Floats, Floats]:
    """Return the interval of a statistic from its values on resampled data, (resamples, ...)."""
    low, high = np.quantile(resampled, TAILS, axis=0)
    return low, high


def compare_first(scores: Mapping[str, Mapping[int, float]]) -> list[Comparison]:
    """Compare the first encoder with each of the others, its baselines.

    A seed decides initialisation, order and views alike for all encoders, so differences are taken seed by
    seed. The test is the t test, because Wilcoxon's cannot fall below p = 0.06 with five pairs; where all
    differences are equal, it is the sign test.

    Args:
        scores: by encoder and seed; an encoder that shares no seed with the first is left out.
    """
    (encoder, of_encoder), *others = scores.items()
    found = []
    for reference, of_reference in others:
        shared = [(of_encoder[seed], of_reference[seed]) for seed in of_reference if seed in of_encoder]
        pairs = [pair for pair in shared if all(map(math.isfinite, pair))]
        difference = seed_by_seed(of_encoder, of_reference)
        if difference is not None:
            found.append((reference, difference, _paired_p(pairs, difference)))
    tested = {one: p for one, difference, p in found if p is not None and difference.n >= FEW_SEEDS}
    corrected = dict(zip(tested, holm([*tested.values()]), strict=True))
    return [
        Comparison(
            encoder, reference, difference, difference_interval(difference), p, corrected.get(reference)
        )
        for reference, difference, p in found
    ]


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm 1979): each holds among all of them."""
    corrected = [0.0] * len(ps)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda index: ps[index])):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - rank)))
        corrected[index] = highest
    return corrected


def _paired_p(pairs: Sequence[tuple[float, float]], difference: Summary) -> float | None:
    if difference.std is None:
        return None
    # Equal scores, and equal differences of scores, differ by rounding, which is neither gain nor spread.
    rounding = ROUNDING * max(abs(score) for pair in pairs for score in pair)
    if difference.std <= rounding:
        # The t test divides by the spread. Without one, scores move in steps (of an image of the test split),
        # and only the signs of the differences are evidence: the sign test's p of n equal signs.
        return 1.0 if abs(difference.mean) <= rounding else 0.5 ** (difference.n - 1)
    from scipy import stats

    own, other = zip(*pairs, strict=True)
    return float(stats.ttest_rel(own, other).pvalue)


def signed_rank_p(own: Floats, other: Floats) -> float:
    """Return the two-sided p value of Wilcoxon's signed-rank test that paired differences centre on 0.

    Differences that differ by rounding alone are ties, and those that are rounding alone are 0. With five
    pairs or fewer, p cannot fall below 0.05.
    """
    from scipy import stats

    differences = without_rounding(own - other, np.concatenate([own, other]))
    return float(stats.wilcoxon(differences).pvalue) if differences.any() else 1.0


def without_rounding(values: Floats, origin: Floats) -> Floats:
    """Return values of which those are equal that differ by rounding alone.

    The mean of equal scores depends on their number in its last digit, which must decide no rank.

    Args:
        values: any numbers; NaN stays NaN.
        origin: the numbers that they were computed from: their size says how large rounding is.
    """
    size = float(np.nanmax(np.abs(origin), initial=0.0))
    return np.rint(values / (ROUNDING * size)) * (ROUNDING * size) if size > 0 else values


def improvements(scores: Floats) -> NDArray[np.intp]:
    """Return the places of the scores that beat every earlier one; NaN beats nothing."""
    known = np.where(np.isnan(scores), -np.inf, scores)
    before = np.maximum.accumulate(np.concatenate([[-np.inf], known[:-1]]))
    return np.flatnonzero(known > before)
