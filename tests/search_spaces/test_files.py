"""Space files, shipped spaces and presets."""

from pathlib import Path

import pytest

from contrasweep.search_spaces import (
    Space,
    SpaceError,
    available_presets,
    available_spaces,
    learning_rates,
    load_space,
    method_space,
    preset,
)
from contrasweep.search_spaces.files import _source_of_each
from docs.settings_page import settings_page

ROOT = Path(__file__).parents[2]


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_an_exponent_without_a_dot_is_a_number(tmp_path: Path) -> None:
    text = "lam: {log: [1e-3, 1E2], default: 1e-2}\nlr: {choice: [1e-3, 0.1], default: 1e-3}\nwd: 1e-4"
    space = load_space(write(tmp_path, text))
    assert space.defaults() == {"lam": 0.01, "lr": 0.001, "wd": 0.0001}
    assert load_space(write(tmp_path, "weight: 1e5")).types() == {"weight": "float"}


def test_a_quoted_number_counts_in_a_range_but_stays_text_in_a_choice() -> None:
    space = Space.parse(
        {"lam": {"log": ["1e-3", "1"], "default": "0.1"}, "name": {"choice": ["1", "2"], "default": "1"}}
    )
    assert space.defaults() == {"lam": 0.1, "name": "1"}


def test_on_off_yes_and_no_are_words(tmp_path: Path) -> None:
    space = load_space(write(tmp_path, "flip: {choice: [on, off, no], default: off}\nuse: true"))
    assert space.types() == {"flip": "string", "use": "bool"}


def test_whole_numbers_among_fractions_become_fractions(tmp_path: Path) -> None:
    space = load_space(write(tmp_path, "flip: {choice: [0, 0.5], default: 0}"))
    assert space.types() == {"flip": "float"}
    assert isinstance(space.defaults()["flip"], float)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lr: 1\nlam: 2\nlr: 3", "lr: given twice in the mapping that starts on line 1"),
        ("lr: {log: [1, 2], default: 1, default: 2}", "default: given twice"),
        ("lr: {log: [1, 2", "is not valid YAML"),
        ("lr: !!python/object/apply:os.getcwd []", "given the tag"),
        ("", "given nothing; allowed: a mapping"),
        ("lr: {unifrom: [1, 2], default: 1}", "lr: unknown key 'unifrom'"),
    ],
)
def test_a_bad_file_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(SpaceError) as caught:
        load_space(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match=r"absent\.yaml: there is no such file"):
        load_space(tmp_path / "absent.yaml")


def test_a_file_that_is_not_there_is_named_with_the_nearest(tmp_path: Path) -> None:
    for name in ("best.json", "best.yaml", "worst.yaml"):
        (tmp_path / name).touch()
    for given in ("best.yml", "bst.yaml"):
        with pytest.raises(
            SpaceError, match=rf"{given}: there is no such file\. Did you mean '.*/best.yaml'\?"
        ):
            load_space(tmp_path / given)
    for given in ("other.yaml", "nowhere/best.yaml"):
        with pytest.raises(SpaceError, match=r"there is no such file$"):
            load_space(tmp_path / given)
    with pytest.raises(SpaceError, match="is a folder; allowed: a regular file"):
        load_space(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SpaceError, match=r"binary\.yaml: is not UTF-8 text"):
        load_space(binary)


def test_the_shipped_spaces() -> None:
    assert {"fair-cclk", "fair-infonce", "infonce"} <= set(available_spaces())


@pytest.mark.parametrize("method", available_spaces())
def test_a_shipped_space_says_where_each_searched_parameter_is_from(method: str) -> None:
    space = method_space(method)
    assert space.searched
    assert [p.name for p in space.searched if not p.source] == []
    assert Space.parse(space.forms()).parameters == space.parameters


@pytest.mark.parametrize("method", ["fair-cclk", "weaklysup-cclk", "hardneg-cclk"])
def test_sigma2_is_searched_only_where_it_is_not_one_parameter_with_lam(method: str) -> None:
    space = method_space(method)
    for kernel in space["kernel"].values():
        active = space.active({"kernel": kernel})
        assert "lam" in active
        assert ("sigma2" in active) == (kernel in ("rbf", "laplacian"))
    assert space.fixed == {"weights": "released"}
    given = space.pin("sigma2", 500.0)
    assert [k for k in space["kernel"].values() if "sigma2" not in given.active({"kernel": k})] == ["cosine"]


def test_each_optimizer_has_a_range_of_rates() -> None:
    rates = learning_rates()
    assert set(rates) == {"sgd", "lars", "larc", "adam", "adamw"}
    assert all(rate.contains(rate.default) and rate.source for rate in rates.values())
    assert [rates["sgd"].contains(rate) for rate in (1.0, 1.1)] == [True, False]
    assert [rates["lars"].contains(rate) for rate in (5.0, 5.1)] == [True, False]


def test_an_unknown_method_names_the_nearest() -> None:
    with pytest.raises(SpaceError, match=r"'fair-clk'\. Did you mean 'fair-cclk'"):
        method_space("fair-clk")


@pytest.mark.parametrize(("method", "dataset"), available_presets())
def test_a_preset_sets_plain_values_and_says_what_to_expect(method: str, dataset: str) -> None:
    found = preset(method, dataset)
    assert found is not None
    assert found["settings"]
    values = [one for v in found["settings"].values() for one in (v if isinstance(v, list) else [v])]
    assert all(isinstance(value, bool | int | float | str) for value in values)
    assert found["expect"]
    assert list(found["sources"]) == list(found["settings"])


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"CCL-K, Table 1": ["a"]}, r"have none, several or no value: \['b'\]"),
        ({"CCL-K, Table 1": ["a", "b"], "ours: none printed": ["b"]}, r"\['b'\]"),
        ({"CCL-K, Table 1": ["a", "b", "c"]}, r"\['c'\]"),
        ({"somewhere": ["a", "b"]}, "'somewhere' must read `PAPER, PLACE` or `ours: WHY`"),
    ],
)
def test_each_setting_of_a_preset_has_one_source(sources: dict[str, list[str]], message: str) -> None:
    with pytest.raises(SpaceError, match=f"preset: .*{message}"):
        _source_of_each({"a": 1, "b": 2}, sources, "preset")


def test_the_paper_s_setting_of_fair_cclk() -> None:
    found = preset("fair-cclk", "colormnist")
    assert found is not None
    expected = {"kernel": "cosine", "epochs": 5, "optimizer.lr": 1e-3, "optimizer.weight_decay": 1e-4}
    assert expected.items() <= found["settings"].items()


def test_no_preset_is_none() -> None:
    assert preset("infonce", "no-such-data") is None


def test_the_page_of_settings_is_rendered_from_the_presets() -> None:
    assert settings_page() == (ROOT / "docs" / "settings.md").read_text(encoding="utf-8"), (
        "python -m docs.settings_page renders it again"
    )
