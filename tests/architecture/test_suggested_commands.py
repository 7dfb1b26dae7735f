"""Suggested commands are put together in one module, which quotes names and adds `--results`."""

import ast
import re
from collections.abc import Iterator

import pytest
from typer.main import get_command

from contrasweep.tuning.cli import app
from tests.architecture.imports import LIBRARY, name, tree

HOME = "tuning/results/commands.py"
COMMANDS = "|".join(get_command(app).commands)  # type: ignore[attr-defined]
BEGUN = re.compile(rf"contrasweep (({COMMANDS})\b[^`\n]*)?$")
"""Matches text that ends within a command: after its name, or before it in code."""


def suggested(content: ast.AST) -> Iterator[int]:
    """Yield the line of each command that a value is put into: in an f-string, or as a list of words."""
    for node in ast.walk(content):
        if isinstance(node, ast.JoinedStr):
            if any(_begins_command(part) for part in node.values[:-1]):
                yield node.lineno
        elif isinstance(node, ast.List | ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant):
            first = node.elts[0].value
            second = node.elts[1] if len(node.elts) > 1 else None
            command = isinstance(second, ast.Constant) and second.value in COMMANDS.split("|")
            if (first == "contrasweep" and command) or (
                isinstance(first, str) and re.match(rf"contrasweep ({COMMANDS})\b", first)
            ):
                yield node.lineno


def _begins_command(part: ast.expr) -> bool:
    if not isinstance(part, ast.Constant):
        return False
    found = BEGUN.search(part.value)
    # Without a command's name, text such as "by contrasweep 0.1.0" has a version there.
    return found is not None and (found[1] is not None or part.value.endswith("`contrasweep "))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('f"`contrasweep show {study}` says why"', True),
        ('f"{told}; `contrasweep {shown}` shows them"', True),
        ('"it failed; " f"`contrasweep run {a} {b}`"', True),
        ('["contrasweep", "sweep", method]', True),
        ('["contrasweep table", table]', True),
        ('f"`contrasweep runs` of {study}"', False),
        ('f"`contrasweep show STUDY` says why {study} failed"', False),
        ('f"written by contrasweep {version}"', False),
        ('["contrasweep", *arguments]', False),
    ],
)
def test_a_suggestion_is_recognised(source: str, found: bool) -> None:
    assert bool(list(suggested(ast.parse(source)))) == found


def test_suggested_commands_are_put_together_in_one_module_alone() -> None:
    writing = {name(path): list(suggested(tree(path))) for path in LIBRARY}
    assert {path: lines for path, lines in writing.items() if lines and path != HOME} == {}
