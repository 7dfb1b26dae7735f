"""A wrong space is refused: the message names file, parameter, what was given and what is allowed."""

import re

import pytest

from contrasweep.search_spaces import Fixed, Space, SpaceError

CHOICE = {"choice": ["rbf", "cosine"], "default": "rbf"}

WRONG_FORMS = {
    "unknown key": ({"unifrom": [0, 1], "default": 0}, "unknown key 'unifrom'. Did you mean 'uniform'?"),
    "no form": ({"default": 0}, "given none of the forms choice, uniform, log, int, log_int"),
    "two forms": ({"log": [1, 2], "int": [1, 2], "default": 1}, "given log and int of the forms"),
    "no default": ({"log": [1, 2]}, "default: missing"),
    "upside down": (
        {"log": [100, 0.001], "default": 1},
        "given [100.0, 0.001]; allowed: [low, high] with low < high",
    ),
    "a point": ({"uniform": [1, 1], "default": 1}, "low < high"),
    "log at zero": ({"log": [0, 1], "default": 0.5}, "log: given [0.0, 1.0]; allowed: a log range above 0"),
    "log below zero": ({"log_int": [-4, 8], "default": 2}, "allowed: a log range above 0"),
    "three bounds": (
        {"uniform": [0, 1, 2], "default": 1},
        "given [0, 1, 2]; allowed: two numbers, [low, high]",
    ),
    "no list": ({"uniform": "0..1", "default": 1}, "given '0..1'; allowed: two numbers"),
    "text bound": ({"uniform": ["low", 1], "default": 1}, "uniform: given 'low'; allowed: a number"),
    "bool bound": ({"uniform": [False, 2], "default": 1}, "uniform: given False; allowed: a number"),
    "infinite": ({"uniform": [0, float("inf")], "default": 1}, "allowed: finite numbers"),
    "nan": ({"uniform": [float("nan"), 1], "default": 1}, "allowed: finite numbers"),
    "fraction": ({"int": [1, 2.5], "default": 1}, "allowed: whole numbers"),
    "fraction default": ({"int": [1, 3], "default": 1.5}, "allowed: whole numbers"),
    "default outside": ({"uniform": [0, 1], "default": 2}, "default: given 2.0; allowed: from 0.0 to 1.0"),
    "default unknown": ({"choice": ["rbf", "cosine"], "default": "cosin"}, "Did you mean 'cosine'?"),
    "default of another type": (
        {"choice": [0, 1], "default": True},
        "default: given True; allowed: one of [0, 1]",
    ),
    "mixed types": (
        {"choice": [1, "one"], "default": 1},
        "of types int, string; allowed: values of one type",
    ),
    "bool and int": ({"choice": [True, 2], "default": True}, "of types bool, int"),
    "twice": ({"choice": ["a", "a"], "default": "a"}, "allowed: each value once"),
    "empty": ({"choice": [], "default": "a"}, "given 0 values"),
    "no choices": ({"choice": "rbf", "default": "rbf"}, "given 'rbf'; allowed: a list of values"),
    "nested": ({"choice": [["a"]], "default": "a"}, "given ['a']; allowed: true or false, a number, text"),
    "a bare list": (
        [0.05, 1.0],
        "given [0.05, 1.0]; allowed: {log: [..]}, {uniform: [..]} or {choice: [..]}",
    ),
    "null": (None, "given None; allowed: true or false, a number, text"),
    "nan fixed": (float("nan"), "given nan; allowed: a finite number"),
    "fixed and default": ({"fixed": 1, "default": 1}, "default: given beside fixed"),
    "source": ({"log": [1, 2], "default": 1, "source": 3}, "source: given 3; allowed: text"),
    "when no mapping": (
        {"log": [1, 2], "default": 1, "when": "kernel"},
        "when: given 'kernel'; allowed: a mapping",
    ),
    "when no value": ({"log": [1, 2], "default": 1, "when": {"kernel": []}}, "when: kernel: given no value"),
    "unknown parent": (
        {"log": [1, 2], "default": 1, "when": {"kernl": ["rbf"]}},
        "when: given the unknown parameter 'kernl'. Did you mean 'kernel'?",
    ),
    "value never taken": (
        {"log": [1, 2], "default": 1, "when": {"kernel": ["rbf", "cosin"]}},
        "when: given kernel = 'cosin', which it never takes; allowed: choice ['rbf', 'cosine']",
    ),
    "parent fixed elsewhere": (
        {"log": [1, 2], "default": 1, "when": {"mode": ["b"]}},
        "when: given mode = 'b', which it never takes; allowed: fixed at 'a'",
    ),
    "true is not 1": (
        {"log": [1, 2], "default": 1, "when": {"count": [True]}},
        "when: given count = True, which it never takes; allowed: choice [0, 1]",
    ),
    "continuous parent": (
        {"log": [1, 2], "default": 1, "when": {"lr": [0.5]}},
        "when: given lr, a range of fractions (uniform [0.0, 1.0], default 0.5); allowed: a choice, ",
    ),
    "itself": ({"log_int": [1, 2], "default": 1, "when": {"broken": [1]}}, "lead in a circle"),
}


@pytest.mark.parametrize("case", WRONG_FORMS)
def test_a_wrong_form_is_refused(case: str) -> None:
    form, message = WRONG_FORMS[case]
    lr = {"uniform": [0, 1], "default": 0.5}
    count = {"choice": [0, 1], "default": 0}
    content = {"kernel": CHOICE, "mode": "a", "lr": lr, "count": count, "broken": form}
    with pytest.raises(SpaceError, match=rf"^mine\.yaml: broken: .*{re.escape(message)}"):
        Space.parse(content, "mine.yaml")


@pytest.mark.parametrize("name", ["lambda", "loss.lambda"])
def test_lambda_suggests_lam(name: str) -> None:
    with pytest.raises(SpaceError, match="Did you mean 'lam'"):
        Space.parse({name: 0.1})


@pytest.mark.parametrize("name", ["", "a b", ".lr", "optimizer.", "2lr", "lr/x"])
def test_a_name_that_reaches_nothing_is_refused(name: str) -> None:
    with pytest.raises(SpaceError, match="letters, digits, _, joined by dots"):
        Space.parse({name: 0.1})


def test_a_circle_names_its_members() -> None:
    one = {"choice": [0, 1], "default": 0, "when": {"b": [1]}}
    other = {"choice": [0, 1], "default": 0, "when": {"a": [1]}}
    with pytest.raises(SpaceError, match="a, b: their conditions lead in a circle"):
        Space.parse({"a": one, "b": other, "c": 1})


@pytest.mark.parametrize("content", [None, [], "space", 3])
def test_a_space_is_a_mapping(content: object) -> None:
    with pytest.raises(SpaceError, match=r"mine\.yaml: given \w+; allowed: a mapping"):
        Space.parse(content, "mine.yaml")


def test_a_parameter_cannot_be_changed() -> None:
    parameter = Fixed(name="a", default=1)
    with pytest.raises(ValueError, match="frozen"):
        parameter.default = 2  # type: ignore[misc]


def test_an_unknown_field_of_a_parameter_is_refused() -> None:
    with pytest.raises(ValueError, match="Extra inputs"):
        Fixed(name="a", default=1, colour="red")  # type: ignore[call-arg]


def test_a_wrong_parent_is_told_alone() -> None:
    forms = {
        "kernel": {"chioce": ["rbf"]},
        "sigma2": {"log": [1, 10], "default": 5, "when": {"kernel": "rbf"}},
    }
    with pytest.raises(SpaceError) as refused:
        Space.parse(forms, "own.yaml")
    assert str(refused.value).startswith("own.yaml: kernel: unknown key 'chioce'. Did you mean 'choice'?")
    assert "sigma2" not in str(refused.value)
