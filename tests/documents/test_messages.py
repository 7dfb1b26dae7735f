"""docs/messages.md quotes messages that the program still has."""

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest

from tests.documents.blocks import ROOT

PAGE = (ROOT / "docs/messages.md").read_text(encoding="utf-8")
MESSAGES = re.findall(r"^\| `(.+?)` \|", PAGE, re.MULTILINE)
FOLDERS = ("data", "losses", "models", "search_spaces", "tuning", "src/contrasweep")


@cache
def texts() -> tuple[str, ...]:
    """Return the texts in the code, with `…` in place of what is filled in."""
    files = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    return tuple(text for file in files for text in _texts(ast.parse(file.read_text(encoding="utf-8"))))


def _texts(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield re.sub(r"%\w", "…", node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            yield "".join(map(str, parts))


def exists(message: str) -> bool:
    pattern = re.compile(".*".join(map(re.escape, message.split("…"))))
    return any(pattern.search(text) for text in texts())


@pytest.mark.parametrize("message", MESSAGES)
def test_the_program_has_the_message(message: str) -> None:
    assert len(message.replace("…", "")) >= 12
    assert exists(message)


def test_a_message_that_the_program_has_not_is_found() -> None:
    assert len(MESSAGES) >= 20
    assert not exists("unknown … Perhaps: …")
