"""Which statuses there are, and which of them mean that a trial has ended, is written in one place."""

import ast
from typing import get_args

from contrasweep.tuning.experiment.statuses import ENDED, OPEN, STATUSES, StudyState
from contrasweep.tuning.sensitivity.observations import ENDINGS, Ending
from tests.architecture.imports import ROOT, files, name, tree

HOME = ROOT / "tuning/experiment/statuses.py"
DECIDED = [frozenset(words) for words in (STATUSES, ENDED, OPEN, get_args(StudyState))]


def _lists(content: ast.Module) -> list[tuple[int, frozenset[object]]]:
    """Return the line and the elements of every list of constants, those of a `Literal[...]` included."""
    found = (node for node in ast.walk(content) if isinstance(node, ast.Tuple | ast.List | ast.Set))
    return [
        (node.lineno, frozenset(one.value for one in node.elts if isinstance(one, ast.Constant)))
        for node in found
        if all(isinstance(one, ast.Constant) for one in node.elts)
    ]


def test_each_status_is_either_of_a_trial_that_has_ended_or_of_an_open_one() -> None:
    assert sorted(ENDED + OPEN) == sorted(STATUSES)


def test_no_other_module_lists_the_statuses_again() -> None:
    again = [
        f"{name(path)}:{line}"
        for path in files("tuning", "docs", "benchmarks")
        if path != HOME
        for line, elements in _lists(tree(path))
        if elements in DECIDED
    ]
    assert again == []


def test_the_analyses_tell_every_ending() -> None:
    assert sorted(ENDINGS) == sorted(get_args(Ending))
