"""A resumed study is compared with what was given in the words in which it was given."""

from functools import cache
from typing import Any

import pytest

from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import SweepPlan, plan_of
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.resources import AskedResources, Machine
from contrasweep.tuning.planning.resume_check import Expected, refuse_difference

CONDITIONAL = {
    "kernel": {"choice": ["cosine", "rbf"], "default": "cosine"},
    "sigma2": {"fixed": 5.0, "when": {"kernel": "rbf"}},
    "temperature": {"log": [0.1, 1.0]},
}


@cache
def usual() -> SweepPlan:
    return plan_sweep("fair-cclk", "colour-digits", name="a", values={"kernel": "cosine"})


@pytest.mark.parametrize(
    "values",
    [
        # YAML 1.2 reads these as text, and an experiment as true and as a number.
        {"optimizer.nesterov": "yes", "batch_size": "64"},
        {"epochs": "3"},
        {"encoder.mean": [0.5], "encoder.std": [1]},
        {"schedule.name": "step", "schedule.milestones": [0, 1]},
        {"lam": 1},
    ],
)
def test_the_same_values_go_on_however_they_are_written(values: dict[str, Any]) -> None:
    plan = plan_sweep("fair-cclk", "colour-digits", name="a", values=values)
    refuse_difference(plan, plan.record(), Expected(values=values))


def test_a_value_that_trial_0_does_not_have_goes_on() -> None:
    plan = plan_sweep("fair-cclk", "colour-digits", name="a", space=CONDITIONAL, values={"sigma2": 5})
    assert "sigma2" not in plan.experiment.hyperparameters
    refuse_difference(plan, plan.record(), Expected(values={"sigma2": 5}))
    with pytest.raises(InputError, match=r"sigma2 was 5\.0, is 6\."):
        refuse_difference(plan, plan.record(), Expected(values={"sigma2": 6}))


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ({"values": {"sigma2": 3}}, "study a cannot go on: sigma2 was not given, is 3. Start a new one."),
        ({"values": {"lam": "x"}}, "study a cannot go on: lam was searched, is x. Start a new one."),
        ({"values": {"epochs": "x"}}, "study a cannot go on: epochs was 10, is x. Start a new one."),
        ({"values": {"kernal": 3}}, "unknown setting for fair-cclk: 'kernal'. Did you mean 'kernel'?"),
        ({"grace": 3}, "study a cannot go on: grace was not given, is 3. Start a new one."),
        ({"warm_start": ["b"]}, "study a cannot go on: warm_start was not given, is b. Start a new one."),
    ],
)
def test_a_difference_is_told_in_one_short_line(expected: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as refused:
        refuse_difference(usual(), usual().record(), Expected(**expected))
    assert str(refused.value) == told


@pytest.mark.parametrize(
    ("expected", "nearest"),
    [
        ({"dataset": "colour-digit"}, "colour-digits"),
        ({"sampler": "curve"}, "curves"),
        ({"scheduler": "ash"}, "asha"),
    ],
)
def test_an_unknown_name_is_told_as_such(expected: dict[str, Any], nearest: str) -> None:
    with pytest.raises(InputError, match=f"Did you mean '{nearest}'"):
        refuse_difference(usual(), usual().record(), Expected(**expected))


def test_the_order_of_conditions_and_the_defaults_of_a_space_do_not_differ() -> None:
    keep = ["colour_mse>=200", "accuracy>0.5"]
    space = Space.parse({"temperature": {"log": [0.1, 1.0], "default": 0.2}})
    plan = plan_sweep("fair-cclk", "colour-digits", name="a", keep=keep, space=space)
    # A preset has defaults of its own, and is left out when the study goes on.
    other = Space.parse({"temperature": {"log": [0.1, 1.0], "default": 0.5}})
    refuse_difference(plan, plan.record(), Expected(keep=keep[::-1], space=other))


def test_a_study_of_few_trials_keeps_how_many_may_run_at_once() -> None:
    there = Machine((4,))
    plan = plan_sweep("infonce", "digits", name="a", trials=1, concurrency=3, machine=there)
    assert plan.resources.concurrency == 1
    again = plan_of(plan.record(), "r", AskedResources(machine=there), extend=5)
    assert again.resources.concurrency == 3
