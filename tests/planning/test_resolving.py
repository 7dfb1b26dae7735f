"""Which value holds where: method default < dataset < preset < set; conditions; what is refused."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contrasweep.data import DatasetMissing, known_datasets
from contrasweep.search_spaces import (
    Space,
    available_presets,
    method_space,
    preset,
    shipped_dataset_settings,
)
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS
from contrasweep.tuning.planning.needs import lacking
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.planning.request import check_request, split_preset
from contrasweep.tuning.planning.resolve import check_experiment, resolve
from contrasweep.tuning.planning.rules import SearchRules
from contrasweep.tuning.planning.spaces import complete_space, pin_values, space_of, with_defaults

FITTING = [
    (method, facts.name)
    for facts in known_datasets()
    for method in METHODS
    if not lacking(METHODS[method], facts)
]


def test_values_that_a_loss_refuses_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def verify(values: object) -> None:
        raise ValueError("not both of them")

    changed = {**METHODS, "infonce": replace(METHODS["infonce"], verify=verify)}
    monkeypatch.setattr("contrasweep.tuning.planning.resolve.METHODS", changed)
    with pytest.raises(InputError, match="infonce: not both of them"):
        resolve("infonce", "digits")


def _refused(method: str, dataset: str, values: dict[str, Any] | None = None, **options: Any) -> str:
    with pytest.raises(InputError) as refused:
        resolve(method, dataset, values, **options)
    return str(refused.value)


@pytest.mark.parametrize(("method", "dataset"), FITTING)
def test_the_defaults_of_every_method_on_every_dataset_fit(method: str, dataset: str) -> None:
    e = resolve(method, dataset)
    check_experiment(e)
    assert (e.method, e.dataset) == (method, dataset)
    space, suggested = method_space(method), shipped_dataset_settings().get(dataset, {})
    # What a method fixes, a dataset's suggestion does not change.
    loose = {name: value for name, value in suggested.items() if name not in space.fixed}
    assert dataset in shipped_dataset_settings()
    for name, value in {**space.defaults(), **loose}.items():
        assert e.value(name) == value


def test_later_wins() -> None:
    # flip: 0.5 by the method's space, 0 by the dataset of digits, then what is set.
    assert method_space("infonce").defaults()["views.flip"] == 0.5
    assert shipped_dataset_settings()["digits"]["views.flip"] == 0.0
    assert resolve("infonce", "digits").views.flip == 0.0
    assert resolve("infonce", "digits", {"views.flip": 0.25}).views.flip == 0.25


def test_a_preset_is_over_the_defaults_and_under_what_is_set() -> None:
    found = preset("fair-cclk", "colormnist")
    assert found is not None
    plain = resolve("fair-cclk", "colormnist")
    by_paper = resolve("fair-cclk", "colormnist", use_preset=True)
    assert plain.optimizer.name != by_paper.optimizer.name == "lars"
    assert by_paper.views.min_crop == 0.08 != plain.views.min_crop
    # The preset says nothing of the probe's penalty: the dataset's word stays.
    assert by_paper.probes.standardise is plain.probes.standardise is False
    changed = resolve("fair-cclk", "colormnist", {"optimizer.lr": 0.7, "kernel": "rbf"}, use_preset=True)
    assert (changed.optimizer.name, changed.optimizer.lr) == ("lars", 0.7)
    assert (changed.hyperparameters["kernel"], changed.hyperparameters["sigma2"]) == ("rbf", 3000.0)


def test_a_preset_that_is_not_there_is_refused_with_those_of_the_method() -> None:
    assert "unknown preset 'fair-cclk@colour-digits'" in _refused(
        "fair-cclk", "colour-digits", use_preset=True
    )
    message = _refused("infonce", "digits", use_preset=True)
    assert "infonce@colormnist" in message
    assert "fair-cclk" not in message


def test_what_has_no_effect_is_left_out() -> None:
    assert "sigma2" not in resolve("fair-cclk", "colour-digits", {"kernel": "cosine"}).hyperparameters


@pytest.mark.parametrize("kernel", ["rbf", "laplacian", "linear", "polynomial"])
def test_a_kernel_with_a_scale_brings_its_default(kernel: str) -> None:
    e = resolve("fair-cclk", "colour-digits", {"kernel": kernel})
    # Of the linear and polynomial kernels, lam is the product of both: sigma2 is the loss's own 1.
    assert e.hyperparameters.get("sigma2") == (3000.0 if kernel in ("rbf", "laplacian") else None)
    given = resolve("fair-cclk", "colour-digits", {"kernel": kernel, "sigma2": 7.0})
    assert given.hyperparameters["sigma2"] == 7.0


def test_what_has_no_effect_cannot_be_set() -> None:
    message = _refused("fair-cclk", "colour-digits", {"kernel": "cosine", "sigma2": 3.0})
    assert message == "sigma2 has no effect with kernel=cosine: leave it out"


def test_nor_beside_the_kernel_of_a_preset() -> None:
    assert "sigma2 has no effect with kernel=cosine" in _refused(
        "fair-cclk", "colormnist", {"sigma2": 3.0}, use_preset=True
    )


def test_nor_beside_the_kernel_that_a_given_space_fixes() -> None:
    space = Space.parse({"kernel": "cosine"})
    message = _refused("fair-cclk", "colour-digits", {"sigma2": 3.0}, space=space)
    assert "sigma2 has no effect" in message


@pytest.mark.parametrize(
    ("values", "parts"),
    [
        ({"lambda": 1.0}, ["'lambda'", "'lam'"]),
        ({"temprature": 1.0}, ["'temprature'", "'temperature'"]),
        ({"optimizer.learning": 1.0}, ["'optimizer.learning'", "'optimizer.lr'"]),
        ({"optimiser.lr": 1.0}, ["'optimiser.lr'", "'optimizer.lr'"]),
        ({"clusters": 3}, ["fair-cclk has no hyperparameter 'clusters'", "sigma2"]),
        ({"method": "infonce"}, ["'method'"]),
        ({"kernel": "rbff"}, ["'rbff'", "'rbf'", "polynomial"]),
        ({"weights": "papers"}, ["'papers'", "'paper'"]),
        ({"lam": "much"}, ["lam", "'much'", "a number"]),
        ({"lam": 0}, ["lam", "above 0", "0"]),
        ({"lam": -1.0}, ["lam", "above 0", "-1.0"]),
        ({"lam": math.nan}, ["lam", "nan", "finite"]),
        ({"lam": True}, ["lam", "True", "a number"]),
        ({"epochs": 0}, ["'epochs'", "given 0"]),
        ({"encoder.name": "lenet"}, ["'lenet'", "'lenet5'"]),
        ({"encoder.mean": [0.5], "encoder.std": [0.5, 0.5]}, ["[0.5]", "[0.5, 0.5]", "differ"]),
        ({"encoder.mean": [0.5, 0.5], "encoder.std": [0.5, 0.5]}, ["2 numbers", "colour-digits", "(3)"]),
        ({"encoder.mean": [0.5], "encoder.std": [0.0]}, ["encoder.std", "greater than 0"]),
        ({"encoder.mean": [128.0], "encoder.std": [0.3]}, ["encoder.mean [128.0]", "divide", "by 255"]),
        ({"encoder.mean": [-0.5], "encoder.std": [0.3]}, ["encoder.mean [-0.5]", "allowed: 0 to 1"]),
        ({"encoder.mean": [0.5], "encoder.std": [64.0]}, ["encoder.std [64.0]", "divide", "by 255"]),
        ({"encoder.name": "lenet5"}, ["'lenet5'", "32 x 32", "colour-digits"]),
    ],
)
def test_a_wrong_value_is_refused_by_name(values: dict[str, Any], parts: list[str]) -> None:
    message = _refused("fair-cclk", "colour-digits", values)
    for part in parts:
        assert part in message
    assert "pydantic" not in message
    assert "\n" not in message


def test_a_count_is_whole() -> None:
    for value in (2.5, "2", True, 0):
        assert "clusters" in _refused("fair-infonce", "colour-digits", {"clusters": value})


def test_the_batches_of_a_method_hold_what_it_needs() -> None:
    # One-cluster batches of 2 would leave the odd image of a cluster alone; the sampler wants 3.
    assert "batch_size" in _refused("fair-infonce", "colour-digits", {"batch_size": 2})


def test_unknown_names_are_refused_with_the_nearest() -> None:
    assert "unknown method 'fair-clk'. Did you mean 'fair-cclk'?" in _refused("fair-clk", "digits")
    assert "unknown dataset 'colour-mnist'. Did you mean 'colormnist'?" in _refused("infonce", "colour-mnist")


@pytest.mark.parametrize("method", [name for name in METHODS if "condition" in METHODS[name].needs])
@pytest.mark.parametrize("dataset", ["digits", "mnist"])
def test_a_method_that_needs_a_condition_names_the_datasets_that_have_one(method: str, dataset: str) -> None:
    message = _refused(method, dataset)
    assert f"{method} needs a conditioning variable, which {dataset} has not" in message
    assert "colour-digits, colormnist" in message


def test_an_incomplete_experiment_names_what_is_missing() -> None:
    e = Experiment.model_validate(
        {"method": "infonce", "dataset": "digits", "encoder": {"name": "small-conv"}}
        | {"hyperparameters": {"negatives": "all"}}
    )
    with pytest.raises(InputError, match="temperature"):
        check_experiment(e)


def test_a_whole_number_is_the_same_setting_as_its_decimal() -> None:
    whole, decimal = (resolve("fair-cclk", "colour-digits", {"lam": value}) for value in (1, 1.0))
    assert whole.identity() == decimal.identity()


class TestPartialSpaces:
    """A space given for a search replaces the method's own; what it leaves out keeps its default, fixed."""

    def test_what_is_left_out_is_fixed_at_its_default(self) -> None:
        space = complete_space("fair-cclk", Space.parse({"lam": {"log": [0.1, 1.0], "default": 0.2}}))
        assert space.fixed == {
            "kernel": "rbf",
            "sigma2": 3000.0,
            "temperature": 0.2,
            "weights": "released",
        }
        assert [parameter.name for parameter in space.searched] == ["lam"]

    def test_settings_outside_the_method_are_not_added(self) -> None:
        space = complete_space("infonce", Space.parse({"temperature": {"uniform": [0.1, 1], "default": 0.5}}))
        assert set(space.names) == {"temperature", "negatives"}

    def test_its_defaults_hold_over_the_method_s(self) -> None:
        space = Space.parse(
            {
                "temperature": {"log": [0.1, 1.0], "default": 0.4},
                "batch_size": {"int": [32, 64], "default": 48},
                "views.flip": 0.5,
            }
        )
        e = resolve("infonce", "digits", space=space)
        assert e.hyperparameters == {"temperature": 0.4, "negatives": "all"}
        assert (e.batch_size, e.views.flip) == (48, 0.5)

    def test_a_searched_kernel_brings_its_scale(self) -> None:
        space = Space.parse({"kernel": {"choice": ["rbf", "laplacian"], "default": "rbf"}})
        e = resolve("fair-cclk", "colour-digits", space=space)
        assert e.hyperparameters["sigma2"] == 3000.0
        assert complete_space("fair-cclk", space).defaults()["sigma2"] == 3000.0

    def test_a_set_kernel_brings_its_scale(self) -> None:
        space = Space.parse({"lam": {"log": [0.1, 1.0], "default": 0.2}})
        e = resolve("fair-cclk", "colour-digits", {"kernel": "rbf"}, space=space)
        assert e.hyperparameters["sigma2"] == 3000.0

    def test_both_kinds_of_kernel_can_be_searched(self) -> None:
        space = complete_space(
            "fair-cclk", Space.parse({"kernel": {"choice": ["rbf", "cosine"], "default": "cosine"}})
        )
        assert "sigma2" not in space.complete({"kernel": "cosine"})
        assert space.complete({"kernel": "rbf"})["sigma2"] == 3000.0

    def test_an_unknown_name_in_it_is_refused_with_the_nearest(self) -> None:
        space = Space.parse({"temprature": {"log": [0.1, 1.0], "default": 0.2}}, "mine.yaml")
        with pytest.raises(InputError, match=r"mine\.yaml.*'temprature'.*'temperature'"):
            complete_space("infonce", space)
        dotted = Space.parse({"optimizer.rate": {"log": [0.1, 1.0], "default": 0.2}}, "mine.yaml")
        with pytest.raises(InputError, match=r"optimizer\.rate"):
            resolve("infonce", "digits", space=dotted)

    def test_its_defaults_hold_over_the_dataset_s_too(self) -> None:
        space = Space.parse({"views.flip": {"choice": [0.0, 0.5], "default": 0.5}})
        assert resolve("infonce", "digits").views.flip == 0.0
        assert resolve("infonce", "digits", space=space).views.flip == 0.5

    @pytest.mark.parametrize("name", ["epochs", "seed", "validation.seed", "probes.penalty"])
    def test_what_trials_are_compared_by_is_not_searched(self, name: str) -> None:
        space = Space.parse({name: {"choice": [1, 2], "default": 1}}, "mine.yaml")
        with pytest.raises(InputError, match=rf"mine\.yaml: {name} is not searched"):
            complete_space("infonce", space)

    def test_a_condition_that_leaves_a_gap_is_refused(self) -> None:
        space = Space.parse(
            {
                "kernel": {"choice": ["rbf", "laplacian", "cosine"], "default": "rbf"},
                "sigma2": {"log": [1.0, 10.0], "default": 2.0, "when": {"kernel": ["rbf"]}},
            }
        )
        with pytest.raises(InputError, match="sigma2 is also needed when kernel is laplacian"):
            complete_space("fair-cclk", space)

    def test_the_dataset_s_word_is_the_default_of_the_search(self) -> None:
        space = space_of("infonce", "digits", None)
        assert space == with_defaults(method_space("infonce"), shipped_dataset_settings()["digits"])
        assert space.defaults()["views.flip"] == 0.0
        assert [p.name for p in space.searched] == [p.name for p in method_space("infonce").searched]


class TestPinning:
    """A parameter that the user sets is searched no more."""

    def test_a_pinned_parameter_is_fixed_at_its_value(self) -> None:
        space = pin_values(method_space("fair-cclk"), {"lam": 3, "epochs": 9})
        assert space.fixed["lam"] == 3.0
        assert "lam" not in [parameter.name for parameter in space.searched]
        assert space.types()["lam"] == "float"

    def test_it_may_lie_outside_its_range(self) -> None:
        assert pin_values(method_space("fair-cclk"), {"lam": 1e6}).fixed["lam"] == 1e6

    def test_what_can_no_longer_have_an_effect_disappears(self) -> None:
        assert "sigma2" not in pin_values(method_space("fair-cclk"), {"kernel": "cosine"})
        kept = pin_values(method_space("fair-cclk"), {"kernel": "rbf"})
        assert "sigma2" in [parameter.name for parameter in kept.searched]
        assert kept.defaults()["sigma2"] == 3000.0

    def test_a_scale_alone_waits_for_the_kernels_that_have_one(self) -> None:
        space = pin_values(method_space("fair-cclk"), {"sigma2": 30.0})
        assert space.complete({**space.defaults(), "kernel": "rbf"})["sigma2"] == 30.0
        assert "sigma2" not in space.complete({**space.defaults(), "kernel": "cosine"})


def test_a_mean_is_for_images_not_for_views_that_come_with_the_data() -> None:
    with pytest.raises(InputError, match="two-view-digits has views of its own"):
        resolve("herocon", "two-view-digits", {"encoder.mean": [0.5], "encoder.std": [0.5]})
    with pytest.raises(InputError, match=r"encoder\.views apart is for images; two-view-digits has"):
        resolve("herocon", "two-view-digits", {"encoder.views": "apart"})


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"views.blur": 0.5}, r"views of digits: blur needs a size of 20 pixels or more"),
        ({"views.padding": 8}, r"views of digits: padding must be in 0\.\.size - 1, 7 pixels, got 8"),
    ],
)
def test_views_that_do_not_suit_the_images_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        resolve("infonce", "digits", values)


OF_ONE_MEMBER = ("cl-infonce", "imagenet1k")
"""Its preset is of the dataset with a hierarchy, whose file gives the condition."""


@pytest.mark.parametrize(
    ("method", "dataset"), [pair for pair in available_presets() if pair in FITTING and pair != OF_ONE_MEMBER]
)
def test_a_search_starts_from_its_preset(method: str, dataset: str) -> None:
    start, held, _ = split_preset(method, dataset, None, {})
    space = space_of(method, dataset, None, held, start)
    first = resolve(method, dataset, {**held, **space.defaults()}, space=space)
    assert first == resolve(method, dataset, use_preset=True)
    before = {parameter.name for parameter in method_space(method).searched}
    assert set(start) == {parameter.name for parameter in space.searched} & preset_names(method, dataset)
    assert all(name in before for name in start)


def preset_names(method: str, dataset: str) -> set[str]:
    found = preset(method, dataset)
    assert found is not None
    return set(found["settings"])


def test_what_a_preset_sets_is_searched_unless_the_range_does_not_hold_it() -> None:
    # A file's own range is kept, although LARS has another.
    mine = Space.parse(method_space("fair-cclk").forms())
    start, held, (remark,) = split_preset("fair-cclk", "colormnist", mine, {"lam": 1.0})
    assert start["kernel"] == "cosine"
    assert {"temperature", "views.min_crop"} <= set(start)
    assert held["optimizer.lr"] == 1.0e-3
    assert held["optimizer.name"] == "lars"
    assert "optimizer.lr is not searched: the preset has 0.001" in remark
    assert "lam" not in {**start, **held}
    space = space_of("fair-cclk", "colormnist", mine, held, start)
    assert {"kernel", "temperature"} <= {parameter.name for parameter in space.searched}
    assert space["kernel"].default == "cosine"


def test_what_of_a_preset_is_not_searched_is_told_once(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """A command checks the request before it loads torch, and the plan checks it again."""
    mine = Space.parse(method_space("fair-cclk").forms())
    check_request("fair-cclk", "colormnist", SearchRules(space=mine), use_preset=True)
    with pytest.raises(DatasetMissing):
        plan_sweep("fair-cclk", "colormnist", space=mine, use_preset=True, data_root=tmp_path)
    assert caplog.text.count("optimizer.lr is not searched: the preset has 0.001") == 1


def test_what_a_set_value_switches_off_is_left_out_of_the_preset() -> None:
    start, held, _ = split_preset("cl-infonce", "cub", None, {"clusters_from": "labels"})
    assert "top_k" not in {**start, **held}
    start, held, _ = split_preset("herocon", "noisy-mnist-2v", None, {"between_labels": "none"})
    assert "beta" not in {**start, **held}
    values = {"between_labels": "none", **held}
    space_of("herocon", "noisy-mnist-2v", None, values, start)
