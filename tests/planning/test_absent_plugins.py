"""A study of a plug-in does not go on where the plug-in is not installed; the message names it."""

from typing import Any

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plugin_changes import refuse_absent_plugins
from contrasweep.tuning.store import StudyRecord
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


NAMED = r"study demo needs a plug-in .* there were my-plugin 0.3.1"


@pytest.mark.parametrize(
    "used", [{"method": "mine"}, {"dataset": "mine"}, {"encoder": "mine"}, {"metrics": ("mine",)}]
)
def test_what_is_not_installed_is_named(used: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=NAMED):
        refuse_absent_plugins(record(**used))


def test_a_study_searches_on_with_its_sampler_and_final_runs_need_none() -> None:
    refuse_absent_plugins(record(), searches_on=True)
    refuse_absent_plugins(record(sampler="mine"))
    with pytest.raises(InputError, match=NAMED):
        refuse_absent_plugins(record(sampler="mine"), searches_on=True)


@pytest.mark.parametrize("used", [{}, {"dataset": "digits:imbalance=linear"}, {"encoder": "timm:resnet10t"}])
def test_a_study_of_ours_alone_goes_on(used: dict[str, str]) -> None:
    refuse_absent_plugins(record(**used))


def test_what_no_plugin_is_stated_for_is_answered_elsewhere() -> None:
    known = make_record(method="mine", versions={"contrasweep": "0.1.0"})
    refuse_absent_plugins(known)
