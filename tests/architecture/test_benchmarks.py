"""The benchmarks run rarely and by hand; what they import of the library must be there.

Their README lists them, and the documents show commands that they take.
"""

import argparse
import importlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks"
MODULES = sorted(".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FOLDER.rglob("*.py"))
COMMAND = re.compile(r"python -m (benchmarks\.[\w.]*\w)([^`\n]*)")
NAMED = {"GROUP": "digits"}
"""Words that stand for one of several values."""


def imported(module: str) -> ModuleType:
    """Import a module; skip the test where that needs a package that is not here."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("benchmarks", "contrasweep", "tests"):
            raise
        pytest.skip(f"needs {error.name}")


@pytest.mark.parametrize("module", MODULES)
def test_a_benchmark_can_be_imported(module: str) -> None:
    imported(module)


def test_the_readme_lists_every_script() -> None:
    runs = {file.stem for file in FOLDER.glob("*.py") if "__main__" in file.read_text(encoding="utf-8")}
    runs |= {file.parent.name for file in FOLDER.glob("*/__main__.py")}
    listed = re.findall(r"^\| `(\w+)` \|", (FOLDER / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(runs)


def shown_commands() -> Iterator[tuple[str, str]]:
    """Yield the commands of benchmarks in the documents: the module and its arguments."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        # A command may go on after a backslash, or after the end of a line within backticks.
        text = re.sub(r"\\\n +", "", page.read_text(encoding="utf-8"))
        text = re.sub(r"`python\s[^`]+`", lambda found: " ".join(found[0].split()), text)
        yield from COMMAND.findall(text)


class Taken(Exception):
    """The arguments are right; the benchmark does not begin."""


@pytest.mark.parametrize(("module", "arguments"), sorted(set(shown_commands())))
def test_a_benchmark_takes_the_options_that_a_document_shows(
    module: str, arguments: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = imported(f"{module}.__main__" if f"{module}.__main__" in MODULES else module)
    words = [NAMED.get(word, word) for word in shlex.split(arguments)]
    parse = argparse.ArgumentParser.parse_args

    def only_parse(parser: argparse.ArgumentParser, words: list[str] | None = None) -> None:
        parse(parser, words)
        raise Taken

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    monkeypatch.setattr("sys.argv", [module, *words])
    with pytest.raises(Taken):
        script.main()
