"""The Python, YAML and TOML blocks of the documents do what they are shown for."""

import ast
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import contrasweep
from contrasweep.search_spaces import parse_yaml
from contrasweep.tuning.experiment import parse_experiment
from contrasweep.tuning.planning.enqueued import read_configurations
from contrasweep.tuning.planning.own_space import space_of_file
from tests.documents.blocks import DOCUMENTS, ROOT, Block, all_blocks, blocks_of

LANGUAGES = {"", "python", "yaml", "toml", "text"}
"""The languages that a test knows. Text is what a command prints, which nothing can run."""


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_block_has_a_language_that_is_tested(document: Path) -> None:
    named = {one.place: one.language for one in blocks_of(document) if not one.language.startswith("{")}
    assert {place: name for place, name in named.items() if name not in LANGUAGES} == {}


@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if any(one.language == "python" and one.unmarked for one in blocks_of(path))],
    ids=lambda path: path.name,
)
def test_python_blocks_run(document: Path, there: Path) -> None:
    names: dict[str, Any] = {"__name__": "document"}
    for block in blocks_of(document):
        if block.language == "python" and block.unmarked:
            # The lines before it, so that a traceback names the line of the document.
            exec(compile("\n" * block.line + block.text, str(document), "exec"), names)


@pytest.mark.parametrize("block", all_blocks("python"), ids=lambda block: block.place)
def test_calls_of_the_library_give_arguments_that_it_takes(block: Block) -> None:
    for call in ast.walk(ast.parse(block.text)):
        if isinstance(call, ast.Call) and (function := _entry_point(call.func)) is not None:
            given = {keyword.arg: None for keyword in call.keywords if keyword.arg}
            inspect.signature(function).bind(*call.args, **given)


def _entry_point(called: ast.expr) -> Any:
    if isinstance(called, ast.Attribute) and getattr(called.value, "id", "") == "contrasweep":
        return getattr(contrasweep, called.attr)
    if isinstance(called, ast.Name) and called.id in contrasweep.__all__:
        return getattr(contrasweep, called.id)
    return None


@pytest.mark.parametrize(
    "block", [one for one in all_blocks("yaml") if one.unmarked], ids=lambda block: block.place
)
def test_yaml_blocks_are_what_the_program_reads(block: Block, there: Path) -> None:
    content = parse_yaml(block.text, block.place)
    if isinstance(content, list):
        assert read_configurations(there / str(block.file), ["fair-cclk"]) == content
        return
    assert isinstance(content, dict)
    if {"method", "dataset"} <= content.keys():
        assert parse_experiment(content).method == content["method"]
    else:
        assert space_of_file(there / str(block.file), ["fair-cclk"], "colour-digits", {}).parameters


@pytest.mark.parametrize("block", all_blocks("toml"), ids=lambda block: block.place)
def test_toml_blocks_parse(block: Block) -> None:
    assert tomllib.loads(block.text)


def test_a_block_that_no_test_here_runs_says_why_or_which_test_does() -> None:
    marked = [one for document in DOCUMENTS for one in blocks_of(document) if not one.unmarked]
    assert len(marked) > 5
    for block in marked:
        if "run by" in block.marks:
            file, _, test = block.marks["run by"].partition("::")
            source = (ROOT / file).read_text(encoding="utf-8")
            assert re.search(rf"def {test}\(", source), f"{block.place}: {file} has no {test}"
        else:
            assert len(block.marks["not run"].split()) > 2, block.place
