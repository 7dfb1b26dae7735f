"""Intervals and the best so far, against cases worked out by hand."""

import numpy as np
import pytest

from contrasweep.tuning.statistics import (
    improvements,
    mean_interval,
    normal_interval,
    percentile_interval,
    signed_rank_p,
    student_interval,
    summarise,
)


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


def test_six_differences_of_one_sign() -> None:
    assert signed_rank_p(np.arange(1.0, 7.0)) == pytest.approx(2 / 2**6)
    assert signed_rank_p(np.zeros(6)) == 1.0
