"""The variance of a found score, split by its sources."""

import numpy as np
import pytest

from contrasweep.tuning.stability.variance import found_parts, selection_luck, variance_parts
from contrasweep.tuning.stability.win_probabilities import chosen_weights, ranks_of, whole_pool
from contrasweep.tuning.statistics import Floats

COUNT = 48
BUDGETS = np.array([1, 4, 16, 24])
ALIKE = np.full(COUNT, 1 / COUNT)


def test_variance_is_split_as_it_was_made() -> None:
    rng = np.random.default_rng(1)
    search, seed, rest = (
        rng.normal(scale=s, size=n) for s, n in ((2.0, (1, 4000)), (1.0, (40, 1)), (0.5, (40, 4000)))
    )
    parts = variance_parts(np.full(4000, 1 / 4000), search + seed + rest)
    assert parts == pytest.approx([4.0, 1.0, 0.25], rel=0.35)
    assert parts[2] == pytest.approx(0.25, rel=0.02)
    one = np.zeros(4000)
    one[7] = 1
    assert np.isnan(variance_parts(one, search + seed + rest)).all()


def test_a_part_that_is_not_there_is_zero() -> None:
    scores = np.array([[0.1, 0.2, 0.3, 0.4]] * 2)
    assert variance_parts(np.full(4, 0.25), scores) == pytest.approx([np.var(scores[0]), 0, 0])


def found_in(rng: np.random.Generator, others: int) -> tuple[Floats, Floats, Floats]:
    """Return the parts, the luck and the true variance between the chosen configurations of one pool.

    Configurations and single runs have a standard deviation of 0.02; a seed adds nothing to all.
    """
    configurations = rng.normal(scale=0.02, size=COUNT)
    scores = configurations + rng.normal(scale=0.02, size=(1 + others, COUNT))
    weights = chosen_weights(ranks_of(scores[0]), BUDGETS, whole_pool(COUNT))[0]
    given = (weights, ALIKE, scores[0], scores[1:])
    truth = weights @ configurations**2 - (weights @ configurations) ** 2
    return found_parts(*given), selection_luck(*given), truth


@pytest.mark.parametrize(("others", "error"), [(1, 0.15), (2, 0.1)])
def test_luck_of_the_seed_that_selects_is_no_effect_of_the_seed(others: int, error: float) -> None:
    """Root mean squares of 200 pools: with the selecting seed as any other, `seed` is 0.018 at 16 trials."""
    rng = np.random.default_rng(3)
    parts, luck, truth = (
        np.array(one) for one in zip(*(found_in(rng, others) for _ in range(200)), strict=True)
    )
    search, seed, rest = np.sqrt(parts.mean(axis=0)).T
    assert (seed < 0.003).all()
    assert search == pytest.approx(np.sqrt(truth.mean(axis=0)), rel=error)
    assert rest == pytest.approx(np.full(len(BUDGETS), 0.02), rel=error)
    assert luck[:, 0] == pytest.approx(np.zeros(200), abs=1e-12)
    assert luck.mean(axis=0)[2] > 0.02


def test_two_other_seeds_split_the_variance_by_themselves() -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(3, COUNT))
    weights = rng.dirichlet(np.ones(COUNT))
    search, _, rest = found_parts(weights, ALIKE, scores[0], scores[1:])
    own = variance_parts(weights, scores[1:])
    assert (search, rest) == pytest.approx((own[0], own[2]))


def test_the_seed_counts_with_all_configurations_and_luck_without_it() -> None:
    """The first seed adds 0.05 to all, and 0.1 to the one that is always chosen."""
    again = np.linspace(0, 1, COUNT)
    first = again + 0.05
    first[-1] += 0.1
    always = np.eye(COUNT)[-1]
    assert selection_luck(always, ALIKE, first, again[None]) == pytest.approx(0.1 * (1 - 1 / COUNT))
    assert np.isnan(found_parts(always, ALIKE, first, again[None])[[0, 2]]).all()
    even = found_parts(ALIKE, ALIKE, again + 0.05, again[None])
    assert even == pytest.approx([again.var(), 0.05**2 / 2, 0])


def test_configurations_without_a_score_on_some_seed_do_not_count() -> None:
    scores = np.random.default_rng(1).normal(size=(3, COUNT))
    scores[2, :8] = np.nan
    known = slice(8, None)
    everything = found_parts(ALIKE, ALIKE, scores[0], scores[1:])
    assert everything == pytest.approx(
        found_parts(ALIKE[known], ALIKE[known], scores[0, known], scores[1:, known])
    )
    gap = selection_luck(np.eye(COUNT)[9], ALIKE, scores[0], scores[1:])
    assert gap == pytest.approx(
        selection_luck(np.eye(COUNT)[9, known], ALIKE[known], scores[0, known], scores[1:, known])
    )
