"""`methods`, `spaces` and `metrics` print everything about what they list, and fit an 80-column terminal."""

import json
import re
from collections.abc import Callable

import pytest
from typer.testing import CliRunner, Result

from contrasweep.search_spaces import available_presets, method_space
from contrasweep.tuning.cli import app
from contrasweep.tuning.methods import METHODS

Run = Callable[..., Result]
WIDTH = 80


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    return lambda *arguments: CliRunner().invoke(app, list(arguments))


def _unwrapped(output: str) -> str:
    """The words in order, without line breaks."""
    return " ".join(output.split())


def _entry(output: str, name: str) -> str:
    """The lines of one entry: from its name to the next name with the same indentation."""
    lines = output.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"  {name} "))
    rest = [line[:3] != "   " for line in lines[start + 1 :]]
    end = start + 1 + (rest.index(True) if True in rest else len(rest))
    return _unwrapped("\n".join(lines[start:end]))


def test_methods_tells_of_each_what_it_does_needs_and_comes_from(run: Run) -> None:
    shown = run("methods").output
    assert shown.startswith(f"{len(METHODS)} methods\n")
    for method in METHODS.values():
        entry = _entry(shown, method.name)
        assert method.summary in entry
        assert f"{method.paper}, {method.equation}" in entry
        if method.hyperparameters:
            assert f"with {', '.join(method.hyperparameters)}" in entry
        assert ("needs" in entry) == bool(
            method.needs or any(one.needs for one in method.hyperparameters.values())
        )


def test_the_methods_that_run_on_a_dataset(run: Run) -> None:
    def names(data: str) -> set[str]:
        return {row["method"] for row in json.loads(run("methods", "--data", data, "--json").stdout)}

    every = set(METHODS)
    assert {"infonce", "supcon"} <= names("digits") < every
    assert "fair-cclk" not in names("digits")
    assert "fair-cclk" in names("colour-digits")
    assert "infonce" not in names("two-view-digits")
    assert names("biased-digits:rho=0.9") == names("biased-digits")
    assert "2 methods run on" not in run("methods").output
    shown = run("methods", "--data", "two-view-digits").output
    assert shown.startswith(f"{len(names('two-view-digits'))} methods run on two-view-digits\n")
    refused = run("methods", "--data", "digit")
    assert (refused.exit_code, "'digits'" in refused.output) == (2, True)


def test_what_a_method_needs_is_said_in_words(run: Run) -> None:
    needs = {row["method"]: row["needs"] for row in json.loads(run("methods", "--json").stdout)}
    assert needs["infonce"] == "images alone"
    assert needs["fair-cclk"] == "a conditioning variable"
    assert needs["fairkl"] == "a bias label or a conditioning variable and class labels"
    assert needs["cl-infonce"] == (
        "a conditioning variable where clusters_from is condition, distinct or attributes, "
        "class labels where clusters_from is labels"
    )


def test_methods_as_json_tells_everything(run: Run) -> None:
    rows = {row["method"]: row for row in json.loads(run("methods", "--json").stdout)}
    assert list(rows) == list(METHODS)
    row = rows["fairkl"]
    method = METHODS["fairkl"]
    assert row["what it does"] == method.summary
    assert (row["paper"], row["equation"]) == (method.paper, method.equation)
    assert row["hyperparameters"]["lam"] == method.hyperparameters["lam"].summary
    assert row["reports"] == list(method.train_metrics)
    assert row["classifies"] is True
    assert rows["infonce"]["classifies"] is False
    assert row["presets"] == [data for name, data in available_presets() if name == "fairkl"]


@pytest.mark.parametrize("method", list(METHODS))
def test_spaces_tells_of_each_parameter_all_that_its_file_says(method: str, run: Run) -> None:
    shown = run("spaces", method).output
    head, words = shown.splitlines()[0], _unwrapped(shown)
    assert head.startswith(f"{method}: ")
    assert METHODS[method].paper in words
    assert METHODS[method].equation in words
    for parameter in method_space(method).parameters:
        entry = _entry(shown, parameter.name)
        assert _unwrapped(parameter.source) in entry
        own = METHODS[method].hyperparameters.get(parameter.name)
        assert own is None or _unwrapped(own.summary) in entry
        assert all(parent in entry for parent in parameter.when)


@pytest.mark.parametrize(
    ("method", "name", "parts"),
    [
        ("cl-infonce", "temperature", ["0.05 to 1 on a log scale, default 0.1"]),
        ("fair-infonce", "clusters", ["2 to 20, default 10"]),
        (
            "fair-cclk",
            "sigma2",
            ["only where kernel is rbf or laplacian", "linear or polynomial, unless set"],
        ),
        ("cl-infonce", "representation", ["features or embedding, default features"]),
        ("cl-infonce", "pairing", ["left out where clusters_from is kmeans, unless set"]),
        ("cl-infonce", "clusters_from", ["kmeans (or condition, distinct, attributes, labels or instances)"]),
    ],
)
def test_ranges_and_conditions_are_words(method: str, name: str, parts: list[str], run: Run) -> None:
    entry = _entry(run("spaces", method).output, name)
    assert all(part in entry for part in parts)


def test_what_is_fixed_stands_apart_from_what_is_searched(run: Run) -> None:
    searched, fixed = run("spaces", "fair-cclk").output.split("Fixed, unless set")
    assert _entry(searched, "lam")
    assert _entry(fixed, "weights")
    assert "\n  weights" not in searched
    assert "Fixed" not in run("spaces", "cmc-attributes").output


@pytest.mark.parametrize("arguments", [("methods",), ("metrics",), *(("spaces", name) for name in METHODS)])
def test_nothing_is_wider_than_the_terminal(
    arguments: tuple[str, ...], run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    result = run(*arguments)
    assert result.exit_code == 0
    plain = re.sub(r"\x1b\[[0-9;]*m", "", result.output)
    assert plain != result.output
    assert max(map(len, plain.splitlines())) <= WIDTH


def test_in_a_file_no_line_is_broken(run: Run) -> None:
    lines = run("spaces", "fair-cclk").output.splitlines()
    assert max(map(len, lines)) > WIDTH
    assert all(line == line.rstrip() for line in lines)


def test_spaces_as_json_has_a_row_a_parameter(run: Run) -> None:
    rows = {row["parameter"]: row for row in json.loads(run("spaces", "fair-cclk", "--json").stdout)}
    assert list(rows) == list(method_space("fair-cclk").names)
    assert rows["lam"]["what it is"] == METHODS["fair-cclk"].hyperparameters["lam"].summary
    assert rows["optimizer.lr"]["what it is"] is None
    assert (rows["sigma2"]["when"], rows["sigma2"]["given"]) == (
        "kernel in ['rbf', 'laplacian']",
        "kernel in ['linear', 'polynomial']",
    )
    assert rows["sigma2"]["default"] == method_space("fair-cclk")["sigma2"].default


def test_an_unknown_method_is_named_with_the_nearest(run: Run) -> None:
    result = run("spaces", "cl-infonse")
    assert result.exit_code == 2
    assert "'cl-infonce'" in result.output
