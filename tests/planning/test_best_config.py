"""`best.yaml`: written, read back the same, and refused where it cannot be what it says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

import contrasweep
from contrasweep.search_spaces import SpaceError
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.best_config import best_yaml, config_of, load_best, read_mapping
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.results.selection import SelectedTrial

VALUES = {"kernel": "rbf", "sigma2": 1 / 3, "lam": 0.01, "optimizer.lr": 1e-7, "views.flip": 0.0}
SELECTED = SelectedTrial(
    study="demo",
    trial=3,
    values=VALUES,  # type: ignore[arg-type]
    experiment=resolve("fair-cclk", "colour-digits", {**VALUES, "seed": 4}),
    metric="val.accuracy",
    score=0.9123,
    untrained=0.8,
    metrics={"val.accuracy": 0.9123},
    rule="highest val.accuracy at the last epoch among completed trials",
)


@pytest.fixture
def best(tmp_path: Path) -> Path:
    path = tmp_path / "best.yaml"
    path.write_text(best_yaml(SELECTED, {}))
    return path


def _edit(path: Path, **changes: Any) -> Path:
    content = yaml.safe_load(path.read_text()) | changes
    path.write_text(yaml.safe_dump({key: value for key, value in content.items() if value is not None}))
    return path


def _refused(path: Path) -> str:
    with pytest.raises(InputError) as refused:
        load_best(path)
    message = str(refused.value)
    assert str(path) in message
    return message


def test_what_was_written_is_read_back(best: Path) -> None:
    config = load_best(best)
    assert config == config_of(SELECTED)
    assert config.experiment.identity() == SELECTED.experiment.identity()
    assert config.experiment.seed == 4


def test_a_whole_number_for_a_float_is_the_same_experiment(tmp_path: Path) -> None:
    """Programs that read and write the file may write 1 for 1.0; its runs then must not be other runs."""
    values = {**VALUES, "sigma2": 1.0}
    experiment = resolve("fair-cclk", "colour-digits", {**values, "seed": 4})
    selected = replace(SELECTED, values=values, experiment=experiment)
    path = tmp_path / "best.yaml"
    text = best_yaml(selected, {})
    assert text.count("sigma2: 1.0") == 2
    path.write_text(text.replace("sigma2: 1.0", "sigma2: 1"))
    assert load_best(path).experiment.identity() == experiment.identity()
    assert type(load_best(path).values["sigma2"]) is float


def test_the_file_states_its_plugins_and_is_refused_where_they_are_absent(tmp_path: Path) -> None:
    selected = replace(SELECTED, experiment=SELECTED.experiment.model_copy(update={"method": "mine"}))
    versions = {"my-plugin": "0.3", "my-plugin adds": "method mine", "other": "1", "other adds": "method its"}
    path = tmp_path / "best.yaml"
    path.write_text(best_yaml(selected, versions))
    assert yaml.safe_load(path.read_text())["plugins"] == {"method mine": "my-plugin 0.3"}
    assert _refused(path) == (
        f"{path}: method 'mine' comes from the plug-in my-plugin 0.3, which is not installed: "
        "`pip install my-plugin`"
    )
    assert _refused(_edit(path, plugins=None)).endswith(" If a plug-in adds it, install its package.")
    assert "plugins must be names of plug-ins by what they add, given 3" in _refused(_edit(path, plugins=3))


def test_the_file_says_how_it_was_selected(best: Path) -> None:
    content = yaml.safe_load(best.read_text())
    assert content["contrasweep"] == contrasweep.__version__
    assert content["selected"]["score"] == 0.9123
    assert content["selected"]["untrained"] == 0.8
    assert "val.accuracy" in content["selected"]["rule"]


def test_an_edited_setting_is_taken(best: Path) -> None:
    experiment = yaml.safe_load(best.read_text())["experiment"]
    experiment["epochs"] = 77
    assert load_best(_edit(best, experiment=experiment)).experiment.epochs == 77


def test_an_unknown_key_is_named_with_the_nearest(best: Path) -> None:
    message = _refused(_edit(best, experimnt={}))
    assert "unknown key 'experimnt'" in message
    assert "Did you mean 'experiment'?" in message


def test_an_unknown_setting_is_named_with_the_nearest(best: Path) -> None:
    experiment = yaml.safe_load(best.read_text())["experiment"]
    message = _refused(_edit(best, experiment={**experiment, "epoch": 3}))
    assert "unknown setting 'epoch'" in message
    assert "'epochs'" in message


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"method": "fair-clk"}, "'fair-clk'"),
        ({"epochs": 0}, "'epochs'"),
        ({"dataset": "digits"}, "conditioning variable"),
        ({"hyperparameters": {"lam": 0.1, "temperature": 0.1, "weights": "released"}}, "kernel"),
        ({"hyperparameters": {"lambda": 0.1}}, "'lambda'"),
    ],
)
def test_an_experiment_that_is_not_allowed_is_refused(best: Path, change: dict[str, Any], named: str) -> None:
    experiment = yaml.safe_load(best.read_text())["experiment"]
    assert named in _refused(_edit(best, experiment={**experiment, **change}))


@pytest.mark.parametrize("key", ["contrasweep", "study", "trial", "values", "experiment"])
def test_a_missing_key_is_named(best: Path, key: str) -> None:
    message = _refused(_edit(best, **{key: None}))
    assert f"{key} missing" in message
    assert "contrasweep best STUDY -o FILE" in message


@pytest.mark.parametrize(
    ("key", "value"),
    [("trial", "third"), ("trial", [3]), ("values", 3), ("values", [1]), ("study", ["a"])],
)
def test_a_value_of_the_wrong_kind_is_refused(best: Path, key: str, value: object) -> None:
    assert key in _refused(_edit(best, **{key: value}))


def test_a_file_without_the_name_of_a_study_is_refused(best: Path) -> None:
    best.write_text(best.read_text().replace("study: demo\n", "study:\n"))
    assert "The study name '' is not allowed" in _refused(best)


def test_how_it_was_selected_may_be_left_out(best: Path) -> None:
    assert load_best(_edit(best, selected=None)) == config_of(SELECTED)


@pytest.mark.parametrize("version", ["99.0.0", "0.99.1", "1", "next", 7])
def test_another_version_s_file_is_refused(best: Path, version: object) -> None:
    message = _refused(_edit(best, contrasweep=version))
    assert str(version) in message
    assert contrasweep.__version__ in message


@pytest.mark.parametrize(
    ("here", "there", "readable"),
    [
        ("0.1.0", "0.1.9", True),
        ("0.1.0", "0.2.0", False),
        ("1.4.2", "1.0.0", True),
        ("1.4.2", "2.0.0", False),
        ("1.0.0", "0.1.0", False),
    ],
)
def test_versions_of_one_series_read_each_other_s_files(
    best: Path, here: str, there: str, readable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    _edit(best, contrasweep=there)
    monkeypatch.setattr("contrasweep.tuning.planning.best_config.__version__", here)
    if readable:
        assert load_best(best).study == "demo"
    else:
        assert there in _refused(best)


def test_what_is_no_yaml_mapping_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    for content in (b"a: [1", b"\xff\xfe\x00", b"a: b: c", b"- 1\n- 2\n", b"just text", b""):
        path.write_bytes(content)
        for read in (read_mapping, load_best):
            with pytest.raises((InputError, SpaceError), match=r"x\.yaml"):
                read(path)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert "absent.yaml: there is no such file" in _refused(tmp_path / "absent.yaml")
    assert "is a folder" in _refused(tmp_path)


def test_numbers_are_read_as_users_write_them(tmp_path: Path) -> None:
    # YAML 1.1 takes 1e-3 for text; space files here do not, and a user writes both.
    path = tmp_path / "experiment.yaml"
    path.write_text("lam: 1e-3\n")
    assert read_mapping(path) == {"lam": 1e-3}


@pytest.mark.parametrize("value", ["0.3", True, 2, 1e300])
def test_a_searched_value_is_that_of_the_experiment(best: Path, value: object) -> None:
    values = yaml.safe_load(best.read_text())["values"]
    name = next(name for name, held in values.items() if isinstance(held, float))
    assert f"values: {name} is {value!r}, the experiment has" in _refused(
        _edit(best, values={**values, name: value})
    )
