"""The imports between packages, and the rules on where things belong, read from the source files."""

import ast
import pkgutil
import subprocess
import sys
import tomllib
from collections import Counter
from graphlib import CycleError, TopologicalSorter

import pytest

import contrasweep
from tests.architecture.imports import (
    EVERYTHING,
    LAYERS,
    LIBRARY,
    MODULES,
    PACKAGES,
    ROOT,
    climbing_imports,
    files,
    imported_modules,
    importing,
    imports,
    imports_of,
    name,
    package_of,
    tree,
)

MAX_LINES = 400
MAX_LOOSE = 6


def test_the_files_are_found() -> None:
    for package in PACKAGES:
        assert any(name(path).startswith(f"{package}/") for path in LIBRARY)
    assert importing("torch", LIBRARY)


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import ray", {"ray"}),
        ("import ray.tune as t", {"ray.tune"}),
        ("from ray import tune", {"ray", "ray.tune"}),
        ("def f():\n    from ray.tune import Tuner", {"ray.tune", "ray.tune.Tuner"}),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a.ray", {"a.ray"}),
        ("from . import x", {"a.b", "a.b.x"}),
        ("from ..c import x", {"a.c", "a.c.x"}),
        ("import importlib\nimportlib.import_module('ray')", {"ray"}),
    ],
)
def test_no_way_of_importing_is_overlooked(source: str, found: set[str]) -> None:
    assert found <= set(imports(ast.parse(source), "a.b"))


def test_every_package_has_a_layer() -> None:
    assert {package_of(module) for module in MODULES} - {"tuning"} == {
        name for layer in LAYERS for name in layer
    }


def test_no_import_climbs() -> None:
    assert climbing_imports() == []


def test_no_package_imports_the_front_door() -> None:
    assert [name(path) for path in LIBRARY if "contrasweep" in imports_of(path)] == []


def test_no_modules_import_each_other_in_a_ring() -> None:
    try:
        tuple(
            TopologicalSorter(
                {module: imported_modules(path) for module, path in MODULES.items()}
            ).static_order()
        )
    except CycleError as error:
        pytest.fail(f"a ring: {' <- '.join(error.args[1])}")


@pytest.mark.parametrize("module", ["plugin_packages", "given_files", "machine", "optimizers"])
def test_what_all_packages_share_stands_below_them(module: str) -> None:
    assert importing("contrasweep", [ROOT / f"src/contrasweep/{module}.py"]) == set()


@pytest.mark.parametrize("module", ["plugins", "plugin_places"])
def test_what_plugins_are_stands_below_all_packages(module: str) -> None:
    ours = {one for one in imports_of(ROOT / f"src/contrasweep/{module}.py") if one.startswith("contrasweep")}
    assert {one.partition(".")[2].partition("_")[0] for one in ours} == {"plugin"}


def test_few_modules_of_the_engine_lie_outside_its_packages() -> None:
    loose = [path.name for path in (ROOT / "tuning").glob("*.py") if path.name != "__init__.py"]
    assert len(loose) <= MAX_LOOSE, loose


def test_our_packages_are_imported_by_onename() -> None:
    """A bare `import losses` in the repository's folder would load a second copy of the package."""
    for package in PACKAGES:
        assert importing(package, files(*PACKAGES, "src", "tests", "benchmarks", "docs")) == set()


def test_ray_stays_in_its_folder() -> None:
    inside = {name(path) for path in files("tuning/ray")}
    assert importing("ray", LIBRARY) <= inside
    assert importing("ray", files("tuning/ray"))


def test_optuna_stays_in_its_folder() -> None:
    inside = {name(path) for path in files("tuning/search")}
    assert importing("optuna", LIBRARY) <= inside
    assert importing("optuna", files("tuning/search"))


def test_mypy_reads_what_we_import() -> None:
    """What we took from a package that mypy skips would be of type Any."""
    overrides = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["mypy"]["overrides"]
    (skipped,) = (one["module"] for one in overrides if "follow_imports" in one)
    for module in skipped:
        assert importing(module.removesuffix(".*"), LIBRARY) == set(), module


def test_only_the_command_line_imports_its_libraries() -> None:
    inside = {name(path) for path in files("tuning/cli")}
    for module in ("typer", "rich"):
        assert importing(module, LIBRARY) <= inside


def test_only_what_comes_after_the_search_can_read_the_test_split() -> None:
    """The end of a final run, and the evaluation of the encoder that it exports."""
    readers = importing("contrasweep.data.load_test", files("tuning")) | importing(
        "contrasweep.data.datasets.load_test", files("tuning")
    )
    assert readers == {"tuning/training/final_scores.py", "tuning/transfer/tasks.py"}
    for path in files("tuning"):
        if name(path) not in readers:
            assert "load_test" not in path.read_text(encoding="utf-8"), name(path)


def test_what_starts_often_starts_without_what_it_may_not_need() -> None:
    """A run by itself and a reader load no Ray; the command line loads no torch before it needs it.

    One process imports them one after the other, as torch and Ray take seconds to import.
    """
    alone = ("tuning.training", "tuning.trials", "tuning.planning", "tuning.results")
    by_itself = [name for name in MODULES if name.startswith(alone)]
    starts = [
        (["tuning.cli"], {"torch", "ray", "numpy"}),
        (["tuning.results.selection"], {"torch", "ray", "scipy.stats"}),
        (by_itself, {"ray"}),
        (["tuning.ray.worker"], {"scipy.stats"}),
    ]
    code = "import sys\n" + "\n".join(
        f"import {', '.join(f'contrasweep.{name}' for name in names)}\n"
        f"assert not {costly} & set(sys.modules), {names}"
        for names, costly in starts
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_entry_point_is_called_like_a_submodule() -> None:
    # Importing the submodule would replace the function of the same name.
    submodules = {module.name for module in pkgutil.iter_modules(contrasweep.__path__)}
    assert submodules - {
        "__main__",
        "given_files",
        "machine",
        "lazy",
        "libraries",
        "names",
        "notebook_tables",
        "optimizers",
        "other_words",
        "plugin_packages",
        "plugin_places",
        "plugins",
        "rules",
        "version",
    } == set(PACKAGES)
    assert submodules.isdisjoint(contrasweep.__all__)
    assert set(contrasweep.__all__) <= set(dir(contrasweep))


def test_library_code_does_not_print() -> None:
    calls = [(path, node) for path in LIBRARY for node in ast.walk(tree(path)) if isinstance(node, ast.Call)]
    printing = [
        f"{name(path)}:{node.lineno}"
        for path, node in calls
        if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []


def test_a_file_has_at_most_400_lines() -> None:
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in EVERYTHING}
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


def test_no_two_test_files_have_one_name() -> None:
    """pytest imports them by name alone, and refuses the second; run alone, each of them passes."""
    found = Counter(file.name for file in (ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in found.items() if count > 1] == []
