"""A study has one name of its dataset, however a user spells it: splits are drawn for the name."""

from dataclasses import replace
from pathlib import Path

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference

ONE_NAME = "biased-digits:images=300"
SPELLED = ("biased-digits:images=300", "biased-digits:rho=0.9,images=300", "biased-digits:images=300,rho=0.9")


def planned(results: Path, dataset: str) -> SweepPlan:
    return plan_sweep("infonce", dataset, epochs=2, name="study", results=results)


@pytest.mark.parametrize("dataset", SPELLED)
def test_every_spelling_gives_the_same_experiment(tmp_path: Path, dataset: str) -> None:
    plan = planned(tmp_path, dataset)
    assert plan.dataset == plan.experiment.dataset == plan.record().dataset == ONE_NAME


@pytest.mark.parametrize("dataset", SPELLED)
def test_a_study_goes_on_by_every_spelling(tmp_path: Path, dataset: str) -> None:
    plan = planned(tmp_path, ONE_NAME)
    earlier = plan.record().model_copy(update={"dataset": SPELLED[1]})
    for record in (plan.record(), earlier):
        refuse_difference(replace(plan, dataset=record.dataset), record, Expected(dataset=dataset))
    with pytest.raises(InputError, match=r"was biased-digits:images=300, is biased-digits:rho=0\.5"):
        refuse_difference(plan, plan.record(), Expected(dataset="biased-digits:rho=0.5,images=300"))
