"""Intervals and paired tests, against figures worked out by hand or printed in a table."""

import math

import pytest

from contrasweep.tuning.results.final_runs import scores_by_seed
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
    assert (same.p, above.p, single.p, single.p_holm) == (1.0, 0.0, None, None)
    assert above.p_holm == 0.0


def test_rounding_is_no_spread() -> None:
    (row,) = compare_first({"a": {1: 0.4, 2: 0.3}, "b": {1: 0.3, 2: 0.2}})
    assert row.difference.std != 0
    assert row.p == 0.0


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
