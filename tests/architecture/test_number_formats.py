"""Numbers become text in one module, so that a score looks the same in a table, on a page and in progress."""

import ast
from collections.abc import Iterator

from tests.architecture.imports import ROOT, files

HOME = "tuning/results/numbers.py"
PRINTED_UNITS = "tuning/tables/"
"""The papers' tables have the units in which the papers print."""


def formats(tree: ast.AST) -> Iterator[str]:
    """Yield the format of each value in the f-strings of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FormattedValue) and isinstance(node.format_spec, ast.JoinedStr):
            yield "".join(
                str(part.value) for part in node.format_spec.values if isinstance(part, ast.Constant)
            )


def test_four_digits_are_written_in_one_module_alone() -> None:
    writing = [
        str(path.relative_to(ROOT))
        for path in files("tuning")
        if any(form.endswith(".4g") for form in formats(ast.parse(path.read_text(encoding="utf-8"))))
    ]
    assert [name for name in writing if not name.startswith(PRINTED_UNITS)] == [HOME]
