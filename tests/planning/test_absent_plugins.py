"""A study of a plug-in does not go on where the plug-in is not installed; the message names it."""

from pathlib import Path
from typing import Any

import pytest

from contrasweep.tuning.catalogue.declared import DECLARED_METHODS
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plugin_changes import plugins_behind, refuse_absent_plugins
from contrasweep.tuning.provenance import package_versions
from contrasweep.tuning.store import StudyRecord
from tests.plugin.installing import write_metadata
from tests.studies import make_record

VERSIONS = {"contrasweep": "0.1.0", "my-plugin": "0.3.1", "my-plugin source": "0a1b"}


def record(
    method: str = "infonce",
    dataset: str = "digits",
    encoder: str = "small-conv",
    metrics: tuple[str, ...] = (),
    sampler: str = "tpe",
) -> StudyRecord:
    experiment = {"epochs": 2, "encoder": {"name": encoder}, "probes": {"metrics": metrics}}
    made = make_record(method=method, dataset=dataset, experiment=experiment, versions=VERSIONS)
    return made.model_copy(update={"search": made.search.model_copy(update={"sampler": sampler})})


FROM = "comes from the plug-in my-plugin 0.3.1, which is not installed: `pip install my-plugin`"


def refused(stored: StudyRecord, searches_on: bool = False) -> str:
    with pytest.raises(InputError) as error:
        refuse_absent_plugins(stored, searches_on)
    return str(error.value)


@pytest.mark.parametrize(
    "used", [{"method": "mine"}, {"dataset": "mine"}, {"encoder": "mine"}, {"metrics": ("mine",)}]
)
def test_what_is_not_installed_is_named(used: dict[str, Any]) -> None:
    (kind,) = used
    assert refused(record(**used)) == f"study demo: {kind.removesuffix('s')} 'mine' {FROM}"


STATED = {
    **VERSIONS,
    "my-plugin adds": "method mine, metric mine",
    "your-plugin": "2",
    "your-plugin source": "c",
    "your-plugin adds": "method yours",
}


def test_of_several_the_one_is_named_that_added_it() -> None:
    stored = record(method="mine", metrics=("mine",)).model_copy(update={"versions": STATED})
    assert refused(stored) == f"study demo: method 'mine' {FROM}; metric 'mine' {FROM}"
    # Records of earlier versions do not state what a plug-in adds.
    older = {name: version for name, version in STATED.items() if not name.endswith(" adds")}
    assert refused(stored.model_copy(update={"versions": older})).endswith(
        "metric 'mine' comes from a plug-in that is not installed; when the study began, "
        "there were my-plugin 0.3.1, your-plugin 2"
    )


def test_a_plugin_that_no_longer_adds_it_is_named_with_both_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_metadata(tmp_path, "my-plugin", {"contrasweep.methods": {"other": "other:METHOD"}})
    monkeypatch.syspath_prepend(str(tmp_path))
    # Found anew with what this test brings, and forgotten after it.
    assert "mine" not in DECLARED_METHODS
    monkeypatch.delitem(vars(DECLARED_METHODS), "_others")
    told = refused(record(method="mine").model_copy(update={"versions": STATED}))
    assert told.endswith(
        "from the plug-in my-plugin 0.3.1; my-plugin 0.1.0, which is installed, does not have it: "
        "`pip install my-plugin==0.3.1`"
    )


def test_what_a_plugin_adds_is_recorded_and_goes_into_a_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {"contrasweep.methods": {"mine": "m:M", "two": "m:T"}, "contrasweep.encoders": {"net": "m:E"}}
    write_metadata(tmp_path, "my-plugin", points)
    monkeypatch.syspath_prepend(str(tmp_path))
    versions = package_versions()
    assert versions["my-plugin adds"] == "method mine, method two, encoder net"
    used = record(method="mine", encoder="net").experiment
    of_it = {"method mine": "my-plugin 0.1.0", "encoder net": "my-plugin 0.1.0"}
    assert plugins_behind(used, versions) == of_it
    assert plugins_behind(record().experiment, versions) == {}


def test_a_study_searches_on_with_its_sampler_and_final_runs_need_none() -> None:
    refuse_absent_plugins(record(), searches_on=True)
    refuse_absent_plugins(record(sampler="mine"))
    assert refused(record(sampler="mine"), searches_on=True) == f"study demo: sampler 'mine' {FROM}"


@pytest.mark.parametrize("used", [{}, {"dataset": "digits:imbalance=linear"}, {"encoder": "timm:resnet10t"}])
def test_a_study_of_ours_alone_goes_on(used: dict[str, str]) -> None:
    refuse_absent_plugins(record(**used))


def test_what_no_plugin_is_stated_for_is_answered_elsewhere() -> None:
    known = make_record(method="mine", versions={"contrasweep": "0.1.0"})
    refuse_absent_plugins(known)
