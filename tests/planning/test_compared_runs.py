"""Which configurations final runs compare: those that are scored on the same images."""

import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.final_plan import by_study
from contrasweep.tuning.planning.resolve import resolve


def _config(study: str, dataset: str, trial: int = 0) -> BestConfig:
    return BestConfig(study, trial, {}, resolve("infonce", "digits").with_values({"dataset": dataset}))


def test_methods_with_and_without_a_condition_are_compared() -> None:
    configs = [_config("kernel", "cifar10:condition=clip.npy"), _config("plain", "cifar10")]
    assert by_study(configs) == {"kernel": configs[:1], "plain": configs[1:]}


@pytest.mark.parametrize("other", ["cifar100", "cifar10:images=5000", "cifar10:imbalance=linear"])
def test_configurations_on_other_images_are_refused(other: str) -> None:
    configs = [_config("kernel", "cifar10:condition=clip.npy"), _config("plain", other)]
    with pytest.raises(
        InputError, match=r"on one dataset, given cifar10.*; only the options of its condition"
    ):
        by_study(configs)


def test_a_trial_is_given_once() -> None:
    with pytest.raises(InputError, match="trial 0 of study plain is given twice"):
        by_study([_config("plain", "cifar10"), _config("plain", "cifar10")])
