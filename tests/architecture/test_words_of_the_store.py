"""The words of the store have one home each: statuses, places of files, and how columns begin."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from contrasweep.tuning.experiment.statuses import ENDED, OPEN, STATUSES, StudyState
from contrasweep.tuning.sensitivity.observations import ENDINGS, Ending
from tests.architecture.imports import files, name, tree

DECIDED = [frozenset(words) for words in (STATUSES, ENDED, OPEN, get_args(StudyState))]
PLACES = re.compile(r"(^|[^\w/])((checkpoints|exports|tensorboard|studies)/|study=)")
COLUMNS = re.compile(r"^(hp|metric)\.")


def _lists(content: ast.Module) -> Iterator[frozenset[object]]:
    """Yield the elements of every list of constants, those of a `Literal[...]` included."""
    for node in ast.walk(content):
        if isinstance(node, ast.Tuple | ast.List | ast.Set) and all(
            isinstance(one, ast.Constant) for one in node.elts
        ):
            yield frozenset(one.value for one in node.elts if isinstance(one, ast.Constant))


def _texts(content: ast.Module) -> Iterator[str]:
    """Yield the texts of a module and the parts of its f-strings, without its docstrings."""
    told = {id(node.value) for node in ast.walk(content) if isinstance(node, ast.Expr)}
    for node in ast.walk(content):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told:
            yield node.value


def _writing(pattern: re.Pattern[str], *folders: str) -> set[str]:
    return {name(path) for path in files(*folders) if any(map(pattern.search, _texts(tree(path))))}


def test_each_status_is_either_of_a_trial_that_has_ended_or_of_an_open_one() -> None:
    assert sorted(ENDED + OPEN) == sorted(STATUSES)


def test_one_module_lists_the_statuses() -> None:
    def decides(path: Path) -> bool:
        return any(elements in DECIDED for elements in _lists(tree(path)))

    listing = {name(path) for path in files("tuning", "docs", "benchmarks") if decides(path)}
    assert listing == {"tuning/experiment/statuses.py"}


def test_the_analyses_tell_every_ending() -> None:
    assert sorted(ENDINGS) == sorted(get_args(Ending))


def test_one_module_says_where_the_files_of_a_study_lie() -> None:
    assert _writing(PLACES, "tuning") == {"tuning/store/layout.py"}


def test_one_module_says_how_columns_begin() -> None:
    assert _writing(COLUMNS, "tuning") == {"tuning/store/schema.py"}
