"""How sure the chance of a claim is, and how often a claim without truth is stable."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from contrasweep.tuning.stability.analysis import Series, analyse, stable_from
from contrasweep.tuning.stability.claims import claims_of
from contrasweep.tuning.stability.page import write_page
from contrasweep.tuning.stability.table import claim_rows, interval_rows, other_seed_rows, sentences
from contrasweep.tuning.stability.win_probabilities import (
    outcome_of,
    outcomes_without_one,
    pools_without_one,
    ranks_of,
)
from contrasweep.tuning.statistics import share_interval
from tests.stability.invented import Array, tried

COUNT = 24


def side(scores: Array) -> tuple[Array, Array]:
    return ranks_of(scores), scores


def invented(budgets: list[int]):
    rng = np.random.default_rng(0)
    pools = [tried(name, rng.normal(size=COUNT), again=rng.normal(size=(1, COUNT))) for name in ("a", "b")]
    return analyse(pools, claims_of((), [("a-study", "a"), ("b-study", "b")]), budgets, subsets=100, seed=0)


@pytest.mark.parametrize("paired", [True, False])
def test_pools_without_one_are_searches_of_the_others(paired: bool) -> None:
    rng = np.random.default_rng(2)
    # Of equal scores, the earliest is chosen.
    a, b = np.round(rng.normal(size=(2, 9)), 0)
    assert len(set(a)) < 9
    budgets = np.array([1, 2, 3, 8])
    found = outcomes_without_one(side(a), side(b), budgets, paired=paired)
    assert len(found) == (1 if paired else 2)
    for place, kept in enumerate(pools_without_one(9)):
        both = outcome_of(side(a[kept]), side(b[kept] if paired else b), budgets, paired=paired)
        assert found[0].above[place] == pytest.approx(both.above[0])
        assert found[0].tied[place] == pytest.approx(both.tied[0])


def test_intervals_of_one_trial_are_those_of_the_jackknife() -> None:
    """With one trial each, the chance is that of a random pair: the statistic of Mann and Whitney."""
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(2, 10)) + np.array([[0.5], [0.0]])
    budgets = np.array([1, 2, 5])
    whole = outcome_of(side(a), side(b), budgets, paired=False)
    without = outcomes_without_one(side(a), side(b), budgets[:1], paired=False)
    found = Series.of_chances(whole.above[0], [one.above for one in without])
    above = a[:, None] > b
    error = np.sqrt(sum(above.mean(axis=axis).var(ddof=1) / 10 for axis in (0, 1)))
    ends = share_interval(above.mean(), error, 9)
    assert (found.value[0], found.low[0], found.high[0]) == pytest.approx((above.mean(), *ends))
    assert np.isnan([found.low[1:], found.high[1:]]).all()


def test_intervals_end_at_a_sixth_of_the_pool() -> None:
    found = invented([1, 2, 4, 8, 12, COUNT])
    claim, study = found.claims[0], found.found[0]
    assert claim.elsewhere is not None
    assert study.search_share is not None
    for one in (claim.here.above, claim.here.below, claim.elsewhere.above, study.score, study.search_share):
        assert np.isfinite([one.low, one.high])[:, :3].all()
        assert np.isnan([one.low, one.high])[:, 3:].all()
    assert list(interval_rows(found)[0]) == ["claim", "1", "2", "4"]
    row = other_seed_rows(found)[0]
    assert ["(" in row[str(budget)] for budget in found.budgets] == [True] * 3 + [False] * 3
    assert any("up to 4 trials, a sixth of the pool" in line for line in sentences(found))


def test_intervals_of_one_trial_are_those_of_a_mean_and_of_a_share() -> None:
    """With one trial, the found score is the mean of the pool; the other seed adds 10 to each score."""
    scores = np.random.default_rng(0).normal(size=(2, 48))
    pools = [tried(name, own, again=own[None] + 10) for name, own in zip("ab", scores, strict=True)]
    claims = claims_of((), [("a-study", "a"), ("b-study", "b")])
    for one, own in zip(analyse(pools, claims, [1], subsets=100, seed=0).found, scores, strict=True):
        half = 1.96 * own.std() / 48**0.5
        ends = own.mean() - half, own.mean() + half
        assert (one.score.low[0], one.score.high[0]) == pytest.approx(ends, abs=0.15 * half)
        assert one.search_share is not None
        # The variance of two seeds that are 10 apart is 50; single runs have no noise.
        assert one.search_share.value[0] == pytest.approx(own.var() / (own.var() + 50))


def test_a_page_of_larger_budgets_alone_has_no_intervals(tmp_path: Path) -> None:
    found = invented([12, COUNT])
    assert interval_rows(found) == []
    assert len(claim_rows(found)) == 1
    for name in ("page.html", "page.md"):
        write_page(found, tmp_path / name, "command")
        assert "interval of this probability" not in (tmp_path / name).read_text(encoding="utf-8")


def test_intervals_cover_chances_that_are_high() -> None:
    """Of 300 pools; the percentiles of drawn pools cover in 257."""
    rng = np.random.default_rng(7)
    budgets = np.array([4])
    best = rng.normal(size=(2, 100_000, 4)).max(axis=2) + np.array([[1.2], [0.0]])
    truth = np.mean(best[0] > best[1])
    covered = 0
    for _ in range(300):
        sides = [side(one) for one in rng.normal(size=(2, COUNT)) + np.array([[1.2], [0.0]])]
        without = outcomes_without_one(*sides, budgets, paired=False)
        value = outcome_of(*sides, budgets, paired=False).above[0]
        found = Series.of_chances(value, [one.above for one in without])
        covered += int(found.low[0] <= truth <= found.high[0])
    assert covered >= 0.92 * 300


def test_equal_methods_are_seldom_stable_early() -> None:
    """What `FALSE_RATE` says: 5 to 13 % by half of the pool, 3.5 % at most by a third."""
    rng = np.random.default_rng(7)
    budgets, half = np.array([1, 2, 4, 8, 12, COUNT]), COUNT // 2
    found = []
    for a, b in rng.normal(size=(400, 2, COUNT)):
        outcome = outcome_of(side(a), side(b), budgets, paired=False)
        found += [stable_from(one[0], budgets, half) for one in (outcome.above, outcome.below)]
    stable = np.array([one for one in found if one is not None])
    assert 0.05 < len(stable) / 400 < 0.13
    assert np.mean(np.isin(stable, [1, 2, 4, 8])) * len(stable) / 400 < 0.035


def test_intervals_of_shares_lie_between_0_and_1() -> None:
    shares, errors = zip(*itertools.product((0.0, 0.02, 0.5, 0.99, 1.0), (0.0, 1e-9, 0.1, 0.5)), strict=True)
    low, high = share_interval(np.array(shares), np.array(errors), 23)
    assert ((low >= 0) & (high <= 1) & (low <= high)).all()
    low, high = share_interval(np.array([0.9]), np.array([0.05]), 47)
    assert (0.9 - low) > 2 * (high - 0.9)
