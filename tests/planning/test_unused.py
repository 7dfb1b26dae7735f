"""Settings that a run does not use are warned of, where the user gave them."""

from collections.abc import Mapping
from typing import Any

import pytest

from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.planning.train_plan import plan_training
from contrasweep.tuning.planning.unused import WITHOUT_EFFECT, unused_in_words


def told(given: Mapping[str, Any], searched: tuple[str, ...] = ()) -> list[str]:
    experiment = resolve("infonce", "digits", given)
    return unused_in_words(experiment, given, spec_for(experiment), searched)


@pytest.mark.parametrize(
    ("given", "warning"),
    [
        ({"optimizer.trust": 0.1}, "optimizer.trust has no effect with optimizer.name=sgd: leave it out."),
        ({"views.local_size": 4}, "views.local_size has no effect with views.local_crops=0: leave it out."),
        (
            {"schedule.factor": 0.5, "schedule.name": "constant"},
            "schedule.factor has no effect with schedule.name=constant: leave it out.",
        ),
    ],
)
def test_a_setting_that_another_one_switches_off_is_told(given: dict[str, Any], warning: str) -> None:
    assert told(given) == [warning]


def test_used_settings_and_defaults_are_not_told() -> None:
    assert told({"optimizer.trust": 0.1, "optimizer.name": "lars"}) == []
    assert told({"optimizer.trust": 0.1}, searched=("optimizer.name",)) == []
    # As in the file of a best configuration, which holds all settings.
    experiment = resolve("infonce", "digits")
    assert told({name: experiment.value(name) for name in WITHOUT_EFFECT}) == []


def test_settings_of_views_are_told_where_the_data_has_views_of_its_own() -> None:
    experiment = resolve("herocon", "two-view-digits", given := {"views.hue": 0.1})
    (warning,) = unused_in_words(experiment, given, spec_for(experiment))
    assert warning.startswith("views.hue has no effect with two-view-digits: ")


def test_training_warns_of_them_and_of_a_batch_that_is_larger_than_the_data() -> None:
    given = {"optimizer.trust": 0.1, "batch_size": 2000}
    unused, batch = plan_training("infonce", "digits", given, AskedResources(1)).warnings
    assert unused.startswith("optimizer.trust has no effect")
    assert batch.startswith("batch_size 2,000 is above the 1,294 images that the run trains on")
