"""How stable comparisons of methods are: each claim by the number of trials, from stored trials alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from contrasweep.tuning.stability.claims import Claim
from contrasweep.tuning.stability.ranking import Agreement, agreement
from contrasweep.tuning.stability.scored_pool import ScoredPool, Values
from contrasweep.tuning.stability.smallest_pool import refuse_few
from contrasweep.tuning.stability.variance import found_parts, selection_luck
from contrasweep.tuning.stability.win_probabilities import (
    Outcome,
    chosen_weights,
    outcome_of,
    outcomes_without_one,
    ranks_of,
)
from contrasweep.tuning.statistics import (
    LEVEL,
    Floats,
    Ints,
    jackknife_error,
    percentile_interval,
    share_interval,
    without_rounding,
)

POOLS: Final = 1000
"""How many pools are drawn from the given one, for intervals."""

SURE: Final = 6
"""Up to this part of the pool, a sixth, a budget has intervals. Beyond it they cover a claim's probability
too rarely: in 83 % of pools where it is 90 % and a quarter is drawn (docs/stability.md)."""


@dataclass(frozen=True)
class Series:
    """A quantity by budget, with its interval: value, low, high, (budgets,) each.

    The ends are NaN where the value is, and at budgets that are too large for an interval.
    """

    value: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, pools: Floats, most: int) -> "Series":
        """Return the series of values by pool and budget; the first pool is the given one.

        Args:
            pools: the values in the given pool and in those drawn from it, (1 + `POOLS`, budgets). Pools in
                which one is unknown (NaN) do not count.
            most: how many of the budgets get an interval.
        """
        value = pools[0]
        ends = np.full((2, len(value)), np.nan)
        for place in np.flatnonzero(np.isfinite(value[:most])):
            drawn = pools[1:, place]
            ends[:, place] = percentile_interval(drawn[np.isfinite(drawn)])
        return cls(value, ends[0], ends[1])

    @classmethod
    def of_chances(cls, value: Floats, without: Sequence[Floats]) -> "Series":
        """Return the series of chances, with the jackknife's intervals on the scale of log odds.

        Args:
            value: in the given pools, (budgets,).
            without: for each independent pool of n, the chances without one configuration each, at the
                smallest of the budgets, which alone get an interval, (n, some budgets).
        """
        ends = np.full((2, len(value)), np.nan)
        most = without[0].shape[1]
        ends[:, :most] = share_interval(
            value[:most], jackknife_error(*without), min(len(one) for one in without) - 1
        )
        return cls(value, ends[0], ends[1])


@dataclass(frozen=True)
class Chances:
    """How likely a claim is, by budget.

    Attributes:
        above, below: the chance that the first method's found score is above, and below, the second's.
        stable_from: the smallest budget from which on the claim holds with 95 % at all budgets; None if there
            is none.
        contrary_from: the same of its contrary.
    """

    above: Series
    below: Series
    stable_from: int | None
    contrary_from: int | None

    @classmethod
    def of(cls, outcome: Outcome, without: Sequence[Outcome], budgets: Ints, half: int) -> "Chances":
        """Return the chances of an outcome; a claim becomes stable at `half` or before, or not at all.

        Args:
            outcome: in the given pools, (1, budgets).
            without: for each independent pool of n, the outcome without one configuration each, (n, some
                budgets), see `Series.of_chances`.
            budgets: numbers of trials, ascending.
            half: of the smallest pool.
        """
        above = Series.of_chances(outcome.above[0], [one.above for one in without])
        below = Series.of_chances(np.clip(outcome.below[0], 0, 1), [one.below for one in without])
        return cls(above, below, *(stable_from(one.value, budgets, half) for one in (above, below)))


@dataclass(frozen=True)
class JudgedClaim:
    """A claim by budget.

    Attributes:
        claim: the claim.
        here: its chances where the report scores of the chosen configurations are compared.
        elsewhere: its chances where their scores on the other seeds are compared (the means over these
            seeds); None where one of the studies lacks a score there.
    """

    claim: Claim
    here: Chances
    elsewhere: Chances | None


@dataclass(frozen=True)
class Found:
    """What searches of one study find, by budget.

    Attributes:
        study: the trials.
        score: the mean report score of the chosen configuration.
        optimism: its select score less its report score, mean.
        beats_untrained: the chance that its report score is above the untrained encoder's; None where that
            is unknown.
        beats_from: the smallest budget from which on that is 95 %; None if there is none.
        parts: the variance from search, seed and rest, (budgets, 3); None without other seeds.
        search_share: the part of the search in it.
        luck: by how much the chosen configurations score higher on the seed that selects than on the others,
            less what it adds to all configurations; None without other seeds.
    """

    study: ScoredPool
    score: Series
    optimism: Series
    beats_untrained: Series | None
    beats_from: int | None
    parts: Floats | None
    search_share: Series | None
    luck: Series | None


@dataclass(frozen=True)
class Stability:
    """What is known of claims about studies, by budget.

    Attributes:
        budgets: the numbers of trials, ascending.
        half: the largest budget at which a claim may become stable: half of the smallest pool. The given
            budgets need not hold it (`last_looked_at`).
        sure: the largest budget with intervals, see `SURE`.
        claims: the claims.
        found: what searches of each study find.
        ranking: how the ranking of all methods agrees with that of the whole pools; None of two.
        paired: whether all studies are paired.
        common: the parameters whose values paired studies share.
    """

    budgets: Ints
    half: int
    sure: int
    claims: tuple[JudgedClaim, ...]
    found: tuple[Found, ...]
    ranking: Agreement | None
    paired: bool
    common: tuple[str, ...]

    @property
    def last_looked_at(self) -> int | None:
        """The largest of the budgets up to `half`; None where all are larger."""
        return max((int(one) for one in self.budgets if one <= self.half), default=None)


def analyse(
    studies: Sequence[ScoredPool], claims: Sequence[Claim], budgets: Sequence[int], *, subsets: int, seed: int
) -> Stability:
    """Judge claims by the number of trials.

    Args:
        studies: of one dataset and metric.
        claims: about pairs of them.
        budgets: numbers of trials, ascending; the largest is at most that of the smallest of the `aligned`
            studies.
        subsets: how many subsets are drawn for the ranking of all methods; everything else is exact.
        seed: of the draws.
    """
    studies, common = aligned(studies)
    many = np.array(budgets, dtype=np.int64)
    smallest = min(map(len, studies))
    half, sure = smallest // 2, max(1, smallest // SURE)
    few = many[many <= sure]
    draws = [drawn_pools(len(one), 0 if common else place, seed) for place, one in enumerate(studies)]
    ranks = [ranks_of(one.select) for one in studies]

    def chances(claim: Claim, scores: Sequence[Floats]) -> Chances:
        first, second = ((ranks[side], scores[side]) for side in (claim.first, claim.second))
        whole = outcome_of(first, second, many, paired=bool(common))
        return Chances.of(whole, outcomes_without_one(first, second, few, paired=bool(common)), many, half)

    reports = _comparable([one.report for one in studies])
    again = _comparable(
        [one.again.mean(axis=0) if len(one.again) else np.full(len(one), np.nan) for one in studies]
    )

    def judge(claim: Claim) -> JudgedClaim:
        known = all(np.isfinite(again[side]).all() for side in (claim.first, claim.second))
        return JudgedClaim(claim, chances(claim, reports), chances(claim, again) if known else None)

    judged = [judge(claim) for claim in claims]
    ranking = None
    if len(studies) > 2:
        ranking = agreement(ranks, reports, many, paired=bool(common), subsets=subsets, seed=seed)
    return Stability(
        budgets=many,
        half=half,
        sure=sure,
        claims=tuple(judged),
        found=tuple(
            _found(one, drawn, many, half, len(few)) for one, drawn in zip(studies, draws, strict=True)
        ),
        ranking=ranking,
        paired=bool(common),
        common=common,
    )


def aligned(studies: Sequence[ScoredPool]) -> tuple[list[ScoredPool], tuple[str, ...]]:
    """Return the studies, and the parameters in which they agree; paired ones with the trials that all have.

    Studies are paired where the trials of one number have the same value of a parameter in all of them, and
    that value differs from trial to trial.

    Raises:
        InputError: too few trials have ended in all of the paired studies.
    """
    shared = set.intersection(*({name for values in one.values for name in values} for one in studies))
    numbers = set.intersection(*(set(one.trial.tolist()) for one in studies))
    rows = [[row for row, trial in enumerate(one.trial.tolist()) if trial in numbers] for one in studies]
    columns = [[one.values[row] for row in own] for one, own in zip(studies, rows, strict=True)]
    common = tuple(sorted(name for name in shared if _is_shared(name, columns)))
    if len(studies) < 2 or not common:
        return list(studies), ()
    names = ", ".join(one.study for one in studies)
    refuse_few(len(numbers), f"{len(numbers)} trials besides the defaults have ended in all of {names}")
    return [one.some(np.array(own)) for one, own in zip(studies, rows, strict=True)], common


def _comparable(scores: Sequence[Floats]) -> list[Floats]:
    """Return scores of which those are equal that differ by rounding alone: means over seeds are rounded."""
    everything = np.concatenate(scores)
    return [without_rounding(one, everything) for one in scores]


def _is_shared(name: str, columns: Sequence[Sequence[Values]]) -> bool:
    by_number = [{repr(values.get(name)) for values in together} for together in zip(*columns, strict=True)]
    return all(len(found) == 1 for found in by_number) and len(set.union(set(), *by_number)) > 1


def stable_from(chances: Floats, budgets: Ints, half: int) -> int | None:
    """Return the smallest budget, at most `half`, from which on all chances are 95 % or more; else None."""
    holds = np.logical_and.accumulate((chances >= LEVEL - 1e-12)[::-1])[::-1]
    there = np.flatnonzero(holds & (budgets <= half))
    return int(budgets[there[0]]) if len(there) else None


def drawn_pools(count: int, place: int, seed: int) -> Ints:
    """Return the pool itself, and pools drawn from it with replacement, (1 + POOLS, count)."""
    rng = np.random.default_rng([seed % 2**64, place])
    return np.vstack([np.arange(count), rng.integers(count, size=(POOLS, count))])


def _found(study: ScoredPool, drawn: Ints, budgets: Ints, half: int, most: int) -> Found:
    ranks = ranks_of(study.select)
    weights = chosen_weights(ranks, budgets, drawn)
    beats = None
    if np.isfinite(study.untrained):
        beats = Series.of(weights @ (study.report > study.untrained).astype(float), most)
    parts = share = luck = None
    if len(study.again):
        alike = chosen_weights(ranks, np.array([1]), drawn)
        pools = found_parts(weights, alike, study.report, study.again)
        total = pools.sum(axis=-1)
        shares = np.divide(pools[..., 0], total, out=np.full_like(total, np.nan), where=total > 0)
        parts, share = pools[0], Series.of(shares, most)
        luck = Series.of(selection_luck(weights, alike, study.report, study.again), most)
    return Found(
        study=study,
        score=Series.of(weights @ study.report, most),
        optimism=Series.of(weights @ (study.select - study.report), most),
        beats_untrained=beats,
        beats_from=None if beats is None else stable_from(beats.value, budgets, half),
        parts=parts,
        search_share=share,
        luck=luck,
    )
