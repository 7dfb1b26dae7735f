"""The error rates of verdicts, on simulated runs whose truth is known."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from contrasweep.tuning.tables.evidence import ERROR, against_and_for, judge_each, leave_one_out, mean_beyond
from contrasweep.tuning.tables.statements import (
    All,
    Extremum,
    Quantity,
    Statement,
    arithmetic,
    compare_sides,
    constant,
    either,
    every,
)

SIMULATIONS = 4_000
# Three standard errors of a rate of 5 % over that many simulations.
NOISE = 3 * (ERROR * (1 - ERROR) / SIMULATIONS) ** 0.5


def simulated(means: Sequence[float], seeds: int, noise: str = "normal") -> list[Quantity]:
    """Return rows with these true means, each simulated many times; runs of a seed share half their noise."""
    generator = np.random.default_rng(7)
    shape = (len(means), SIMULATIONS, seeds)
    drawn = {"normal": generator.standard_normal, "heavy": lambda size: generator.standard_t(4, size)}[noise]
    own: NDArray[np.float64] = drawn(shape) + drawn(shape[1:])
    runs = own + np.array(means)[:, None, None]
    weights = leave_one_out(seeds)
    return [Quantity(f"r{place}", (row @ weights.T).ravel(), margin=0.1) for place, row in enumerate(runs)]


def pair(rows: Sequence[Quantity]) -> Statement:
    return compare_sides(">", rows[0], rows[1])


def best(rows: Sequence[Quantity]) -> Statement:
    return compare_sides(">", rows[0], Extremum(True, tuple(rows[1:])))


def order(rows: Sequence[Quantity]) -> Statement:
    return All(tuple(compare_sides(">", *two) for two in pairwise(rows)))


def trend(rows: Sequence[Quantity]) -> Statement:
    steps = [compare_sides("<=", *two) for two in pairwise(rows)]
    return All((*steps, compare_sides("<", rows[0], rows[-1])))


def one_of_them(rows: Sequence[Quantity]) -> Statement:
    return compare_sides(">", Extremum(True, tuple(rows[1:])), rows[0])


def within(bound: float) -> Callable[[Sequence[Quantity]], Statement]:
    def spread(rows: Sequence[Quantity]) -> Statement:
        gap = arithmetic("-", Extremum(True, tuple(rows)), Extremum(False, tuple(rows)))
        return compare_sides("<=", gap, constant(bound))

    return spread


def rates(statement: Statement, seeds: int) -> tuple[float, float]:
    """Return how often the statement is supported, and how often it is contradicted."""
    false, true = against_and_for(statement, seeds)
    assert false.shape == (SIMULATIONS,)
    return float((false <= ERROR).mean()), float((true <= ERROR).mean())


@pytest.mark.parametrize("noise", ["normal", "heavy"])
@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize(("claim", "rows"), [(pair, 2), (best, 6), (order, 5), (trend, 5), (one_of_them, 6)])
def test_equal_rows_are_called_different_in_one_case_of_twenty_at_most(
    claim: Callable[[Sequence[Quantity]], Statement], rows: int, seeds: int, noise: str
) -> None:
    supported, contradicted = rates(claim(simulated([0.0] * rows, seeds, noise)), seeds)
    assert supported <= ERROR + NOISE
    assert contradicted <= ERROR + NOISE


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_a_bound_that_is_just_reached_holds_and_fails_in_one_case_of_twenty_at_most(seeds: int) -> None:
    supported, contradicted = rates(within(2.0)(simulated([0.0, 1.0, 2.0], seeds)), seeds)
    assert supported <= ERROR + NOISE
    assert contradicted <= ERROR + NOISE


@pytest.mark.parametrize(("claim", "rows"), [(pair, 2), (best, 6), (order, 5)])
def test_differences_of_three_deviations_are_found_by_ten_seeds(
    claim: Callable[[Sequence[Quantity]], Statement], rows: int
) -> None:
    means = [3.0 * (rows - place) for place in range(rows)]
    assert rates(claim(simulated(means, 10)), 10)[0] > 0.9
    assert rates(claim(simulated(means[::-1], 10)), 10)[1] > 0.9


def test_the_jackknife_of_a_difference_is_the_paired_test() -> None:
    from scipy import stats

    one, other = np.array([3.0, 5.0, 4.0, 8.0, 6.0]), np.array([2.0, 5.5, 3.0, 6.0, 4.0])
    weights = leave_one_out(5)
    statement = compare_sides(">", Quantity("a", weights @ one), Quantity("b", weights @ other))
    false, true = against_and_for(statement, 5)
    expected = stats.ttest_rel(one, other, alternative="greater").pvalue
    assert false[0] == pytest.approx(expected)
    assert true[0] == pytest.approx(1 - expected)


@pytest.mark.parametrize(
    ("gaps", "margin", "finding"),
    [
        ([1.0, 1.2, 0.9, 1.1, 1.0], 0.5, "supports"),
        ([-1.0, -1.2, -0.9, -1.1, -1.0], 0.5, "contradicts"),
        ([0.1, -0.1, 0.05, 0.0, -0.05], 0.5, "equal"),
        ([0.1, -0.1, 0.05, 0.0, -0.05], 0.01, "undecided"),
        ([2.0, -2.0, 1.0, -1.0, 0.0], 0.5, "undecided"),
        # The interval reaches over one side of the margin alone.
        ([-1.2, 0.1, -0.6, 0.2, -0.4], 0.5, "undecided"),
        ([1.2, -0.1, 0.6, -0.2, 0.4], 0.5, "undecided"),
        ([0.0] * 5, 0.5, "equal"),
        ([0.3] * 5, 0.5, "supports"),
    ],
)
def test_a_comparison_is_found_true_false_equal_or_open(
    gaps: list[float], margin: float, finding: str
) -> None:
    weights = leave_one_out(5)
    one = Quantity("a", weights @ np.array(gaps) + 50.0, margin=margin)
    (found,) = judge_each(compare_sides(">", one, Quantity("b", np.full(6, 50.0), margin=margin)), 5)
    assert found.finding == finding
    assert found.margin == pytest.approx(np.mean(gaps))
    assert found.text == "a > b"


def test_two_cells_are_equal_where_the_interval_of_90_percent_lies_within_the_margin() -> None:
    from scipy import stats

    gaps = np.array([0.3, -0.1, 0.2, 0.0, -0.2])
    low, high = stats.t.interval(0.9, 4, gaps.mean(), stats.sem(gaps))
    weights = leave_one_out(5)
    for margin, finding in ((high + 1e-6, "equal"), (high - 1e-6, "undecided")):
        one, other = (
            Quantity(name, weights @ own, margin=margin) for name, own in (("a", gaps), ("b", 0 * gaps))
        )
        (found,) = judge_each(compare_sides(">", one, other), 5)
        assert (found.low, found.high) == pytest.approx((low, high))
        assert found.finding == finding


@pytest.mark.parametrize("level", [1.0, 1e4])
def test_equal_differences_of_all_seeds_are_judged_by_their_signs_and_have_no_interval(level: float) -> None:
    """Five scores that differ by an image of the test split do not say that all other seeds do."""
    other = level * np.array([0.901, 0.91, 0.892, 0.906, 0.9])
    weights = leave_one_out(5)
    pair = Quantity("a", weights @ (other + 0.01)), Quantity("b", weights @ other)
    for statement, side in ((compare_sides(">", *pair), 0), (compare_sides("<", *pair), 1)):
        found = against_and_for(statement, 5)
        assert (found[side][0], found[1 - side][0]) == (0.5**5, 1.0)
        (one,) = judge_each(statement, 5)
        assert one.finding == ("supports", "contradicts")[side]
        assert np.isnan([one.low, one.high]).all()
    # Facts of the data have no seeds, so there is no doubt about them.
    facts = compare_sides(">", Quantity("a", np.array([2.0])), Quantity("b", np.array([1.0])))
    assert against_and_for(facts, 5)[0].tolist() == [0.0]
    assert [(one.low, one.high) for one in judge_each(facts, 5)] == [(1.0, 1.0)]


def test_equal_differences_of_five_seeds_do_not_contradict_one_of_several_comparisons() -> None:
    weights = leave_one_out(5)
    high, low = Quantity("a", weights @ np.full(5, 0.9)), Quantity("b", weights @ np.full(5, 0.5))
    false, true = compare_sides("<", high, low), compare_sides("<", low, high)
    assert against_and_for(false, 5)[1][0] == 0.5**5
    assert against_and_for(All((false, true)), 5)[1][0] > ERROR


def test_brackets_change_no_correction_for_the_number_of_comparisons() -> None:
    """Each of k comparisons contradicts at 5 % / k, however `and` and `max` have put them together."""
    rows = simulated([0.0, 0.0, 0.0, 0.0], 5)
    pairs = [compare_sides(">", rows[0], row) for row in rows[1:]]
    flat = against_and_for(every(*pairs), 5)
    nested = against_and_for(every(every(*pairs[:2]), pairs[2]), 5)
    largest = against_and_for(every(compare_sides(">", rows[0], Extremum(True, tuple(rows[1:])))), 5)
    assert np.array_equal(flat, nested)
    assert np.array_equal(flat, largest)
    lone = against_and_for(either(*pairs), 5)
    assert np.array_equal(lone, against_and_for(either(either(*pairs[:2]), pairs[2]), 5))


def test_what_has_no_value_is_neither_supported_nor_contradicted() -> None:
    false, true = against_and_for(compare_sides(">", Quantity("a", np.full(6, np.nan)), constant(1.0)), 5)
    assert (false.tolist(), true.tolist()) == ([1.0], [1.0])


def test_rows_that_are_equal_on_every_seed_support_at_least_by_the_sign_test_and_above_not_at_all() -> None:
    """Five ties are as weak a sign of "not below" as five equal gains are of "above"."""
    same = Quantity("a", np.ones(6)), Quantity("b", np.ones(6))
    assert against_and_for(compare_sides(">=", *same), 5)[0].tolist() == [0.5**5]
    assert against_and_for(compare_sides(">", *same), 5)[0].tolist() == [1.0]
    assert judge_each(compare_sides(">=", *same), 5)[0].finding == "supports"
    fact = Quantity("a", np.ones(1)), Quantity("b", np.ones(1))
    assert against_and_for(compare_sides(">=", *fact), 5)[0].tolist() == [0.0]


@pytest.mark.parametrize("cells", [1, 6, 20])
def test_no_cell_is_said_to_have_moved_where_none_has_in_nineteen_cases_of_twenty(cells: int) -> None:
    simulations = 1_000
    gaps = np.random.default_rng(7).standard_normal((simulations, cells, 5))
    moved = [any(mean_beyond(own, 0.0, cells) for own in claim) for claim in gaps.tolist()]
    assert np.mean(moved) <= ERROR + 3 * (ERROR * (1 - ERROR) / simulations) ** 0.5
    assert mean_beyond([3.0, 3.5, 4.0, 3.2, 3.1], 0.5, cells)
