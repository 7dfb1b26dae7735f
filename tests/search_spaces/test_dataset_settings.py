"""The datasets' default settings: every dataset has some, and a wrong file is refused."""

import pytest

from contrasweep.data import DATASETS
from contrasweep.search_spaces import SpaceError, shipped_dataset_settings
from contrasweep.search_spaces.dataset_settings import parse_dataset_settings
from contrasweep.tuning.experiment import Experiment


def test_every_dataset_has_settings_that_an_experiment_has() -> None:
    shipped = shipped_dataset_settings()
    assert set(shipped) == {*DATASETS}
    for name, settings in shipped.items():
        e = Experiment(method="infonce", dataset=name).with_values(settings)
        assert {setting: e.value(setting) for setting in settings} == settings


def test_an_entry_takes_what_it_extends_and_changes_some_of_it() -> None:
    content = {"a": {"x": 1, "y": 1}, "b": {"extends": "a", "y": 2, "z": 2}, "c": {"extends": "b", "z": 3}}
    found = parse_dataset_settings(content, "a file")
    assert found["a"] == {"x": 1, "y": 1}
    assert found["b"] == {"x": 1, "y": 2, "z": 2}
    assert found["c"] == {"x": 1, "y": 2, "z": 3}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([], "a file: given list; allowed: a mapping of dataset to settings"),
        ({"a": 3}, "a file: a: given int; allowed: a mapping of setting to value"),
        ({"a": {"x": None}}, "a file: a: x: given None; allowed: a number, a word, true or false"),
        ({"digits": {}, "a": {"extends": "digit"}}, "extends unknown 'digit'. Did you mean 'digits'?"),
        ({"a": {"extends": "b"}, "b": {"extends": "a"}}, "a: extends itself: a -> b -> a"),
    ],
)
def test_a_wrong_file_is_refused(content: object, message: str) -> None:
    with pytest.raises(SpaceError) as refused:
        parse_dataset_settings(content, "a file")
    assert message in str(refused.value)
