"""The Pareto front and conditions on a selection."""

import itertools
from pathlib import Path

import numpy as np
import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment.conditions import parse_condition
from contrasweep.tuning.methods.metrics import condition_on
from contrasweep.tuning.results.best import pareto_front
from contrasweep.tuning.results.candidates import candidates_of
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.results.study import read_study
from tests.studies import WrittenStudy, make_record, scored


def test_the_front_is_what_nothing_beats() -> None:
    points = [(0.9, 10.0), (0.8, 20.0), (0.7, 15.0), (0.8, 20.0), (0.6, 30.0), (0.9, 5.0)]
    assert pareto_front(points) == [0, 1, 3, 4]
    assert pareto_front([]) == []


def test_the_front_keeps_its_definition() -> None:
    points = np.random.default_rng(0).integers(0, 5, size=(60, 3))
    front = set(pareto_front(points.tolist()))
    for a, b in itertools.permutations(range(60), 2):
        if (points[b] >= points[a]).all() and (points[b] > points[a]).any():
            assert a not in front
    for a in set(range(60)) - front:
        assert any((points[b] >= points[a]).all() and (points[b] > points[a]).any() for b in front)


def test_the_best_of_equal_first_metrics_is_on_the_front_everywhere(tmp_path: Path) -> None:
    metrics = ("val.accuracy", "val.colour_mse")
    search = {"trials": 3, "metric": ",".join(metrics), "rung_metric": "val.ridge_accuracy"}
    columns = ("train.loss", "val.ridge_accuracy", *metrics)
    study = WrittenStudy(tmp_path, make_record("demo", metrics=columns, search=search))
    # The first two score alike; the third lacks the second metric, so it cannot be selected.
    study.write(
        *(scored((0.5, score), colour=colour) for score, colour in ((0.8, 5.0), (0.8, 9.0), (0.9, None)))
    )
    assert [one.trial for one in best_trials(study.store, "demo", 3)] == [1, 0]
    assert [one.number for one in read_study(study.store, "demo").ranked] == [1, 0]
    assert next(iter(candidates_of(study.store.trials("demo"), study.record).scores.items())) == (1, 0.8)


@pytest.mark.parametrize(
    ("text", "kept"), [("m>=2", [2, 3]), ("m>2", [3]), ("val.m <= 2", [1, 2]), ("m<2e0", [1])]
)
def test_a_condition_keeps_what_it_says(text: str, kept: list[int]) -> None:
    condition = parse_condition(text, ["train.loss", "val.m"])
    assert condition.metric == "val.m"
    assert [value for value in (1, 2, 3) if condition.holds(value)] == kept


@pytest.mark.parametrize("text", ["m", "m=2", "m>=two", "m>=nan", "m>=inf", ">=2"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--where takes METRIC>=NUMBER"):
        parse_condition(text, ["val.m"])


def test_a_fraction_is_bounded_by_a_fraction() -> None:
    with pytest.raises(InputError, match=r"--where val.accuracy >= 95: .* such as 0.95"):
        condition_on("accuracy>=95", ["val.accuracy"])


def test_an_unknown_metric_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'val\.color_mse'.* Did you mean 'val\.colour_mse'"):
        parse_condition("val.color_mse>=1", ["val.accuracy", "val.colour_mse"])
