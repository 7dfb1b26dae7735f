"""What a resumed study is given anew is checked like that of a new one, and recorded for the next driver."""

from pathlib import Path
from typing import Any, cast

import optuna
import pytest
from in_process import without_ray
from studies import tiny_plan

from contrasweep.machine import available_cores
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resume_check import Expected
from contrasweep.tuning.ray.sweep import create_study, resume_sweep, run_sweep
from contrasweep.tuning.ray.sweep_group import sweep_group
from contrasweep.tuning.results.selection import best_trials
from contrasweep.tuning.search.mirror import quiet_optuna
from contrasweep.tuning.store import ResultsStore, SearchRecord
from tests.studies import STUDY, PlannedStudy, scored, small_plan


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    """The results folder of a study of two trials, in which nothing is left to train."""
    PlannedStudy(small_plan(tmp_path / "results", trials=2)).write(scored(), scored((0.5, 0.6)))
    return tmp_path / "results"


def search_of(results: Path) -> SearchRecord:
    return ResultsStore(results).study(STUDY).require_search()


def test_the_next_driver_keeps_as_many_encoders_as_the_last_one_was_told_to(tmp_path: Path) -> None:
    with without_ray():
        run_sweep(tiny_plan(tmp_path, trials=1, epochs=1, scheduler="none"))
        resume_sweep("small", tmp_path, extend=1, keep_weights=2)
        resume_sweep("small", tmp_path, extend=1)
    best = {f"{one.trial:05d}-0" for one in best_trials(ResultsStore(tmp_path), "small", top=2)}
    assert {path.name for path in (tmp_path / "exports" / "small").glob("*")} == best


def test_a_storage_is_recorded_by_its_absolute_path(ended: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ended)
    with without_ray():
        resume_sweep(STUDY, ended, storage="sqlite:///watch.db")
        assert search_of(ended).storage == f"sqlite:///{ended / 'watch.db'}"
        resume_sweep(STUDY, ended, storage="sqlite:///watch.db")
        (ended / "watch.db").unlink()
        resume_sweep(STUDY, ended)
    assert len(optuna.load_study(study_name=STUDY, storage=search_of(ended).storage).trials) == 2


def test_a_study_of_the_same_name_in_another_storage_stays(ended: Path) -> None:
    url = f"sqlite:///{ended / 'team.db'}"
    with quiet_optuna():
        optuna.create_study(storage=url, study_name=STUDY, direction="minimize")
    with pytest.raises(InputError, match=f"holds a study '{STUDY}'; choose another storage"):
        resume_sweep(STUDY, ended, storage=url)
    assert optuna.load_study(study_name=STUDY, storage=url).direction.name == "MINIMIZE"
    assert search_of(ended).storage is None


def test_a_storage_that_no_record_can_hold_is_refused(ended: Path) -> None:
    with pytest.raises(InputError, match="in one line"):
        resume_sweep(STUDY, ended, storage=f"sqlite:///{ended}/wa\ntch.db")
    assert search_of(ended).storage is None


def test_added_trials_run_as_many_at_once_as_is_asked_for(
    ended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.ray.sweep._run", lambda plan, *_: plan)
    done: Any = resume_sweep(STUDY, ended, extend=6, concurrency=5)
    assert done.resources.concurrency == 5, "the study had two trials before"


def test_a_group_begins_with_the_trials_at_once_that_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.ray.sweep._run", lambda plan, *_: plan)
    cores = available_cores()
    plan = tiny_plan(tmp_path, trials=9 + cores, concurrency=3 + cores)
    (begun,) = cast("tuple[SweepPlan, ...]", sweep_group([plan]).results)
    assert begun.resources.concurrency == plan.resources.concurrency == 3 + cores


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"budget": "8h"}, "budget must be a number, given '8h'"),
        ({"trial_timeout": "5"}, "trial_timeout must be a number, given '5'"),
        ({"concurrency": 0}, "concurrency must be at least 1, given 0"),
        ({"workers": 0}, "workers must be at least 1, given 0"),
    ],
)
def test_arguments_of_another_kind_are_refused(ended: Path, options: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        resume_sweep(STUDY, ended, **options)


def test_a_metric_that_the_study_does_not_compute_is_another_one(ended: Path) -> None:
    with pytest.raises(InputError, match=r"metric was val\.accuracy, is val\.alignment"):
        resume_sweep(STUDY, ended, expected=Expected(metric="alignment"))


def test_a_study_from_a_preset_goes_on_with_the_space_that_it_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.ray.sweep._run", lambda plan, *_: plan)
    found = {"settings": {"temperature": 0.07}}
    monkeypatch.setattr("contrasweep.tuning.planning.spaces.preset", lambda method, dataset: found)
    space = Space.parse({"temperature": {"log": [0.05, 1.0], "default": 0.2}}, "own")
    plan = plan_sweep("infonce", "digits", space=space, use_preset=True, results=tmp_path, name=STUDY)
    assert plan.space["temperature"].default == 0.07, "that of the preset"
    create_study(plan)
    resume_sweep(STUDY, tmp_path, expected=Expected(space=space))
    other = Space.parse({"temperature": {"log": [0.05, 2.0], "default": 0.2}}, "own")
    with pytest.raises(InputError, match="temperature: was log"):
        resume_sweep(STUDY, tmp_path, expected=Expected(space=other))
