"""Final runs of selected trials before they start: where they are stored, and what is refused."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.best_config import best_yaml, config_of
from contrasweep.tuning.planning.final_plan import FinalPlan, plan_final_runs, with_epochs
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.resources import AskedResources, Resources
from contrasweep.tuning.planning.selected import Selected
from contrasweep.tuning.results.selection import SelectedTrial
from contrasweep.tuning.store import ResultsStore, open_location, save_study, study_names
from contrasweep.tuning.store.removal import delete_study
from tests.studies import PlannedStudy, make_record, scored, small_plan

ONE_CORE: Resources = AskedResources(1, 1, 1, 0.0).resources()


@pytest.fixture
def trial(tmp_path: Path) -> SelectedTrial:
    """The best trial of a study whose results and datasets are in folders of their own."""
    (tmp_path / "data").mkdir()
    return SelectedTrial(
        study="searched",
        trial=3,
        values={"temperature": 0.2},
        experiment=resolve("infonce", "colour-digits", {"temperature": 0.2}),
        metric="val.accuracy",
        score=0.9,
        untrained=0.5,
        metrics={"val.accuracy": 0.9},
        seeds=2,
        results=str(tmp_path / "results"),
        data_root=tmp_path / "data",
    )


def _plan(selected: Selected | str | Path | list[Selected], **options: Any) -> FinalPlan:
    (plan,) = plan_final_runs(selected, ONE_CORE, seeds=2, **options)
    return plan


def test_selected_trials_bring_their_folders(trial: SelectedTrial, tmp_path: Path) -> None:
    plan = _plan([trial, replace(trial, trial=5)])
    assert study_names(plan.location) == ["searched-final"]
    assert plan.location.uri == str(tmp_path / "results")
    assert {request.data_root for request in plan.requests} == {tmp_path / "data"}
    # The search used the seeds 0 and 1.
    assert [(one.trial, one.experiment.seed) for one in plan.requests] == [(3, 2), (3, 3), (5, 2), (5, 3)]


def test_a_study_that_is_named_gives_its_best_trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTRASWEEP_RESULTS", str(tmp_path / "results"))
    study = PlannedStudy(small_plan(tmp_path / "results"))
    study.write(scored((0.5, 0.6, 0.7)), scored((0.5, 0.6, 0.9)))
    plan = _plan(study.record.name)
    assert {request.trial for request in plan.requests} == {1}
    assert study_names(plan.location) == [study.record.name, f"{study.record.name}-final"]
    with pytest.raises(InputError, match=r"final runs take configurations, .* given \{'lr': 1\}"):
        _plan({"lr": 1})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="given None"):
        _plan(None)  # type: ignore[arg-type]


def test_the_file_of_a_configuration_gives_it(trial: SelectedTrial, tmp_path: Path) -> None:
    file = tmp_path / "best.yaml"
    file.write_text(best_yaml(trial, {}))
    assert {request.trial for request in _plan(file, results=tmp_path / "results").requests} == {3}


def test_runs_from_before_a_fingerprint_are_not_made_again(trial: SelectedTrial) -> None:
    plan = _plan(trial)
    held = {(3, seed): {"config": plan.requests[0].experiment.identity()} for seed in (2, 3)}
    requests = tuple(
        replace(one, experiment=one.experiment.with_values({"data_fingerprint": "0f"}))
        for one in plan.requests
    )
    later = replace(plan, requests=requests)
    assert later.missing(held) == []
    others = {key: {"config": requests[0].experiment.identity()} for key in held}
    with pytest.raises(InputError, match="trial 3 with other settings"):
        plan.missing(others)


def test_runs_of_other_code_are_warned_of(
    trial: SelectedTrial, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[Collection[str]] = []

    def changed(versions: Mapping[str, str], names: Collection[str]) -> list[str]:
        asked.append(names)
        return ["my-plugin"]

    monkeypatch.setattr("contrasweep.tuning.planning.plugin_changes.changed_plugins", changed)
    _plan(trial)
    assert not caplog.messages
    _plan(trial)
    assert "The code of my-plugin has changed since study searched-final began." in caplog.text
    assert {trial.experiment.method, trial.experiment.dataset, trial.experiment.encoder.name} <= set(asked[0])


@pytest.mark.parametrize("elsewhere", [False, True])
def test_the_first_final_run_warns_of_other_code_than_the_search_had(
    trial: SelectedTrial,
    elsewhere: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    searched = make_record("searched", versions={"my-plugin source": "before"})
    save_study(open_location(trial.results, writable=True), searched)

    def changed(versions: Mapping[str, str], names: Collection[str]) -> list[str]:
        return ["my-plugin"] if versions == searched.versions else []

    monkeypatch.setattr("contrasweep.tuning.planning.plugin_changes.changed_plugins", changed)
    _plan(trial, **({"results": tmp_path / "other"} if elsewhere else {}))
    assert "The code of my-plugin has changed since study searched began." in caplog.text
    if not elsewhere:
        caplog.clear()
        _plan(config_of(trial), results=Path(trial.results))
        assert not caplog.messages, "the final runs have the code of their first one"


def test_longer_runs_are_a_study_of_their_own_that_knows_its_search(trial: SelectedTrial) -> None:
    search = make_record("searched", space={"temperature": {"uniform": [0.1, 1.0], "default": 0.5}})
    save_study(open_location(trial.results, writable=True), search)
    own = trial.experiment.epochs
    plan = _plan(trial, epochs=2 * own)
    record = ResultsStore(plan.location).study(f"searched-{2 * own}-epochs-final")
    assert (record, record.searched_study) == (plan.record, "searched")
    assert record.columns.hyperparameters == {"temperature": "float"}
    assert {one.experiment.epochs for one in plan.requests} == {record.experiment.epochs} == {2 * own}
    assert [one.experiment.seed for one in plan.requests] == [2, 3], "as without --epochs: paired by seed"
    assert _plan(trial, epochs=own).record.name == "searched-final"
    with pytest.raises(InputError, match="epochs must be at least 1"):
        _plan(trial, epochs=0)


def test_a_searched_number_of_epochs_is_replaced_too(trial: SelectedTrial) -> None:
    longer = with_epochs(replace(trial, values={"epochs": trial.experiment.epochs}), 7)
    assert (longer.values, longer.experiment.epochs) == ({"epochs": 7}, 7)


def test_the_final_runs_of_another_search_with_that_name_are_not_mixed_in(trial: SelectedTrial) -> None:
    epochs = 2 * trial.experiment.epochs
    other = f"searched-{epochs}-epochs"
    _plan(replace(trial, study=other))
    with pytest.raises(InputError, match=f"{other}-final holds runs of study {other}"):
        _plan(trial, epochs=epochs)


def test_a_search_with_the_name_of_the_final_runs_takes_none(trial: SelectedTrial) -> None:
    save_study(open_location(trial.results, writable=True), make_record("searched-final"))
    with pytest.raises(InputError, match="study searched-final is a search"):
        _plan(trial)


def test_a_folder_of_datasets_that_another_machine_had_is_not_used(
    trial: SelectedTrial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTRASWEEP_DATA", str(tmp_path / "here"))
    plan = _plan(replace(trial, data_root=Path("/nowhere/data")))
    assert {request.data_root for request in plan.requests} == {tmp_path / "here"}


def test_given_folders_win(trial: SelectedTrial, tmp_path: Path) -> None:
    plan = _plan(trial, results=tmp_path / "other", data_root=tmp_path / "other-data")
    assert plan.location.uri == str(tmp_path / "other")
    assert plan.requests[0].data_root == tmp_path / "other-data"


def test_a_configuration_of_a_file_runs_in_the_default_folder(
    trial: SelectedTrial, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _plan(config_of(trial)).location.uri == "results"


def test_configurations_of_several_studies_share_their_seeds(trial: SelectedTrial) -> None:
    late = replace(trial, study="late", experiment=trial.experiment.with_values({"seed": 5}), seeds=1)
    plans = plan_final_runs([trial, late, replace(trial, trial=4)], ONE_CORE, seeds=2)
    runs = [[(one.trial, one.experiment.seed) for one in plan.requests] for plan in plans]
    assert [plan.record.name for plan in plans] == ["searched-final", "late-final"]
    # The search `late` used the seed 5.
    assert runs == [[(3, 6), (3, 7), (4, 6), (4, 7)], [(3, 6), (3, 7)]]


def test_no_study_is_recorded_if_another_is_refused(trial: SelectedTrial, tmp_path: Path) -> None:
    wrong = replace(trial, study="wrong", experiment=trial.experiment.with_values({"encoder.name": "lenet"}))
    with pytest.raises(InputError, match="unknown encoder 'lenet'"):
        plan_final_runs([trial, wrong], ONE_CORE, seeds=1)
    assert not (tmp_path / "results").exists()


def test_trials_of_two_folders_and_no_trials_are_refused(trial: SelectedTrial, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"one results folder, given .*other, .*results"):
        _plan([trial, replace(trial, results=str(tmp_path / "other"))])
    with pytest.raises(InputError, match="one configuration or more, given none"):
        _plan([])
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"temperature": "warm"}, "a column of type float for temperature = 'warm' of trial 4"),
        ({"temperature": True}, "a column of type float for temperature = True"),
        ({"beta": 0.5}, "no column for beta = 0.5"),
    ],
)
def test_a_value_that_the_stored_study_has_no_column_for_is_refused(
    trial: SelectedTrial, values: dict[str, Scalar], named: str
) -> None:
    _plan(trial)
    with pytest.raises(InputError, match=f"study searched-final has {named}"):
        _plan(replace(trial, trial=4, values=values))
    _plan(replace(trial, trial=4, values={"temperature": 1}))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"method": "of-a-plug-in"}, "unknown method 'of-a-plug-in'"),
        ({"encoder.name": "of-a-plug-in"}, "unknown encoder 'of-a-plug-in'"),
        ({"probes.metrics": ("of_a_plug_in",)}, "of_a_plug_in"),
    ],
)
def test_what_is_not_installed_here_is_refused_before_anything_is_written(
    trial: SelectedTrial, change: Mapping[str, Any], told: str, tmp_path: Path
) -> None:
    other = replace(trial, experiment=trial.experiment.with_values(change))
    with pytest.raises(InputError, match=told):
        _plan(other)
    assert not (tmp_path / "results").exists()


def test_runs_of_an_earlier_search_of_the_name_are_not_mixed_with_new_ones(trial: SelectedTrial) -> None:
    plan = _plan(trial)
    earlier, later = (plan.record.created + timedelta(seconds=seconds) for seconds in (-1, 1))
    save_study(plan.location, make_record("searched", created=earlier))
    assert _plan(trial).record == plan.record
    delete_study(plan.location, "searched")
    save_study(plan.location, make_record("searched", created=later))
    with pytest.raises(InputError, match="searched-final holds runs of an earlier search named searched"):
        _plan(trial)
