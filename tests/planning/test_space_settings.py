"""Values in a user's space: what goes together is accepted, what is read as another value is refused."""

from pathlib import Path
from typing import Any

import pytest

from contrasweep.search_spaces import Scalar, Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.planning import spaces
from contrasweep.tuning.planning.best_config import best_yaml, load_best
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.spaces import complete_space
from contrasweep.tuning.results.selection import SelectedTrial


def plan(space: dict[str, Any], **values: Any) -> SweepPlan:
    return plan_sweep("fair-cclk", "colour-digits", name="a", trials=4, space=space, values=values)


@pytest.mark.parametrize(
    ("space", "values"),
    [
        ({"views.min_crop": 0.05, "views.max_crop": {"uniform": [0.1, 0.4]}}, {}),
        ({"views.max_crop": {"uniform": [0.1, 0.4]}}, {"views.min_crop": 0.05}),
        ({"schedule.name": "cosine-min-ramp", "schedule.warmup_epochs": {"uniform": [1, 3]}}, {}),
        ({"schedule.name": {"choice": ["cosine", "step"]}}, {"schedule.milestones": [0.5]}),
        (
            {
                "optimizer.name": {"choice": ["sgd", "larc"]},
                "optimizer.larc_clip": {"choice": [True, False], "when": {"optimizer.name": "larc"}},
            },
            {},
        ),
    ],
)
def test_settings_that_go_together_are_searched(space: dict[str, Any], values: dict[str, Any]) -> None:
    assert {*space} <= {*plan(space, **values).space.names}


@pytest.mark.parametrize(
    ("space", "told"),
    [
        ({"views.min_crop": 0.9, "views.max_crop": 0.5}, "views.min_crop 0.9 is above views.max_crop 0.5"),
        (
            {"views.min_crop": 0.3, "views.max_crop": {"uniform": [0.2, 1.0]}},
            "views.max_crop = 0.2, which space allows: views.min_crop 0.3 is above views.max_crop 0.2",
        ),
        ({"views.min_crop": {"uniform": [0.2, 1.5]}}, "'views.min_crop': Input should be less than or equal"),
        ({"optimizer.nesterov": "yes"}, "optimizer.nesterov: given 'yes'; allowed: true or false"),
        ({"optimizer.nesterov": {"choice": [1, 0]}}, "optimizer.nesterov: given 1; allowed: true or false"),
        (
            {"optimizer.name": "larc", "optimizer.larc_clip": {"choice": ["no", "yes"]}},
            "optimizer.larc_clip: given 'no'; allowed: true or false",
        ),
        ({"batch_size": {"choice": ["32", "64"]}}, "batch_size: given '32'; allowed: a whole number"),
        ({"lam": {"int": [1, 3]}}, "lam: given int; allowed: uniform, log or a choice of numbers"),
    ],
)
def test_settings_that_do_not_go_together_or_are_read_otherwise_are_refused(
    space: dict[str, Any], told: str
) -> None:
    with pytest.raises(InputError) as refused:
        plan(space)
    assert told in str(refused.value)


@pytest.mark.parametrize("form", [1, {"choice": [2, 1], "default": 1}, {"fixed": 1, "of": [1, 2]}])
def test_a_whole_number_for_a_fraction_becomes_one(form: Any) -> None:
    own = complete_space("fair-cclk", Space.parse({"lam": form}))["lam"]
    assert {type(value) for value in (own.default, *own.values())} == {float}


def test_a_file_of_the_best_trial_is_the_same_experiment(tmp_path: Path) -> None:
    searched = plan({"lam": 1, "batch_size": 64})
    values = searched.new_study().ask().values
    experiment = searched.experiment_of(values)
    file = tmp_path / "best.yaml"
    selected = SelectedTrial("a", 0, dict(values), experiment, "val.accuracy", 0.9, None, {})
    file.write_text(best_yaml(selected, {}))
    # `run STUDY` and then `run best.yaml` are the same final runs.
    assert load_best(file).experiment.identity() == experiment.identity()


def test_each_value_of_a_long_choice_is_checked_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[object] = []
    check = spaces._check_setting

    def counted(base: Experiment, name: str, value: Scalar) -> None:
        checked.append(value)
        check(base, name, value)

    monkeypatch.setattr(spaces, "_check_setting", counted)
    plan({"views.min_crop": {"choice": [number / 100 for number in range(1, 101)]}})
    assert len(checked) < 10 * 100


def test_given_values_beside_a_space_without_them_decide_what_has_an_effect() -> None:
    space = Space.parse({"temperature": {"log": [0.1, 1.0], "default": 0.2}})
    linear = complete_space("fair-cclk", space, {"kernel": "linear", "sigma2": 5.0})
    assert linear.defaults()["sigma2"] == 5.0
    assert "sigma2" not in complete_space("fair-cclk", space, {"kernel": "cosine"})
