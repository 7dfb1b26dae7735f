"""The arrows between packages, and what belongs to one place, read from the source files."""

import ast
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import contrasweep

ROOT = Path(__file__).parents[2]
LEAVES = ("losses", "models", "data", "search_spaces")
PACKAGES = (*LEAVES, "tuning")
MAX_LINES = 400
MAX_LOOSE = 6

FLOORS = (
    ("losses", "models", "data", "search_spaces"),
    ("tuning/errors", "tuning/statistics", "tuning/durations"),
    ("tuning/files", "tuning/experiment"),
    ("tuning/store", "tuning/search"),
    ("tuning/objectives",),
    ("tuning/methods",),
    ("tuning/provenance", "tuning/training"),
    ("tuning/results",),
    ("tuning/planning",),
    ("tuning/reports", "tuning/ray"),
    ("tuning/sensitivity", "tuning/tables"),
    ("tuning/cli",),
)
"""The rooms from the ground up: a room imports from the floors below its own, and from no other room."""


def _files(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


LIBRARY = _files(*PACKAGES)
EVERYTHING = _files(*PACKAGES, "src", "tests", "benchmarks")


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
    package = ".".join(("contrasweep", *path.relative_to(ROOT).parent.parts))
    return set(imports(_tree(path), package))


def _importing(module: str, files: list[Path]) -> set[str]:
    """The files that import `module` or something inside it."""
    return {
        _name(path)
        for path in files
        if any(name == module or name.startswith(f"{module}.") for name in _imports_of(path))
    }


def _module(path: Path) -> str:
    """The name of a file as a module, without `contrasweep.`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {_module(path): path for path in LIBRARY}


def _imported_modules(path: Path) -> set[str]:
    """The modules of ours that a file imports; of `from package import module`, the module alone."""
    found: set[str] = set()
    for node in ast.walk(_tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in inside if name.removeprefix("contrasweep.") in MODULES}
            found |= modules if modules == inside else {*modules, str(node.module)}
    return {name.removeprefix("contrasweep.") for name in found} & set(MODULES) - {_module(path)}


def _room(module: str) -> str:
    """The package of a module: one of the four libraries, or a room or a loose module of the engine."""
    first, *rest = module.split(".")
    return "/".join(["tuning", *rest[:1]]) if first == "tuning" else first


def climbing_imports() -> list[str]:
    """Every import of another room that does not lie on a lower floor."""
    floor = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
    return sorted(
        f"{_name(path)} imports {other}"
        for module, path in MODULES.items()
        for other in _imported_modules(path)
        if _room(other) not in (_room(module), "tuning") and floor[_room(other)] >= floor[_room(module)]
    )


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
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import a.ray", {"a.ray"}),
        ("from . import x", {"a.b", "a.b.x"}),
        ("from ..c import x", {"a.c", "a.c.x"}),
        ("import importlib\nimportlib.import_module('ray')", {"ray"}),
    ],
)
def test_no_way_of_importing_is_overlooked(source: str, found: set[str]) -> None:
    assert found <= set(imports(ast.parse(source), "a.b"))


def test_every_room_has_a_floor() -> None:
    assert {_room(module) for module in MODULES} - {"tuning"} == {room for rooms in FLOORS for room in rooms}


def test_no_import_climbs() -> None:
    assert climbing_imports() == []


def test_no_modules_import_each_other_in_a_ring() -> None:
    try:
        tuple(
            TopologicalSorter(
                {module: _imported_modules(path) for module, path in MODULES.items()}
            ).static_order()
        )
    except CycleError as error:
        pytest.fail(f"a ring: {' <- '.join(error.args[1])}")


def test_what_finds_plugins_stands_below_all_packages() -> None:
    assert _importing("contrasweep", [ROOT / "src/contrasweep/plugins.py"]) == set()


def test_few_modules_of_the_engine_lie_outside_its_rooms() -> None:
    loose = [path.name for path in (ROOT / "tuning").glob("*.py") if path.name != "__init__.py"]
    assert len(loose) <= MAX_LOOSE, loose


def test_our_packages_are_imported_by_one_name() -> None:
    """A bare `import losses` from the repository's folder would load a second copy."""
    for package in PACKAGES:
        assert _importing(package, _files(*PACKAGES, "src", "tests", "benchmarks", "docs")) == set()


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
    for module in ("typer", "rich"):
        assert _importing(module, LIBRARY) <= inside


def test_only_the_end_of_a_final_run_can_read_the_test_split() -> None:
    readers = _importing("contrasweep.data.load_test", _files("tuning")) | _importing(
        "contrasweep.data.datasets.load_test", _files("tuning")
    )
    assert readers == {"tuning/training/final_scores.py"}
    for path in _files("tuning"):
        if _name(path) not in readers:
            assert "load_test" not in path.read_text(encoding="utf-8"), _name(path)


def test_a_run_without_ray_loads_no_ray() -> None:
    modules = [
        *(name for name in MODULES if name.startswith(("tuning.training", "tuning.planning"))),
        *(name for name in MODULES if name.startswith("tuning.results")),
    ]
    code = (
        f"import sys, {', '.join(f'contrasweep.{name}' for name in modules)}; assert 'ray' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_entry_point_is_called_like_a_submodule() -> None:
    # Importing the submodule would put it in the function's place.
    submodules = {module.name for module in pkgutil.iter_modules(contrasweep.__path__)}
    assert submodules - {"__main__", "plugins"} == set(PACKAGES)
    assert submodules.isdisjoint(contrasweep.__all__)
    assert set(contrasweep.__all__) <= set(dir(contrasweep))


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
