"""Exact chances over all subsets of a pool: which configuration a search of n trials chooses, and who wins.

A search of n trials is a subset of n configurations of a pool of N, drawn without replacement; the mean over
all of them is the unbiased estimate for a random search (Tang et al. 2020). It chooses the configuration with
the highest score on the selecting half; of equal ones the earliest. How often a configuration is chosen is a
quotient of binomial coefficients, and so is how often two methods choose a given pair.

Arrays have a leading axis of pools: the pool itself, or pools drawn from it with replacement.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from contrasweep.tuning.sensitivity.budget import best_weights
from contrasweep.tuning.statistics import Floats, Ints


@dataclass(frozen=True)
class Outcome:
    """The chances that A's found score is above, equal to and below that of B, (pools, budgets) each."""

    above: Floats
    tied: Floats

    @property
    def below(self) -> Floats:
        """The chance that B's is above A's."""
        return np.asarray(1.0 - self.above - self.tied)


def ranks_of(select: Floats) -> Ints:
    """Return the place of each configuration from the worst (0) to the one that is chosen from all, (n,)."""
    order = np.lexsort((-np.arange(len(select)), select))
    ranks = np.empty(len(select), dtype=np.int64)
    ranks[order] = np.arange(len(select))
    return ranks


def chosen_weights(ranks: Ints, budgets: Ints, drawn: Ints) -> Floats:
    """Return the chance that each configuration is the chosen one, (pools, budgets, n).

    Args:
        ranks: of `ranks_of`, (n,).
        budgets: how many are drawn, each at most the size of a pool.
        drawn: the configurations in each pool, with repetitions, (pools, n).
    """
    pools, count = drawn.shape
    by_place = best_weights(count, budgets).T
    order = np.argsort(ranks[drawn], axis=1, kind="stable")
    in_order = np.take_along_axis(drawn, order, axis=1)
    found = np.zeros((pools, len(budgets), len(ranks)))
    pool = np.arange(pools)[:, None]
    for place in range(len(budgets)):
        np.add.at(found[:, place], (pool, in_order), by_place[place])
    return found


def independent_outcome(first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Outcome:
    """Return who wins where each method draws a subset of its own.

    Args:
        first, second: of each method, the chances of `chosen_weights`, and the report scores, (n,).
    """
    (own, mine), (other, yours) = first, second
    above = (mine[:, None] > yours[None, :]).astype(float)
    tied = (mine[:, None] == yours[None, :]).astype(float)
    return Outcome(*(((own @ table) * other).sum(axis=-1) for table in (above, tied)))


def paired_outcome(
    first: tuple[Ints, Floats], second: tuple[Ints, Floats], budgets: Ints, drawn: Ints
) -> Outcome:
    """Return who wins where both methods draw the same configuration numbers.

    A chooses i and B chooses j where i and j are drawn, and all others are worse than i for A and worse than
    j for B: from m such others, n - 2 are drawn (n - 1 where i = j).

    Args:
        first, second: of each method, the ranks and the report scores, (n,).
        budgets: how many are drawn, each at most the size of a pool.
        drawn: the numbers in each pool, with repetitions, (pools, n).
    """
    count = drawn.shape[1]
    apart, same = (_log_ratio(count, budgets, less) for less in (2, 1))
    above, tied = (np.zeros((len(drawn), len(budgets))) for _ in range(2))
    for place, rows in enumerate(drawn):
        worse = [_worse(ranks[rows]) for ranks, _ in (first, second)]
        others = (worse[0].astype(np.float32) @ worse[1].T.astype(np.float32)).astype(np.int64)
        possible = worse[0] & worse[1].T
        mine, yours = first[1][rows][:, None], second[1][rows][None, :]
        for total, wins in ((above, mine > yours), (tied, mine == yours)):
            pairs = np.bincount(others[possible & wins], minlength=count)
            alone = np.bincount(others.diagonal()[wins.diagonal()], minlength=count)
            total[place] = pairs @ apart + alone @ same
    return Outcome(above, tied)


Side = tuple[Ints, Floats]
"""The ranks of a method's configurations (`ranks_of`) and their report scores, (n,) each."""


def whole_pool(count: int) -> Ints:
    """Return the pool itself, as the only one, (1, count)."""
    return np.arange(count)[None]


def pools_without_one(count: int) -> Ints:
    """Return the pools that lack one configuration each, (count, count - 1)."""
    place = np.arange(count - 1)
    return np.asarray(place + (place >= np.arange(count)[:, None]))


def outcome_of(first: Side, second: Side, budgets: Ints, *, paired: bool) -> Outcome:
    """Return who wins in the given pools, (1, budgets)."""
    if paired:
        return paired_outcome(first, second, budgets, whole_pool(len(first[0])))
    return independent_outcome(*((_chosen(one, budgets), one[1]) for one in (first, second)))


def outcomes_without_one(first: Side, second: Side, budgets: Ints, *, paired: bool) -> list[Outcome]:
    """Return who wins without one configuration each, (n, budgets): of paired pools, or else of each pool.

    Args:
        first, second: the methods.
        budgets: how many are drawn, each below the size of a pool.
        paired: whether both draw the same numbers, which are one sample then.
    """
    if paired:
        return [_paired_without_one(first, second, budgets)]
    whole = [(_chosen(one, budgets), one[1]) for one in (first, second)]
    less = [
        (chosen_weights(one[0], budgets, pools_without_one(len(one[0]))), one[1]) for one in (first, second)
    ]
    return [independent_outcome(less[0], whole[1]), independent_outcome(whole[0], less[1])]


def _paired_without_one(first: Side, second: Side, budgets: Ints) -> Outcome:
    """Return `paired_outcome` of all pools that lack one configuration each, (n, budgets).

    The numbers that are worse than i for A and worse than j for B are counted once. Without k, they are one
    fewer where k is among them, and pairs with k itself are gone. So all n pools take one product of
    matrices for each budget, and not one each.
    """
    count = len(first[0])
    worse = [_worse(ranks).astype(float) for ranks, _ in (first, second)]
    others = (worse[0] @ worse[1].T).astype(np.int64)
    possible = (worse[0] > 0) & (worse[1].T > 0)
    # A pair of a pool of n - 1 has at most n - 2 others, so what stands behind them is not used.
    apart, same = (np.pad(_log_ratio(count - 1, budgets, less), ((0, 1), (0, 0))) for less in (2, 1))
    mine, yours = first[1][:, None], second[1][None, :]
    above, tied = (np.zeros((count, len(budgets))) for _ in range(2))
    for total, wins in ((above, mine > yours), (tied, mine == yours)):
        for place in range(len(budgets)):
            now, then = (
                np.where(possible & wins, apart[left, place], 0.0)
                + np.diag(np.where(wins.diagonal(), same[left.diagonal(), place], 0.0))
                for left in (others, np.maximum(others - 1, 0))
            )
            without = now.sum() - now.sum(axis=0) - now.sum(axis=1) + now.diagonal()
            total[:, place] = without + ((worse[0].T @ (then - now)) * worse[1].T).sum(axis=1)
    return Outcome(above, tied)


def _chosen(side: Side, budgets: Ints) -> Floats:
    return chosen_weights(side[0], budgets, whole_pool(len(side[0])))


def _worse(ranks: Ints) -> np.ndarray:
    """Return whether k is worse than i, (i, k); of two copies of one configuration, the later one is."""
    place = ranks_of(ranks.astype(float))
    return place[None, :] < place[:, None]


def _log_ratio(count: int, budgets: Ints, less: int) -> Floats:
    """Return C(m, n - less) / C(count, n) for m = 0 .. count - 1 and each budget n, (count, budgets)."""
    m = np.arange(count)[:, None].astype(float)
    n = budgets[None, :].astype(float)
    wanted = n - less
    possible = (wanted >= 0) & (m >= wanted)
    inside = np.where(possible, wanted, 0)
    logs = gammaln(m + 1) - gammaln(inside + 1) - gammaln(m - inside + 1)
    logs = logs - (gammaln(count + 1) - gammaln(n + 1) - gammaln(count - n + 1))
    return np.asarray(np.where(possible, np.exp(logs), 0.0))
