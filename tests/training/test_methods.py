"""Checks of every method in the registry; a new method is covered as soon as it is there."""

import math
import re
from pathlib import Path

import pytest
import torch

from contrasweep.data import known_datasets
from contrasweep.rules import Number
from contrasweep.search_spaces import available_presets, available_spaces, preset
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import METHODS, Hyperparameter
from contrasweep.tuning.methods.dfa import Disentangled
from contrasweep.tuning.methods.hex import ProjectedClassifier
from contrasweep.tuning.methods.l_softmax import LargeMarginClassifier
from contrasweep.tuning.objectives.classifiers import ClassifierBeside, EndToEndClassifier
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import prepare_data
from contrasweep.tuning.objectives.transductive import MultiViewClassifier
from contrasweep.tuning.objectives.two_networks import TwoNetworks
from contrasweep.tuning.planning.needs import lacking
from contrasweep.tuning.planning.resolve import resolve

COLUMNS_PAGE = Path(__file__).parents[2] / "docs" / "columns.md"
ALL = pytest.mark.parametrize("name", list(METHODS))


def _fitting(name: str) -> list[str]:
    return [facts.name for facts in known_datasets() if facts.embedded and not lacking(METHODS[name], facts)]


@ALL
def test_a_method_says_where_it_comes_from(name: str) -> None:
    method = METHODS[name]
    assert method.name == name
    assert method.summary
    assert method.paper
    assert method.equation
    assert all(hyperparameter.summary for hyperparameter in method.hyperparameters.values())


def test_every_method_ships_a_space_and_every_space_has_a_method() -> None:
    assert set(available_spaces()) == set(METHODS)


def test_what_the_methods_report_is_documented_under_one_name_each() -> None:
    rows = re.findall(
        r"^\| (`[a-z_`, ]+`) \| ([a-z0-9`, -]+) \| .+ \|$", COLUMNS_PAGE.read_text(), re.MULTILINE
    )
    documented = {
        (metric, method)
        for metrics, methods in rows
        for metric in re.findall(r"`(\w+)`", metrics)
        for method in re.findall(r"`([a-z0-9-]+)`", methods)
    }
    reported = {(metric, name) for name, method in METHODS.items() for metric in method.train_metrics}
    assert documented == reported


@ALL
def test_it_builds_on_every_dataset_that_has_what_it_needs(name: str) -> None:
    assert _fitting(name)
    for dataset in _fitting(name):
        e = resolve(name, dataset)
        data = prepare_data(e, None, torch.device("cpu"))
        encoder = data.build_encoder(e.encoder)
        objective = METHODS[name].build(e, encoder, data)
        assert isinstance(objective, Objective)
        assert objective.encoder is encoder
        assert sum(p.numel() for p in objective.parameters()) > sum(p.numel() for p in encoder.parameters())


WITHOUT_HEAD = (
    ClassifierBeside,
    Disentangled,
    EndToEndClassifier,
    LargeMarginClassifier,
    MultiViewClassifier,
    ProjectedClassifier,
    TwoNetworks,
)


@ALL
def test_the_head_follows_its_settings(name: str) -> None:
    dataset = _fitting(name)[0]
    e = resolve(name, dataset, {"head.hidden": 24, "head.width": 16})
    data = prepare_data(e, None, torch.device("cpu"))
    encoder = data.build_encoder(e.encoder)
    objective = METHODS[name].build(e, encoder, data)
    if isinstance(objective, WITHOUT_HEAD):
        # The classifier reads the features themselves, and so does the loss unless it is asked otherwise.
        assert getattr(objective, "head", None) is None
        return
    assert _linear(objective) == _layers(e, 24, 16, encoder.width)
    usual = resolve(name, dataset)
    by_default = METHODS[name].build(usual, encoder, data)
    hidden = usual.head.hidden or encoder.width
    assert _linear(by_default) == _layers(usual, hidden, usual.head.width, encoder.width)


def _linear(objective: Objective) -> list[tuple[int, ...]]:
    return [tuple(p.shape) for p in objective.head.parameters() if p.ndim == 2]


def _layers(e: Experiment, hidden: int, width: int, inputs: int) -> list[tuple[int, ...]]:
    """Return the shapes of the linear layers of a head with hidden layers."""
    between = [(hidden, hidden)] if e.head.name == "mlp3" else []
    return [(hidden, inputs), *between, (width, hidden)]


# Their datasets' names end in a file of features or of a hierarchy: tests/data trains them with one.
WITH_A_FILE = {
    ("fairkl", "imagenet9"),
    ("cl-infonce", "imagenet1k"),
    ("weaklysup-cclk", "imagenet100"),
    ("weaklysup-infonce", "imagenet100"),
}


@pytest.mark.parametrize("pair", [pair for pair in available_presets() if pair not in WITH_A_FILE])
def test_every_preset_is_a_valid_experiment(pair: tuple[str, str]) -> None:
    found = preset(*pair)
    assert found is not None
    e = resolve(*pair, use_preset=True)
    held = {name: e.value(name) for name in found["settings"]}
    assert {n: list(v) if isinstance(v, tuple) else v for n, v in held.items()} == found["settings"]


def test_an_unknown_hyperparameter_is_named() -> None:
    with pytest.raises(InputError, match=r"hyperparameter of infonce: 'temprature'.*'temperature'"):
        METHODS["infonce"].check({"temprature": 0.1, "negatives": "all"})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "above 0, given 0"),
        (-1.5, "above 0, given -1.5"),
        (math.nan, "finite number, given nan"),
        (math.inf, "finite number, given inf"),
        ("0.1", "finite number, given '0.1'"),
        (True, "finite number, given True"),
    ],
)
def test_a_number_out_of_place_is_refused(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Hyperparameter("", Number(above=0)).check("x", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [2.0, 2.5, True, "2", 0])
def test_a_count_is_a_whole_number(value: object) -> None:
    with pytest.raises(InputError, match=r"^clusters must be"):
        METHODS["fair-infonce"].hyperparameters["clusters"].check("clusters", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["bth", 3, True])
def test_a_choice_is_one_of_its_names(value: object) -> None:
    with pytest.raises(InputError, match=r"value of negatives.*cross, all"):
        METHODS["infonce"].hyperparameters["negatives"].check("negatives", value)  # type: ignore[arg-type]


def test_what_is_allowed_passes() -> None:
    METHODS["infonce"].check({"temperature": 1, "negatives": "cross"})
    Hyperparameter("", Number(at_least=1, whole=True)).check("x", 1)
    Hyperparameter("", Number()).check("x", -3)
