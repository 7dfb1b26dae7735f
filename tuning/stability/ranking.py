"""How well searches of n trials rank methods as their whole pools do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from contrasweep.tuning.statistics import Floats, Ints, percentile_interval

AT_ONCE: Final = 2_000
"""Subsets that are drawn together: bounds memory."""


@dataclass(frozen=True)
class Agreement:
    """Kendall's tau of the methods' ranking at a budget with their ranking by the whole pools.

    A pair of methods counts +1 where both rankings order it alike, -1 where they do not, 0 where one of them
    has a tie (Kendall's tau-a). Ranks are of the report scores of the chosen configurations. A tie in the
    ranking by the whole pools keeps tau below 1, at `most`.

    Attributes:
        tau: the mean over subsets, (budgets,).
        error: the standard error of that mean from the number of subsets.
        low, high: between which 95 % of the subsets lie.
        same: the share of the subsets with the very same ranking.
        subsets: their number.
        tied: how many pairs of methods tie by the whole pools.
        most: the largest tau that there can be.
    """

    tau: Floats
    error: Floats
    low: Floats
    high: Floats
    same: Floats
    subsets: int
    tied: int
    most: float


def agreement(
    ranks: Sequence[Ints], reports: Sequence[Floats], budgets: Ints, *, paired: bool, subsets: int, seed: int
) -> Agreement:
    """Draw subsets of the pools and compare the rankings.

    Args:
        ranks: `win_probabilities.ranks_of` of each method.
        reports: the report scores of each method.
        budgets: how many configurations are drawn.
        paired: whether all methods draw the same numbers.
        subsets: how often.
        seed: of the draws.
    """
    rng = np.random.default_rng([seed % 2**64, 1])
    whole = _orders(np.array([report[np.argmax(own)] for own, report in zip(ranks, reports, strict=True)]))
    taus, same = [], []
    for first in range(0, subsets, AT_ONCE):
        count = min(AT_ONCE, subsets - first)
        orders = _orders(_found_scores(ranks, reports, budgets, paired, count, rng))
        taus.append((orders * whole).mean(axis=-1))
        same.append((orders == whole).all(axis=-1))
    tau = np.concatenate(taus)
    low, high = percentile_interval(tau)
    return Agreement(
        tau=tau.mean(axis=0),
        error=tau.std(axis=0, ddof=1) / np.sqrt(subsets),
        low=low,
        high=high,
        same=np.concatenate(same).mean(axis=0),
        subsets=subsets,
        tied=int(np.count_nonzero(whole == 0)),
        most=float(np.mean(whole != 0)),
    )


def _found_scores(
    ranks: Sequence[Ints],
    reports: Sequence[Floats],
    budgets: Ints,
    paired: bool,
    count: int,
    rng: np.random.Generator,
) -> Floats:
    """Return the report score of what each method's search finds, (count, budgets, methods)."""
    found: list[Floats] = []
    order = _permutations(len(ranks[0]), count, rng)
    for own, report in zip(ranks, reports, strict=True):
        if found and not paired:
            order = _permutations(len(own), count, rng)
        # The first n of a random order are a random subset of n, and smaller ones lie within larger ones.
        best = np.maximum.accumulate(own[order], axis=1)[:, budgets - 1]
        by_rank = np.empty(len(own))
        by_rank[own] = report
        found.append(by_rank[best])
    return np.stack(found, axis=-1)


def _permutations(size: int, count: int, rng: np.random.Generator) -> Ints:
    return np.argsort(rng.random((count, size)), axis=1)


def _orders(scores: Floats) -> Floats:
    """Return the sign of the difference of each pair of methods, (..., pairs)."""
    first, second = np.triu_indices(scores.shape[-1], k=1)
    return np.asarray(np.sign(scores[..., first] - scores[..., second]))
