"""Numbers that no run can reach, or that contradict each other, are refused before a sweep begins."""

from typing import Any

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"keep": ["accuracy>=95"]}, r"val.accuracy lies between 0 and 1; .* such as 0.95"),
        ({"keep": ["ridge_accuracy<=-1"]}, r"val.ridge_accuracy lies between 0 and 1"),
        ({"stop_when": "gain<5 for 20"}, r"val.accuracy lies between 0 and 1; .* such as 0.05"),
        ({"epochs": 2, "values": {"epochs": 3}}, r"epochs is given twice: 2 and 3"),
    ],
)
def test_a_number_that_means_nothing_is_refused(options: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        plan_sweep("infonce", "colour-digits", **options)


def test_numbers_that_mean_something_are_taken() -> None:
    keep = ["accuracy>=0.95", "colour_mse>=2000"]
    plan = plan_sweep("infonce", "colour-digits", keep=keep, stop_when="gain<0.05 for 20")
    assert [one.bound for one in plan.search.keep] == [0.95, 2000]
    both = plan_sweep("infonce", "colour-digits", epochs=3, values={"epochs": 3})
    assert both.experiment.epochs == 3
