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
        (
            {"keep": ["accuracy>1"]},
            "--keep: no score satisfies val.accuracy > 1, so no trial could be the best",
        ),
        ({"keep": ["colour_mse<0"]}, "no score satisfies val.colour_mse < 0"),
        ({"keep": ["accuracy>=0.9", "accuracy<0.9"]}, "satisfies val.accuracy >= 0.9 and val.accuracy < 0.9"),
        ({"keep": ["train.loss>2", "accuracy>0", "train.loss<=2"]}, "train.loss > 2 and train.loss <= 2"),
        ({"stop_when": "gain<5 for 20"}, r"val.accuracy lies between 0 and 1; .* such as 0.05"),
        ({"epochs": 2, "values": {"epochs": 3}}, r"epochs is given twice: 2 and 3"),
    ],
)
def test_a_number_that_means_nothing_is_refused(options: Any, told: str) -> None:
    with pytest.raises(InputError, match=told):
        plan_sweep("infonce", "colour-digits", **options)


def test_numbers_that_mean_something_are_taken() -> None:
    keep = ["accuracy>=1", "accuracy<=1", "colour_mse>=2000"]
    plan = plan_sweep("infonce", "colour-digits", keep=keep, stop_when="gain<0.05 for 20")
    assert [one.bound for one in plan.search.keep] == [1, 1, 2000]
    both = plan_sweep("infonce", "colour-digits", epochs=3, values={"epochs": 3})
    assert both.experiment.epochs == 3
