"""The exact chances against all subsets, one by one."""

import itertools

import numpy as np
import pytest

from contrasweep.tuning.stability.win_probabilities import (
    chosen_weights,
    independent_outcome,
    paired_outcome,
    ranks_of,
)

COUNT = 7
BUDGETS = np.array([1, 2, 3, 5, 7])
ITSELF = np.arange(COUNT)[None, :]


def scores(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return select and report scores with ties in both."""
    rng = np.random.default_rng(seed)
    return rng.integers(4, size=COUNT) / 4, rng.integers(4, size=COUNT) / 4


def chosen(select: np.ndarray, subset: tuple[int, ...]) -> int:
    return max(subset, key=lambda row: (select[row], -row))


@pytest.mark.parametrize("seed", range(4))
def test_chances_of_being_chosen_are_shares_of_all_subsets(seed: int) -> None:
    select, _ = scores(seed)
    weights = chosen_weights(ranks_of(select), BUDGETS, ITSELF)[0]
    for place, budget in enumerate(BUDGETS):
        subsets = list(itertools.combinations(range(COUNT), budget))
        counts = np.bincount([chosen(select, one) for one in subsets], minlength=COUNT)
        assert weights[place] == pytest.approx(counts / len(subsets))


@pytest.mark.parametrize("seed", range(4))
def test_paired_outcomes_are_shares_of_all_common_subsets(seed: int) -> None:
    (mine, own), (yours, other) = scores(seed), scores(seed + 100)
    outcome = paired_outcome((ranks_of(mine), own), (ranks_of(yours), other), BUDGETS, ITSELF)
    for place, budget in enumerate(BUDGETS):
        subsets = list(itertools.combinations(range(COUNT), budget))
        differences = np.array([own[chosen(mine, one)] - other[chosen(yours, one)] for one in subsets])
        assert outcome.above[0, place] == pytest.approx((differences > 0).mean())
        assert outcome.tied[0, place] == pytest.approx((differences == 0).mean())
        assert outcome.below[0, place] == pytest.approx((differences < 0).mean())


@pytest.mark.parametrize("seed", range(2))
def test_independent_outcomes_are_shares_of_all_pairs_of_subsets(seed: int) -> None:
    (mine, own), (yours, other) = scores(seed), scores(seed + 100)
    weights = [chosen_weights(ranks_of(select), BUDGETS, ITSELF) for select in (mine, yours)]
    outcome = independent_outcome((weights[0], own), (weights[1], other))
    for place, budget in enumerate(BUDGETS):
        subsets = list(itertools.combinations(range(COUNT), budget))
        first = np.array([own[chosen(mine, one)] for one in subsets])
        second = np.array([other[chosen(yours, one)] for one in subsets])
        above = (first[:, None] > second[None, :]).mean()
        assert outcome.above[0, place] == pytest.approx(above)


def test_swapping_the_methods_swaps_the_chances() -> None:
    first, second = ((ranks_of(select), report) for select, report in (scores(1), scores(2)))
    one, other = (paired_outcome(*sides, BUDGETS, ITSELF) for sides in ((first, second), (second, first)))
    assert other.above == pytest.approx(1 - one.above - one.tied)
    assert other.tied == pytest.approx(one.tied)


def test_a_drawn_pool_is_the_pool_of_its_configurations() -> None:
    select, report = np.array([0.1, 0.9, 0.5, 0.7]), np.array([0.2, 0.8, 0.6, 0.4])
    other = np.array([0.5, 0.5, 0.1, 0.9])
    drawn, budgets = np.array([[2, 2, 0, 3]]), np.array([1, 2, 3])
    weights = chosen_weights(ranks_of(select), budgets, drawn)
    assert weights[0, 0] == pytest.approx([0.25, 0, 0.5, 0.25])
    copied = tuple(values[drawn[0]] for values in (select, report, other))
    first = paired_outcome((ranks_of(select), report), (ranks_of(other), other), budgets, drawn)
    second = paired_outcome(
        (ranks_of(copied[0]), copied[1]), (ranks_of(copied[2]), copied[2]), budgets, np.arange(4)[None, :]
    )
    assert first.above == pytest.approx(second.above)
    assert first.tied == pytest.approx(second.tied)
