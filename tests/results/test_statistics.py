"""Intervals and the best so far, against cases worked out by hand."""

import numpy as np
import pytest

from contrasweep.tuning.results.candidates import ties_of_best
from contrasweep.tuning.results.noise import images_behind
from contrasweep.tuning.statistics import (
    binomial_noise,
    improvements,
    mean_interval,
    normal_interval,
    percentile_interval,
    rank_correlation,
    rank_correlation_interval,
    signed_rank_p,
    student_interval,
    summarise,
    without_rounding,
)
from tests.studies import make_record


def test_the_best_so_far_rises_at_each_improvement_and_nan_is_none() -> None:
    nan = float("nan")
    assert improvements(np.array([nan, 0.2, 0.2, nan, 0.1, 0.5])).tolist() == [1, 5]
    assert improvements(np.array([nan, -np.inf])).tolist() == []
    assert improvements(np.array([])).tolist() == []


def test_an_interval_of_three_runs_is_student_s() -> None:
    # t(0.975, 2) = 4.303; the standard error of 1, 2, 3 is 1 / sqrt(3).
    summary = summarise([1.0, 2.0, 3.0])
    assert summary is not None
    assert mean_interval(summary) == pytest.approx((2 - 4.303 / 3**0.5, 2 + 4.303 / 3**0.5), abs=1e-3)
    assert student_interval(0.0, 1.0, 1e9) == pytest.approx((-1.96, 1.96), abs=1e-3)


def test_intervals_hold_95_percent() -> None:
    assert normal_interval(1.0, 0.5) == pytest.approx((0.02, 1.98))
    low, high = percentile_interval(np.arange(41.0)[:, None] * [1.0, 10.0])
    assert low == pytest.approx([1.0, 10.0])
    assert high == pytest.approx([39.0, 390.0])


def test_rank_correlation_is_spearman_s_and_zero_where_scores_are_alike() -> None:
    first = np.array([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 2.0, 4.0], [5.0, 5.0, 5.0, 5.0]])
    second = np.array([10.0, 20.0, 40.0, 30.0])
    # 1 - 6 * (1 + 1) / (4 * 15) where two neighbours changed places; tied scores share a rank.
    assert rank_correlation(first, second) == pytest.approx([0.8, 3 / (4.5 * 5) ** 0.5, 0.0])


def test_the_interval_of_a_rank_correlation_is_bonett_and_wright_s() -> None:
    # arctanh(0.5) = 0.5493, error sqrt((1 + 0.125) / 25) = 0.2121.
    low, high = rank_correlation_interval(0.5, 28)
    assert (np.arctanh(low), np.arctanh(high)) == pytest.approx((0.1335, 0.9651), abs=1e-3)
    assert rank_correlation_interval(1.0, 28)[0] > 0.99
    # Six in the same order may be the luck of a correlation of 0.8.
    low, high = rank_correlation_interval(1.0, 6)
    assert low < 0.8 < 0.99 < high < 1
    assert rank_correlation_interval(-1.0, 6) == pytest.approx((-high, -low))


def test_six_differences_of_one_sign() -> None:
    assert signed_rank_p(np.arange(1.0, 7.0), np.zeros(6)) == pytest.approx(2 / 2**6)
    assert signed_rank_p(np.ones(6), np.ones(6)) == 1.0


def test_differences_that_differ_by_rounding_have_one_rank() -> None:
    own, other = np.array([8, 9, 7, 6, 5, 4, 3]), np.array([7, 8, 8, 7, 6, 3, 2])
    assert len(set(np.abs(own / 10 - other / 10))) > 1
    # Four of seven equal differences are positive.
    assert signed_rank_p(own / 10, other / 10) == signed_rank_p(own, other) == 1.0
    assert signed_rank_p(np.full(6, 0.1 + 0.2), np.full(6, 0.3)) == 1.0


def test_rounding_is_taken_from_numbers_of_any_size() -> None:
    for size in (1e-200, 1.0, 1e200):
        values = size * np.array([0.1 + 0.2, 0.3, 0.30001, np.nan])
        found = without_rounding(values, values)
        assert found[0] == found[1] < found[2]
        assert found == pytest.approx(values, rel=1e-11, nan_ok=True)
    assert without_rounding(np.zeros(2), np.zeros(2)).tolist() == [0.0, 0.0]


def test_scores_within_the_binomial_noise_of_the_best_are_ties() -> None:
    # 1.96 * sqrt(0.8 * 0.2 / 100) = 0.0784; of perfect scores, one image.
    assert binomial_noise(0.8, 100) == pytest.approx(0.0784)
    assert binomial_noise(1.0, 100) == 0.01
    tied, noise = ties_of_best({4: 0.73, 7: 0.8, 2: 0.71, 9: 0.8}, 100)
    assert (tied, noise) == ([9, 4], binomial_noise(0.8, 100))
    assert ties_of_best({}, 100) == ((), 0.0)


@pytest.mark.parametrize("images", [19, 27, 63, 399, 511])
def test_one_image_less_than_all_is_a_tie_however_it_is_rounded(images: int) -> None:
    tied, noise = ties_of_best({0: 1.0, 1: (images - 1) / images}, images)
    assert noise == pytest.approx(1 / images)
    assert tied == [1]


@pytest.mark.parametrize(
    ("metric", "images"),
    [
        ("val.accuracy", 144),
        ("val.ridge_accuracy", 144),
        # One image of a group of three moves the first of these by a third. None of them is a plain share.
        ("val.worst_group_accuracy", None),
        ("val.balanced_accuracy", None),
        ("val.cluster_accuracy", None),
        ("val.accuracy,val.colour_mse", None),
    ],
)
def test_only_plain_accuracies_are_shares_of_all_validation_images(metric: str, images: int | None) -> None:
    search = {
        "trials": 3,
        "metric": metric,
        "rung_metric": metric.partition(",")[0],
        "validation_images": 144,
    }
    record = make_record(metrics=metric.split(","), search=search)
    assert images_behind(record.require_search()) == images
