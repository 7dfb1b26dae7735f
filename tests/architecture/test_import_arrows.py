"""The arrows between packages, and what belongs to one place, read from the source files."""

import ast
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tuning

ROOT = Path(__file__).parents[2]
LEAVES = ("losses", "models", "data", "search_spaces")
PACKAGES = (*LEAVES, "tuning")
MAX_LINES = 400


def _files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


LIBRARY = _files(*PACKAGES)
EVERYTHING = _files(*PACKAGES, "tests", "benchmarks")


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(tree: ast.Module, package: str) -> Iterator[str]:
    """Every module that a file imports, at any depth and also for type checking only, as absolute names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*above, *filter(None, [node.module])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in (
            "import_module",
            "__import__",
        ):
            yield from (
                a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)
            )


def _imports_of(path: Path) -> set[str]:
    package = ".".join(path.relative_to(ROOT).parent.parts)
    return set(imports(_tree(path), package))


def _importing(module: str, files: list[Path]) -> set[str]:
    """The files that import `module` or something inside it."""
    return {
        _name(path)
        for path in files
        if any(name == module or name.startswith(f"{module}.") for name in _imports_of(path))
    }


def test_the_files_are_found() -> None:
    for package in PACKAGES:
        assert any(_name(path).startswith(f"{package}/") for path in LIBRARY)
    assert _importing("torch", LIBRARY)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import ray", {"ray"}),
        ("import ray.tune as t", {"ray.tune"}),
        ("from ray import tune", {"ray", "ray.tune"}),
        ("def f():\n    from ray.tune import Tuner", {"ray.tune", "ray.tune.Tuner"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import tuning.ray", {"tuning.ray"}),
        ("from . import x", {"a.b", "a.b.x"}),
        ("from ..c import x", {"a.c", "a.c.x"}),
        ("import importlib\nimportlib.import_module('ray')", {"ray"}),
    ],
)
def test_no_way_of_importing_is_overlooked(source: str, found: set[str]) -> None:
    assert found <= set(imports(ast.parse(source), "a.b"))


@pytest.mark.parametrize("package", LEAVES)
def test_the_four_libraries_import_neither_each_other_nor_the_engine(package: str) -> None:
    for other in PACKAGES:
        if other != package:
            assert _importing(other, _files(package)) == set()


def test_ray_stays_in_its_folder() -> None:
    inside = {_name(path) for path in _files("tuning/ray")}
    assert _importing("ray", LIBRARY) <= inside
    assert _importing("ray", _files("tuning/ray"))


def test_optuna_stays_in_its_folder() -> None:
    inside = {_name(path) for path in _files("tuning/search")}
    assert _importing("optuna", LIBRARY) <= inside
    assert _importing("optuna", _files("tuning/search"))


def test_only_the_command_line_imports_its_libraries() -> None:
    inside = {_name(path) for path in _files("tuning/cli")}
    for module in ("typer", "rich", "tuning.cli"):
        assert _importing(module, LIBRARY) <= inside


def test_only_the_end_of_a_final_run_can_read_the_test_split() -> None:
    readers = _importing("data.load_test", _files("tuning")) | _importing(
        "data.datasets.load_test", _files("tuning")
    )
    assert readers == {"tuning/training/final.py"}
    for path in _files("tuning"):
        if _name(path) not in readers:
            assert "load_test" not in path.read_text(encoding="utf-8"), _name(path)


def test_training_knows_nothing_of_store_search_or_command_line() -> None:
    for module in (
        "tuning.store",
        "tuning.search",
        "tuning.ray",
        "tuning.cli",
        "tuning.trial",
        "tuning.plan",
        "tuning.planning",
    ):
        assert _importing(module, _files("tuning/training", "tuning/methods")) == set()


def test_a_run_without_ray_loads_no_ray() -> None:
    code = (
        "import sys, tuning.training.pretrain, tuning.training.final, tuning.trial, tuning.planning\n"
        "import tuning.best, tuning.analysis.selection, tuning.analysis.final\n"
        "assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_no_entry_point_is_called_like_a_submodule() -> None:
    # Importing the submodule would put it in the function's place.
    submodules = {module.name for module in pkgutil.iter_modules([str(ROOT / "tuning")])}
    assert tuning.__all__
    assert submodules.isdisjoint(tuning.__all__)


def test_library_code_does_not_print() -> None:
    calls = [(path, node) for path in LIBRARY for node in ast.walk(_tree(path)) if isinstance(node, ast.Call)]
    printing = [
        f"{_name(path)}:{node.lineno}"
        for path, node in calls
        if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_a_file_has_at_most_400_lines() -> None:
    lengths = {_name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in EVERYTHING}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}
