"""The Python code in the documents parses, and every name that it imports from contrasweep exists."""

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def names_taken(source: str) -> Iterator[tuple[str, str | None]]:
    """Return each of our modules that a piece of Python imports, with the name it imports from there."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names if alias.name.startswith("contrasweep"))
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("contrasweep"):
            yield from ((str(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "contrasweep":
            yield "contrasweep", node.attr


def test_names_are_found() -> None:
    source = "import contrasweep.data\nfrom contrasweep import sweep\nimport torch\ncontrasweep.best_trials()"
    assert set(names_taken(source)) == {
        ("contrasweep.data", None),
        ("contrasweep", "sweep"),
        ("contrasweep", "best_trials"),
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_what_a_document_imports_exists(document: Path) -> None:
    for block in BLOCK.findall(document.read_text(encoding="utf-8")):
        for module, name in names_taken(block):
            there = import_module(module)
            assert name is None or hasattr(there, name), f"{module} has no {name}"


def test_the_tests_behind_the_promises_about_faults_exist() -> None:
    named = re.findall(
        r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs/fault-tests.md").read_text(encoding="utf-8")
    )
    assert len(named) > 15
    for file, test in named:
        assert f"def {test}(" in (ROOT / file).read_text(encoding="utf-8"), f"{file} has no {test}"
