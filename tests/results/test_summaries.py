import math
from typing import Any

import pytest

from contrasweep.tuning.results.columns import column_of, difference_title, unit_note
from contrasweep.tuning.results.final_runs import summarise_runs
from contrasweep.tuning.statistics import Summary, compare_first, summarise


def test_the_standard_deviation_is_that_of_a_sample() -> None:
    # Deviations -2, 0, 2: 8 / (3 - 1) = 4, not 8 / 3.
    assert summarise([1.0, 3.0, 5.0]) == Summary(mean=3.0, std=2.0, n=3)


def test_one_run_has_no_spread() -> None:
    assert summarise([0.5]) == Summary(mean=0.5, std=None, n=1)


def test_what_is_no_number_is_not_counted() -> None:
    assert summarise([1.0, None, math.nan, math.inf, 2.0]) == Summary(1.5, pytest.approx(0.5**0.5), 2)
    assert summarise([None, math.nan]) is None
    assert summarise([]) is None


def _row(
    trial: int, seed: int, accuracy: float | None, untrained: float | None, **more: Any
) -> dict[str, Any]:
    row = {"trial": trial, "seed": seed, "method": "infonce", "metric.test.accuracy": accuracy}
    row |= {"metric.test.untrained_accuracy": untrained}
    return row | {f"metric.test.{name}": value for name, value in more.items()}


def test_each_configuration_and_then_the_untrained_encoders() -> None:
    rows = [
        _row(4, 1, 0.9, 0.5, colour_mse=100.0, untrained_colour_mse=40.0),
        _row(4, 2, 0.7, 0.7, colour_mse=300.0, untrained_colour_mse=60.0),
        _row(2, 1, 0.6, 0.5, colour_mse=50.0, untrained_colour_mse=40.0),
    ]
    fourth, second, untrained = summarise_runs(rows)
    assert [s.encoder for s in (fourth, second, untrained)] == [
        "infonce, trial 4",
        "infonce, trial 2",
        "untrained",
    ]
    assert second.accuracy == Summary(0.6, None, 1)
    assert fourth.accuracy == Summary(pytest.approx(0.8), pytest.approx(0.02**0.5), 2)
    assert fourth.scores["colour_mse"] == Summary(200.0, pytest.approx(20000**0.5), 2)
    # Seed 1 is one untrained encoder, though two configurations began with it.
    assert untrained.accuracy == Summary(pytest.approx(0.6), pytest.approx(0.02**0.5), 2)
    assert untrained.scores["colour_mse"] == Summary(50.0, pytest.approx(200**0.5), 2)


def test_without_colour_there_is_no_colour_error() -> None:
    trained, untrained = summarise_runs([_row(0, 1, 0.9, 0.5), _row(0, 2, 0.8, 0.4)])
    assert "colour_mse" not in trained.scores
    assert "colour_mse" not in untrained.scores


def test_a_run_that_failed_counts_neither_for_nor_against() -> None:
    rows = [_row(0, 1, 0.9, 0.5), _row(0, 2, None, None), _row(1, 1, None, None)]
    trained, untrained = summarise_runs(rows)
    assert trained.accuracy == Summary(0.9, None, 1)
    assert untrained.accuracy == Summary(0.5, None, 1)


def test_nothing_ran() -> None:
    assert summarise_runs([]) == []


def test_multi_label_data_has_scores_but_no_accuracy() -> None:
    row = {"trial": 0, "seed": 1, "method": "herocon"}
    row |= {"metric.test.f1": 0.7, "metric.test.auc": 0.9}
    row |= {"metric.test.untrained_f1": 0.4, "metric.test.untrained_auc": 0.6}
    trained, untrained = summarise_runs([row])
    assert (trained.accuracy.mean, untrained.accuracy.mean) == (0.7, 0.4)
    assert untrained.scores["auc"] == Summary(0.6, None, 1)


def test_only_a_colour_error_says_what_it_is_measured_in() -> None:
    assert "squared 8-bit levels" in unit_note(["val.accuracy", "val.colour_mse"])
    assert unit_note(["accuracy", "f1"]) == ""


@pytest.mark.parametrize(
    ("score", "column"),
    [
        ("accuracy", "test accuracy"),
        ("colour_mse", "colour MSE"),
        ("rankme", "RankMe"),
        ("lidar", "LiDAR"),
        ("f1", "F1"),
        ("auc", "AUC"),
        ("cluster_nmi", "cluster NMI"),
        ("alignment", "alignment"),
        ("class_separation", "class separation"),
    ],
)
def test_a_score_in_words_is_spelled_as_papers_do(score: str, column: str) -> None:
    assert column_of(score) == column


def test_the_title_above_differences_spells_the_score_so_too() -> None:
    compared = compare_first({"trial 3": {1: 6.0}, "untrained": {1: 5.0}})
    assert difference_title(compared, "rankme") == "RankMe: trial 3 minus each baseline, seed by seed"
    assert difference_title(compared, "accuracy").startswith("Test accuracy: trial 3 ")
