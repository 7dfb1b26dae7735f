"""A sampler of another distribution: one file, found by its entry point, that a sweep proposes with."""

import sys
from pathlib import Path

import pytest
from installing import write_metadata

from contrasweep.plugins import plugin_versions
from contrasweep.search_spaces import Space
from contrasweep.tuning.catalogue.declared import DECLARED_SAMPLERS
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.search import SAMPLERS, SearchStudy

NEAR_BEST = """
from optuna.samplers import RandomSampler
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.search import Sampler

class NearBest(RandomSampler):
    def sample_independent(self, study, trial, name, distribution):
        drawn = super().sample_independent(study, trial, name, distribution)
        finished = [t for t in study.get_trials(deepcopy=False) if t.values and name in t.params]
        if not finished or not isinstance(drawn, float):
            return drawn
        best = max(finished, key=lambda t: t.value).params[name]
        return best + 0.1 * (drawn - best)

def start(space, trials):
    return lambda seed, number: NearBest(seed=seed)

def check(space, objectives):
    if objectives > 1:
        raise InputError(f"the sampler near-best takes one metric, given {objectives}")

SAMPLER = Sampler("near-best", start, check)
"""
SPACE = Space.parse(
    {
        "crop": {"uniform": [0.0, 1.0], "default": 0.1},
        "kernel": {"choice": ["rbf", "cosine"], "default": "cosine"},
    }
)


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distribution near-best, with one module and one entry point."""
    write_metadata(tmp_path, "near-best", {"contrasweep.samplers": {"near-best": "near_best:SAMPLER"}})
    (tmp_path / "near_best.py").write_text(NEAR_BEST)
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
