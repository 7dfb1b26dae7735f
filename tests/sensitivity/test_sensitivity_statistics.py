"""Fidelity, budgets and tests of several studies, against cases worked out by hand."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from contrasweep.tuning.sensitivity.budget import (
    BudgetCurve,
    best_error,
    best_interval,
    best_weights,
    budget_curve,
    ended_scores,
    expected_best,
)
from contrasweep.tuning.sensitivity.comparison import (
    EqualBudget,
    MeanRanks,
    StudyAtBudget,
    equal_budget,
    mean_ranks,
    method_ranks,
    method_tests,
    paired_tests,
    seed_tests,
    wins,
)
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import EpochFidelity, Fidelity, fidelity
from contrasweep.tuning.sensitivity.observations import Observations, SeedScores
from contrasweep.tuning.sensitivity.scores import stages
from tests.sensitivity.synthetic import observed, space_of

SPACE = space_of(a="unit", b="unit")


def study(trials: int = 40, **options: object) -> Observations:
    return observed(SPACE, lambda x: x["a"], trials, **options)  # type: ignore[arg-type]


def fidelity_of(one: Observations) -> Fidelity | TooFew:
    return fidelity(one, stages(one))


def with_scores(one: Observations, scores: list[float]) -> Observations:
    ending = np.where(np.isnan(scores), "failed", "completed")
    return replace(one, score=np.array(scores), ending=ending)


def test_the_best_of_two_of_three_by_hand() -> None:
    # Pairs of 1, 2, 4: the best are 2, 4, 4.
    assert np.array([1.0, 2.0, 4.0]) @ best_weights(3, np.array([1, 2, 3])) == pytest.approx(
        [7 / 3, 10 / 3, 4]
    )


def test_expected_best_is_the_mean_over_all_subsets() -> None:
    scores = np.sort(np.random.default_rng(0).normal(size=9))
    for size in (1, 3, 8):
        every = [max(subset) for subset in combinations(scores, size)]
        assert scores @ best_weights(9, np.array([size]))[:, 0] == pytest.approx(np.mean(every))


def test_weights_of_ten_thousand_trials_sum_to_one() -> None:
    weights = best_weights(10_000, np.array([1, 70, 5000, 10_000]))
    assert weights.sum(axis=0) == pytest.approx(np.ones(4), abs=1e-7)


def test_failed_trials_cost_budget_and_win_nothing() -> None:
    nan = float("nan")
    one = with_scores(study(8), [0.5, nan, 0.7, nan, 0.9, nan, 0.5, 0.6])
    assert ended_scores(one).tolist() == [0.5, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.9]
    found = budget_curve(one)
    assert isinstance(found, BudgetCurve)
    assert (found.ended, found.without_score) == (8, 3)
    assert found.trials.tolist() == [1, 2]
    assert found.expected[0] == pytest.approx(0.5875)
    assert found.seconds_a_trial == 2.0


def test_progress_is_in_the_order_of_the_ends() -> None:
    one = with_scores(study(5), [0.5, 0.9, 0.6, 0.7, 0.8])
    late = replace(one, ended=np.array([2.0, 10.0, 4.0, 6.0, 8.0]))
    found = budget_curve(late)
    assert isinstance(found, BudgetCurve)
    assert found.progress_trials.tolist() == [1, 2, 3, 4, 5]
    assert found.progress_score.tolist() == [0.5, 0.6, 0.7, 0.8, 0.9]
    assert found.progress_seconds.tolist() == [2.0, 4.0, 6.0, 8.0, 10.0]
    assert found.seconds == 10.0


def test_trials_that_still_run_have_no_part_in_a_budget() -> None:
    one = study(10)
    running = np.arange(10) >= 8
    waits = replace(
        one,
        ending=np.where(running, "running", one.ending),
        score=np.where(running, np.nan, one.score),
        seconds=np.where(running, 100.0, 2.0),
        ended=np.where(running, 500.0, one.ended),
    )
    found = budget_curve(waits)
    assert isinstance(found, BudgetCurve)
    assert (found.ended, found.without_score) == (8, 0)
    assert (found.seconds_a_trial, found.seconds) == (2.0, 16.0)


def test_a_few_trials_have_student_s_interval() -> None:
    """The bootstrap alone is half as wide, and the normal distribution seven tenths."""
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    low, high = best_interval(scores, np.array([1]))
    half = 2.7764 * scores.std(ddof=1) / 5**0.5
    assert (float(low[0]), float(high[0])) == pytest.approx((0.3 - half, 0.3 + half), abs=1e-4)


@pytest.mark.parametrize("tied", [np.inf, 0.6])
def test_intervals_at_the_largest_budget_cover_the_truth_and_equals_rarely_differ(tied: float) -> None:
    """At half of the trials, the bootstrap covers 67 %; with ties, the jackknife covers 72 % here."""

    def drawn(seed: int, *shape: int) -> NDArray[np.float64]:
        return np.minimum(np.random.default_rng(seed).normal(size=shape), tied)

    truth = drawn(0, 20_000, 10).max(axis=1).mean()
    studies = [with_scores(study(40, study=str(seed)), list(drawn(seed, 40))) for seed in range(1, 201)]
    found = [budget_curve(one) for one in studies]
    covered = [one.low[-1] <= truth <= one.high[-1] for one in found if isinstance(one, BudgetCurve)]
    assert len(covered) == 200
    assert np.mean(covered) > 0.84
    pairs = [equal_budget(pair) for pair in zip(studies[::2], studies[1::2], strict=True)]
    told = [one.differences[0] for one in pairs if isinstance(one, EqualBudget)]
    assert np.mean([one.low > 0 or one.high < 0 for one in told]) < 0.12


def test_the_smaller_of_two_studies_decides_how_well_their_difference_is_known() -> None:
    """With the degrees of freedom of both together, equal methods differed in 11 % of the pairs."""
    drawn = np.random.default_rng(0).normal(size=105)
    small, large = drawn[:5], drawn[5:]
    pair = with_scores(study(5, study="small"), list(small)), with_scores(study(100), list(large))
    found = equal_budget(pair)
    assert isinstance(found, EqualBudget)
    (one,) = found.differences
    # Budgets of one trial: the difference of two means, and Student's t with 4 degrees of freedom.
    half = 2.7764 * (small.var(ddof=1) / 5 + large.var(ddof=1) / 100) ** 0.5
    assert one.difference == pytest.approx(small.mean() - large.mean())
    assert (one.high - one.low) / 2 == pytest.approx(half, rel=1e-4)


def test_the_jackknife_leaves_out_each_score() -> None:
    scores, budgets = np.sort(np.random.default_rng(0).random(9)), np.array([1, 2])
    left_out = [expected_best(np.delete(scores, place), budgets) for place in range(9)]
    assert best_error(scores, budgets) == pytest.approx(np.sqrt(8 * np.var(left_out, axis=0)))
    # Of the mean, it is the usual standard error.
    assert best_error(scores, budgets)[0] == pytest.approx(scores.std(ddof=1) / 3)


def test_too_few_completed_trials_have_no_budget_curve() -> None:
    """With one, all others count as it: an interval would have no width."""
    assert budget_curve(study(4)) == TooFew(4, 5, "completed trials")
    nan = float("nan")
    one = with_scores(study(24), [0.9] * 4 + [nan] * 20)
    assert budget_curve(one) == TooFew(4, 5, "completed trials")
    assert equal_budget([study(24, study="whole"), one]) == TooFew(
        4, 5, f"completed trials in study {one.study}"
    )


def test_fidelity_by_hand() -> None:
    one = study(12, epochs=2)
    final = np.arange(12.0)
    early = final.copy()
    early[[0, 1]] = early[[1, 0]]
    curve = np.stack([np.zeros(12), early, final], axis=1)
    found = fidelity_of(replace(one, score=final, curve=curve))
    assert isinstance(found, Fidelity)
    first, last = found.epochs
    # One pair of 66 is in the wrong order; squared rank differences sum to 2.
    assert first.kendall == pytest.approx(1 - 2 / 66)
    assert first.spearman == pytest.approx(1 - 6 * 2 / (12 * 143))
    assert (first.best_rank, first.reached) == (1, 12)
    assert (last.spearman, last.verdict) == (pytest.approx(1.0), "safe")
    # Other trials may be in another order: neither correlation is known exactly. Of 12 trials, tau counts as
    # 1 - 1 / 66; one wrong pair of 66 counts as itself.
    half = 1.96 * (0.437 / 8) ** 0.5
    assert last.kendall_low == pytest.approx(np.tanh(np.arctanh(1 - 1 / 66) - half))
    assert first.kendall_high == pytest.approx(np.tanh(np.arctanh(1 - 2 / 66) + half))
    assert last.low < 0.99


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [
        (0.5, 0.9, "safe"),
        (0.49, 0.9, "too few to tell"),
        (0.1, 0.49, "unsafe"),
        (0.1, 0.5, "too few to tell"),
    ],
)
def test_an_epoch_is_safe_if_its_whole_interval_is(low: float, high: float, verdict: str) -> None:
    assert EpochFidelity(1, 30, 0.45, low, high, 0.3, 0.0, 0.5, 1, 30).verdict == verdict


def test_trials_that_reached_an_epoch_are_counted_whatever_became_of_them() -> None:
    one = study(30)
    ending = np.where(np.arange(30) < 12, "stopped", "completed")
    curve = np.where((np.arange(30) < 9)[:, None] & (np.arange(4) > 1), np.nan, one.curve)
    found = fidelity_of(
        replace(one, ending=ending, curve=curve, score=np.where(ending == "stopped", np.nan, one.score))
    )
    assert isinstance(found, Fidelity)
    assert [(epoch.trials, epoch.reached) for epoch in found.epochs] == [(18, 30), (18, 21), (18, 21)]


def test_unrelated_early_scores_are_unsafe() -> None:
    found = fidelity_of(study(200, early_noise=50.0))
    assert isinstance(found, Fidelity)
    assert found.epochs[0].verdict == "unsafe"
    assert found.epochs[0].low < 0 < found.epochs[0].high


def test_selection_hides_correlation_and_is_undone() -> None:
    # Two normal scores with correlation 0.8; only the trials with the better half of early scores go on.
    rng = np.random.default_rng(0)
    early = rng.normal(size=4000)
    final = 0.8 * early + 0.6 * rng.normal(size=4000)
    one = study(4000, epochs=2)
    stopped = early < 0
    curve = np.stack([np.zeros(4000), early, np.where(stopped, np.nan, final)], axis=1)
    found = fidelity_of(
        replace(
            one,
            curve=curve,
            score=np.where(stopped, np.nan, final),
            ending=np.where(stopped, "stopped", "completed"),
            rung=np.where(stopped, 1.0, np.nan),
        )
    )
    assert isinstance(found, Fidelity)
    (link,) = found.links
    assert (link.trials, link.everyone) == (int((~stopped).sum()), 4000)
    assert link.spearman < 0.65
    # Spearman's correlation of two normal scores with correlation 0.8.
    truth = 6 / np.pi * np.arcsin(0.8 / 2)
    assert link.estimated == pytest.approx(truth, abs=0.04)
    assert link.estimated_low < truth < link.estimated_high
    assert (link.verdict, found.rungs) == ("safe", (1,))


def test_fidelity_needs_ten_completed_trials() -> None:
    assert fidelity_of(study(9)) == TooFew(9, 10, "completed trials")


def test_who_wins_is_a_matter_of_all_pairs() -> None:
    first, second = np.array([1.0, 3.0, 5.0]), np.array([2.0, 3.0, 4.0])
    pairs = [(a > b) + 0.5 * (a == b) for a in first for b in second]
    assert wins(first, second, 1) == pytest.approx(np.mean(pairs))
    best = [
        (max(a) > max(b)) + 0.5 * (max(a) == max(b))
        for a in combinations(first, 2)
        for b in combinations(second, 2)
    ]
    assert wins(first, second, 2) == pytest.approx(np.mean(best))


def test_studies_are_compared_with_one_budget() -> None:
    good = replace(study(30, study="good", seed=1), score=study(30, seed=1).score + 2)
    large = study(90, study="large", seed=2)
    found = equal_budget([good, large])
    assert isinstance(found, EqualBudget)
    assert found.budget == 7
    (difference,) = found.differences
    assert difference.low > 1.8
    assert difference.wins == pytest.approx(1.0)
    assert found.unequal == ()
    other = equal_budget([good, replace(large, epochs=9)])
    assert isinstance(other, EqualBudget)
    assert "epochs" in other.unequal[0]


def test_what_makes_equal_budgets_unequal_is_told() -> None:
    one, two = study(study="one"), study(study="two", seeds=3)
    assert equal_budget_of(one, two).unequal == (
        "a trial of one has 1 seed, one of two has 3: a mean over more seeds varies less, and the best of "
        "the others is luckier",
    )
    halted = replace(study(study="halted"), ending=np.array(["stopped"] * 3 + ["completed"] * 37))
    also = replace(halted, study="also")
    assert equal_budget_of(one, halted).unequal == (
        "only halted had trials stopped early: its trials cost less",
    )
    assert equal_budget_of(halted, also).unequal == ()


def equal_budget_of(*studies: Observations) -> EqualBudget:
    found = equal_budget(studies)
    assert isinstance(found, EqualBudget)
    return found


def test_studies_of_different_data_are_not_compared() -> None:
    found = equal_budget([study(20, study="one"), study(20, study="two", dataset="other")])
    assert isinstance(found, EqualBudget)
    assert found.differences == ()


def test_mean_ranks_of_demsar_s_size() -> None:
    # Three treatments, always in the same order, on ten datasets: 2.343 * sqrt(3 * 4 / 60).
    scores = np.tile([3.0, 2.0, 1.0], (10, 1)) + np.arange(10)[:, None]
    found = mean_ranks(["a", "b", "c"], scores)
    assert found.ranks == (1.0, 2.0, 3.0)
    assert found.names == ("a", "b", "c")
    assert found.critical_difference == pytest.approx(2.343 * (12 / 60) ** 0.5, abs=2e-3)
    assert found.p == pytest.approx(np.exp(-10))  # chi-squared of 20 with 2 degrees of freedom


def test_ranks_take_methods_over_datasets() -> None:
    studies = [
        StudyAtBudget(f"{m}-{d}", m, f"data{d}", "val.accuracy", 9, 9, 3, 1.0, 1.0, level + d, 0.0, 1.0)
        for m, level in (("best", 0.9), ("middle", 0.8), ("worst", 0.7))
        for d in range(6)
    ]
    found = method_ranks(EqualBudget(4, tuple(studies), (), ()))
    assert isinstance(found, MeanRanks)
    assert found.names == ("best", "middle", "worst")
    assert found.blocks == 6
    fewer = method_ranks(EqualBudget(4, tuple(s for s in studies if s.dataset != "data0")[:-1], (), ()))
    assert fewer == TooFew(4, 5, "datasets that all methods have a study of")


def test_methods_are_not_compared_across_metrics() -> None:
    studies = [
        StudyAtBudget(f"{m}-{d}", m, f"data{d}", metric, 9, 9, 3, 1.0, 1.0, level + d / 100, 0.0, 1.0)
        for m, metric, level in (
            ("first", "val.accuracy", 0.9),
            ("second", "val.colour_mse", 105.0),
            ("third", "val.accuracy", 0.8),
            ("third", "val.colour_mse", 100.0),
        )
        for d in range(6)
    ]
    compared = EqualBudget(4, tuple(studies), (), ())
    found = method_tests(compared)
    assert not isinstance(found, TooFew)
    assert {(one.first, one.second): round(one.difference, 9) for one in found} == {
        ("first, val.accuracy", "third, val.accuracy"): 0.1,
        ("second, val.colour_mse", "third, val.colour_mse"): 5.0,
    }
    assert method_ranks(compared) == TooFew(0, 5, "datasets that all methods have a study of")


def test_holm_by_hand() -> None:
    # Six pairs, all in one direction: the exact p of Wilcoxon is 2 / 2^6; of three tests, times 3, 2 and 1.
    blocks = [f"seed{i}" for i in range(6)]
    columns = {
        name: {block: level * (i + 1) for i, block in enumerate(blocks)}
        for name, level in (("a", 3.0), ("b", 2.0), ("c", 1.0))
    }
    tests = paired_tests([columns], "seeds")
    assert not isinstance(tests, TooFew)
    assert [test.p for test in tests] == pytest.approx([2 / 64] * 3)
    assert [test.p_holm for test in tests] == pytest.approx([6 / 64] * 3)
    assert tests[0].difference == pytest.approx(3.5)


def test_runs_are_paired_by_their_seeds() -> None:
    def final(name: str, level: float, seeds: range) -> Observations:
        one = study(2, study=name)
        count = len(seeds)
        runs = SeedScores(np.zeros(count, dtype=int), np.array(seeds), level + 0.01 * np.arange(count))
        return replace(one, replicates=runs)

    tests = seed_tests([final("good", 0.8, range(8)), final("bad", 0.7, range(2, 10))])
    assert not isinstance(tests, TooFew)
    (test,) = tests
    assert (test.first, test.second, test.blocks) == ("good", "bad", 6)
    assert test.difference == pytest.approx(0.12)
    assert seed_tests([final("good", 0.8, range(3)), final("bad", 0.7, range(3))]) == TooFew(
        3, 6, "shared seeds of studies with a single configuration"
    )


def test_the_best_of_several_trials_is_not_tested_with_the_scores_that_selected_it() -> None:
    """All scores are noise: the best of 40 trials would beat a single one on most seeds."""
    rng = np.random.default_rng(0)

    def noise(name: str, trials: int) -> Observations:
        runs = SeedScores(
            np.repeat(np.arange(trials), 8), np.tile(np.arange(8), trials), rng.normal(size=8 * trials)
        )
        return replace(study(2, study=name), replicates=runs)

    assert isinstance(seed_tests([noise("searched", 40), noise("single", 1)]), TooFew)
