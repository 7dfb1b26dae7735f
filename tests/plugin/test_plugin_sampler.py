"""A sampler of another distribution: one file, found by its entry point, that a sweep proposes with."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from installing import write_metadata
from optuna.samplers import RandomSampler

from contrasweep.plugin_packages import plugin_versions
from contrasweep.search_spaces import Space
from contrasweep.tuning.catalogue.declared import DECLARED_SAMPLERS
from contrasweep.tuning.errors import InputError, WrongReturn
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.search import SAMPLERS, Sampler, SearchStudy

SHOWN = (Path(__file__).parents[2] / "docs/add-a-sampler.md").read_text(encoding="utf-8")
NEAR_BEST = SHOWN.partition("test_it_proposes_from_what_the_search_has_found -->\n```python\n")[2].partition(
    "```"
)[0]
CHECK = """
from contrasweep.tuning.errors import InputError

def check(space, objectives):
    if objectives > 1:
        raise InputError(f"the sampler near-best takes one metric, given {objectives}")

SAMPLER = Sampler("near-best", start, check)
"""
SPACE = Space.parse(
    {
        "crop": {"uniform": [0.0, 1.0], "default": 0.1},
        "flip": {"choice": [0.0, 0.5], "default": 0.5},
        "kernel": {"choice": ["rbf", "cosine"], "default": "cosine"},
    }
)


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distribution near-best, with one module and one entry point."""
    write_metadata(tmp_path, "near-best", {"contrasweep.samplers": {"near-best": "near_best:SAMPLER"}})
    (tmp_path / "near_best.py").write_text(NEAR_BEST + CHECK)
    # Both are complete now, so the registries of before come back after the test.
    assert len(SAMPLERS)
    assert len(DECLARED_SAMPLERS)
    monkeypatch.delitem(vars(SAMPLERS), "_items")
    monkeypatch.delitem(vars(DECLARED_SAMPLERS), "_others")
    monkeypatch.delitem(sys.modules, "near_best", raising=False)
    monkeypatch.syspath_prepend(tmp_path)


def test_it_proposes_from_what_the_search_has_found() -> None:
    study = SearchStudy(SPACE, sampler="near-best", seed=1, trials=20)
    best = 0.1
    for number in range(20):
        crop = float(study.ask().values["crop"])
        assert abs(crop - best) <= 0.1
        best = max(crop, best)
        study.complete(number, crop)
    assert best > 0.3
    assert {trial.params["kernel"] for trial in study.trials} == {"rbf", "cosine"}
    assert {trial.params["flip"] for trial in study.trials} == {0.0, 0.5}


def test_it_draws_from_the_space_of_a_method() -> None:
    study = plan_sweep("infonce", "digits", sampler="near-best", trials=20).new_study()
    for number in range(20):
        study.ask()
        study.complete(number, float(number))


class Outside(RandomSampler):
    """Draws what the space does not have, or numbers of numpy."""

    def __init__(self, value: object) -> None:
        super().__init__(seed=0)
        self.value = value

    def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
        return (
            self.value
            if param_name == "crop"
            else super().sample_independent(study, trial, param_name, param_distribution)
        )


def _drawn_by(start: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    assert "near-best" in SAMPLERS
    monkeypatch.setitem(vars(SAMPLERS)["_items"], "near-best", Sampler("near-best", start))
    study = SearchStudy(SPACE, sampler="near-best", trials=3)
    study.ask()
    return study.ask().values["crop"]


@pytest.mark.parametrize("value", [1.5, "rbf", None, float("nan")])
def test_a_value_outside_the_space_is_told_with_the_names_of_sampler_and_parameter(
    value: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        WrongReturn, match=r"the sampler near-best drew .* for crop; allowed: uniform \[0.0, 1.0\]"
    ):
        _drawn_by(lambda space, trials: lambda seed, number: Outside(value), monkeypatch)


def test_a_number_of_numpy_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = _drawn_by(lambda space, trials: lambda seed, number: Outside(np.float64(0.25)), monkeypatch)
    assert (drawn, type(drawn)) == (0.25, float)


@pytest.mark.parametrize(
    ("start", "told"),
    [
        (lambda space, trials: None, "start of the sampler near-best must return a function"),
        (
            lambda space, trials: lambda seed, number: None,
            "must return a sampler of Optuna, returned NoneType",
        ),
    ],
)
def test_what_starts_no_sampler_is_told(
    start: Callable[..., Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WrongReturn, match=told):
        _drawn_by(start, monkeypatch)


def test_a_sweep_is_planned_with_it_and_names_its_distribution() -> None:
    plan = plan_sweep("infonce", "digits", sampler="near-best", trials=3)
    assert plan.record().search.sampler == "near-best"
    assert plan_sweep("infonce", "digits", sampler="near-best").new_study().ask().number == 0
    assert plugin_versions()["near-best"] == "0.1.0"


def test_its_own_check_and_the_nearest_name_are_told() -> None:
    with pytest.raises(InputError, match="near-best takes one metric, given 2"):
        SearchStudy(SPACE, sampler="near-best", objectives=2)
    with pytest.raises(InputError, match=r"unknown sampler 'near_bst'\. Did you mean 'near-best'"):
        plan_sweep("infonce", "digits", sampler="near_bst")
