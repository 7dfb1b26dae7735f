"""Settings that a run does not use are warned of, where the user gave them."""

from collections.abc import Mapping
from typing import Any

import pytest

from contrasweep.tuning.objectives.prepared import spec_for
from contrasweep.tuning.planning.plan_sweep import plan_sweep
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
        (
            {"head.hidden": 64, "head.name": "linear"},
            "head.hidden has no effect with head.name=linear: leave it out.",
        ),
        (
            {"head.width": 64, "head.name": "none"},
            "head.width has no effect with head.name=none: leave it out.",
        ),
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


@pytest.mark.parametrize(
    ("space", "values", "warning"),
    [
        # The default of a searched setting is told too: other trials have other values.
        (
            {"optimizer.name": "adam", "optimizer.momentum": {"uniform": [0.5, 0.9]}},
            {},
            "optimizer.momentum has",
        ),
        ({"schedule.name": "constant", "schedule.final_fraction": 0.1}, {}, "schedule.final_fraction has"),
        (
            {"kernel": "cosine", "sigma2": {"log": [1, 10]}},
            {},
            "sigma2 has no effect with kernel=cosine: leave",
        ),
        (
            {"kernel": {"choice": ["rbf", "cosine"]}, "sigma2": 5.0},
            {"kernel": "cosine"},
            "sigma2 has no effect",
        ),
        ({"kernel": {"choice": ["linear", "cosine"]}, "sigma2": 5.0}, {}, None),
        ({"optimizer.name": {"choice": ["sgd", "adam"]}, "optimizer.momentum": 0.5}, {}, None),
    ],
)
def test_what_a_space_names_in_vain_is_told(
    space: dict[str, Any], values: dict[str, Any], warning: str | None
) -> None:
    plan = plan_sweep("fair-cclk", "colour-digits", name="a", space=space, values=values)
    unused = [one for one in plan.warnings if "has no effect" in one]
    assert len(unused) == (warning is not None)
    assert all(one.startswith(str(warning)) for one in unused)


@pytest.mark.parametrize(("trials", "told"), [(20, True), (21, True), (22, False)])
def test_a_condition_that_can_end_no_search_is_told(trials: int, told: bool) -> None:
    plan = plan_sweep("infonce", "digits", name="a", trials=trials, stop_when="gain<noise for 20")
    found = [one for one in plan.warnings if one.startswith("stop-when 'gain<noise for 20' has no effect on")]
    assert len(found) == told
