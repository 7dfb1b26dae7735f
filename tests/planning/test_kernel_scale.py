"""A condition whose numbers are too alike for the scale of the kernel is warned of."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contrasweep.data import dataset_spec
from contrasweep.tuning.planning.kernel_scale import kernel_scale_in_words
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resolve import resolve

DATASET = "colour-digits"


def searching(results: Path, spread: float | None, method: str = "fair-cclk", **options: Any) -> list[str]:
    """Return what a sweep is warned of whose conditions have this mean squared distance."""
    plan = plan_sweep(method, DATASET, epochs=1, results=results, **options)
    facts = replace(dataset_spec(DATASET), condition_spread=spread, condition_name="the rows of a.csv")
    return kernel_scale_in_words(plan.experiment, facts, plan.space)


def training(spread: float | None, values: Mapping[str, Any]) -> list[str]:
    facts = replace(dataset_spec(DATASET), condition_spread=spread, condition_name="the rows of a.csv")
    return kernel_scale_in_words(resolve("fair-cclk", DATASET, values), facts)


@pytest.mark.parametrize(
    ("spread", "told"),
    [
        (None, None),
        (2.0, None),
        (1 / 6, "alike to 0.85 (rbf), where"),  # numbers that are uniform from 0 to 1
        (0.04, "alike to 0.96 (rbf) and 0.82 (laplacian), where"),
    ],
)
def test_a_search_is_warned_where_its_smallest_scale_is_too_large(
    tmp_path: Path, spread: float | None, told: str | None
) -> None:
    warned = searching(tmp_path, spread)
    assert len(warned) == (told is not None)
    if told is not None:
        assert warned[0].startswith(
            "sigma2 = 1, the smallest that is searched, is large for the rows of a.csv"
        )
        assert told in warned[0]


def test_what_is_fixed_is_not_searched(tmp_path: Path) -> None:
    (warned,) = searching(tmp_path, 0.04, values={"sigma2": 3000.0, "kernel": "rbf"})
    assert warned.startswith("sigma2 = 3000 is large")
    assert searching(tmp_path, 0.04, values={"sigma2": 0.1, "kernel": "rbf"}) == []
    assert searching(tmp_path, 0.04, values={"kernel": "cosine"}) == []


@pytest.mark.parametrize(
    ("values", "warns"),
    [({}, True), ({"sigma2": 0.04}, False), ({"kernel": "laplacian", "sigma2": 5.0}, True)],
)
def test_a_single_run_is_warned_of_its_own_scale(values: dict[str, Any], warns: bool) -> None:
    assert bool(training(0.04, values)) is warns
    assert training(None, values) == []


def test_kernels_of_features_are_not_meant(tmp_path: Path) -> None:
    assert searching(tmp_path, 0.0001, "hardneg-cclk") == []
    assert searching(tmp_path, 0.0001, "infonce") == []
