"""The order of `contrasweep show --sort`, and what `contrasweep best` suggests, by either direction."""

import math
from types import SimpleNamespace
from typing import Any, cast

import pytest

from contrasweep.tuning.cli.studies import _another, _first_trials


def rows_of(**columns: list[list[Any]]) -> list[dict[str, Any]]:
    """Return the rows of trials: by column, the values of the seeds of each trial."""
    trials = range(len(next(iter(columns.values()))))
    return [
        {
            "trial": trial,
            "seed": seed,
            "configuration": {},
            **{name: columns[name][trial][seed] for name in columns},
        }
        for trial in trials
        for seed in range(2)
    ]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("alignment", [1, 2, 0]),  # smaller is better
        ("accuracy", [0, 1, 2]),
        ("rankme", [1, 0, 2]),  # what is not finite is last
        ("epoch", [2, 1, 0]),  # by the seed that came least far
    ],
)
def test_metrics_go_from_the_best_to_the_worst_and_all_else_upwards(by: str, order: list[int]) -> None:
    rows = rows_of(
        epoch=[[3, 3], [2, 9], [1, 9]],
        **{
            "val.alignment": [[0.5, 0.6], [0.1, 0.2], [0.1, 0.4]],
            "val.accuracy": [[0.8, 0.8], [0.9, 0.6], [0.5, 0.6]],
            "val.rankme": [[math.inf, 2.0], [1.0, 2.0], [math.nan, 9.0]],
        },
    )
    assert [row["trial"] for row in _first_trials(rows, by, None, 2)][::2] == order


@pytest.mark.parametrize(
    ("second", "scores", "condition"),
    [("val.alignment", (0.5, 0.3), "val.alignment<0.4"), ("val.f1", (0.3, 0.5), "val.f1>0.4")],
)
def test_the_next_point_of_the_front_is_better_by_the_suggested_condition(
    second: str, scores: tuple[float, float], condition: str
) -> None:
    points = zip((0.9, 0.8), scores, strict=True)
    front = [
        SimpleNamespace(metrics={"val.accuracy": first, second: other}, on_front=True)
        for first, other in points
    ]
    assert f"`--where '{condition}'`" in _another(cast(Any, front), ("val.accuracy", second))
