"""Intervals and paired tests, against figures worked out by hand or printed in a table."""

import math

import pytest

from contrasweep.tuning.results.columns import INTERVAL, difference_note, difference_rows, score_interval
from contrasweep.tuning.results.final_runs import scores_by_seed, summarise_runs
from contrasweep.tuning.statistics import Summary, compare_first, holm, mean_interval


def test_the_interval_is_students() -> None:
    # t(0.975, 4) = 2.776 in any table: 2.776 * 2 / sqrt(5) = 2.483.
    low, high = mean_interval(Summary(10.0, 2.0, 5)) or (0.0, 0.0)
    assert (low, high) == (pytest.approx(10 - 2.483, abs=1e-3), pytest.approx(10 + 2.483, abs=1e-3))
    assert mean_interval(Summary(1.0, None, 1)) is None


def test_differences_are_taken_seed_by_seed() -> None:
    # The seeds spread widely, the differences do not: unpaired, nothing would be seen.
    first = {1: 0.10, 2: 0.50, 3: 0.90}
    (row,) = compare_first({"a": first, "b": {3: 0.94, 1: 0.12, 2: 0.53, 9: 0.0}})
    assert (row.encoder, row.reference) == ("a", "b")
    assert row.difference.mean == pytest.approx(-0.03)
    assert row.difference.n == 3
    # t = 0.03 / (0.01 / sqrt(3)) = 5.196 with 2 degrees of freedom: p = 0.0351.
    assert row.p == pytest.approx(0.0351, abs=1e-4)
    assert row.p_holm == row.p
    assert row.interval is not None
    assert row.interval[0] == pytest.approx(-0.03 - 4.3027 * 0.01 / math.sqrt(3), abs=1e-5)


def test_many_comparisons_are_corrected() -> None:
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_without_spread_or_pairs_there_is_no_division() -> None:
    first = {1: 0.5, 2: 0.75}
    same, above, single = compare_first(
        {"a": first, "same": first, "above": {1: 0.75, 2: 1.0}, "single": {1: 0.6}, "none": {7: 0.6}}
    )
    assert (same.p, above.p, single.p, single.p_holm) == (1.0, 0.5, None, None)
    # Two seeds are too few to tell, and are not among the comparisons that are corrected for.
    assert above.p_holm is None


def test_rounding_is_no_spread() -> None:
    (row,) = compare_first({"a": {1: 0.4, 2: 0.3}, "b": {1: 0.3, 2: 0.2}})
    assert row.difference.std != 0
    assert row.p == 0.5
    (row,) = compare_first({"a": {0: 0.1 + 0.2, 1: 0.3, 2: 0.7}, "b": {0: 0.3, 1: 0.3, 2: 0.7}})
    assert row.difference.mean != 0
    assert row.p == 1.0


def test_one_image_more_with_each_seed_is_the_evidence_of_its_signs() -> None:
    first = {seed: (300 + seed) / 360 for seed in range(5)}
    (row,) = compare_first({"a": first, "b": {seed: score - 1 / 360 for seed, score in first.items()}})
    assert row.p == 0.0625
    assert row.interval is None, "of no width, it would leave 0 out"
    assert "Where the difference is the same with each seed: sign test" in difference_note([row])


def test_a_score_that_is_no_number_concerns_its_own_comparison_only() -> None:
    first = {seed: 0.9 + seed / 100 for seed in range(5)}
    third = {seed: 0.7 + seed**2 / 1000 for seed in range(5)}
    second = third | {0: math.nan}
    for others in ({"b": second, "c": third}, {"c": third, "b": second}):
        rows = {row.reference: row for row in compare_first({"a": first, **others})}
        (alone,) = compare_first({"a": first, "c": third})
        assert rows["b"].difference.n == 4
        assert rows["b"].p is not None
        assert 0 < rows["b"].p < 1
        assert alone.p is not None
        assert rows["c"].p_holm == pytest.approx(2 * alone.p)


def test_scores_of_several_studies() -> None:
    def row(study: str, trial: int, seed: int, score: float, untrained: float) -> dict[str, object]:
        found = {"study": study, "method": "infonce", "trial": trial, "seed": seed}
        return found | {"metric.test.accuracy": score, "metric.test.untrained_accuracy": untrained}

    rows = [row("a-final", 3, seed, 0.9, 0.5 + seed / 10) for seed in (1, 2)]
    rows += [row("b-final", 0, seed, 0.8, 0.5 + seed / 10) for seed in (1, 2)]
    assert scores_by_seed(rows) == {
        "infonce, trial 3 of a": {1: 0.9, 2: 0.9},
        "infonce, trial 0 of b": {1: 0.8, 2: 0.8},
        "untrained": {1: 0.6, 2: 0.7},
    }
    rows += [row("other-final", 0, seed, 0.8, 0.1) for seed in (1, 2)]
    assert list(scores_by_seed(rows))[-2:] == ["untrained", "untrained of other"]


def test_networks_of_one_study_have_their_own_untrained_encoders() -> None:
    def row(trial: int, seed: int, untrained: float) -> dict[str, object]:
        found = {"study": "one-final", "method": "infonce", "trial": trial, "seed": seed}
        return found | {"metric.test.accuracy": 0.9, "metric.test.untrained_accuracy": untrained}

    rows = [row(trial, seed, 0.5 + seed / 10 + (trial == 4) / 100) for trial in (3, 4, 5) for seed in (1, 2)]
    found = scores_by_seed(rows)
    assert list(found)[-2:] == ["untrained", "untrained of trial 4"]
    assert found["untrained"] == pytest.approx({1: 0.6, 2: 0.7})
    assert found["untrained of trial 4"] == pytest.approx({1: 0.61, 2: 0.71})


def test_studies_may_have_different_scores() -> None:
    def row(study: str, **scores: float) -> dict[str, object]:
        found = {"study": f"{study}-final", "method": "infonce", "trial": 0, "seed": 1}
        return found | {f"metric.test.{name}": score for name, score in scores.items()}

    few = row("few", accuracy=0.8, untrained_accuracy=0.5)
    more = row("more", accuracy=0.9, rankme=7.0, untrained_accuracy=0.5, untrained_rankme=3.0)
    for rows in ([few, more], [more, few]):
        *trained, untrained = summarise_runs(rows)
        assert {len(one.scores) for one in trained} == {1, 2}
        assert {name: one.mean for name, one in untrained.scores.items()} == {"accuracy": 0.5, "rankme": 3.0}


def test_few_seeds_of_one_baseline_hide_nothing_of_the_others() -> None:
    several = {seed: 0.5 + seed / 100 for seed in (1, 2, 3, 4)}
    compared = compare_first(
        {
            "a": several,
            "few": {1: 0.4, 2: 0.45},
            "b": {seed: score - 0.1 - seed**2 / 1000 for seed, score in several.items()},
        }
    )
    few, other = difference_rows(compared)
    assert (few[INTERVAL], few["p"], few["n"]) == (None, None, 2)
    assert other[INTERVAL] is not None
    assert other["p"] == compared[1].p == compared[1].p_holm
    assert "p (Holm)" not in other
    note = difference_note(compared)
    assert "Paired t test" in note
    assert "Too few to tell: fewer than 3 seeds (few)." in note


def test_the_interval_of_a_fraction_ends_at_its_bounds() -> None:
    wide = Summary(0.9, 0.1, 3)
    low, high = mean_interval(wide) or (0.0, 0.0)
    assert high > 1
    assert score_interval("accuracy", wide) == (low, 1.0)
    assert score_interval("classifier_f1", Summary(0.05, 0.1, 3)) == (0.0, pytest.approx(0.298, abs=1e-3))
    assert score_interval("colour_mse", wide) == (low, high)
    assert score_interval("colour_mse", Summary(200.0, 300.0, 3)) == (0.0, pytest.approx(945.2, abs=0.1))
    assert score_interval("uniformity", Summary(-2.0, 0.1, 3)) == pytest.approx((-2.248, -1.752), abs=1e-3)
    assert score_interval("accuracy", Summary(0.9, None, 1)) is None
