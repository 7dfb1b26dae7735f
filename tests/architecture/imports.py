"""The imports between the packages, read from the source files, and the layer of each package.

    python -m tests.architecture.imports

prints the figures.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEAVES = ("losses", "models", "data", "search_spaces")
PACKAGES = (*LEAVES, "tuning")

LAYERS = (
    ("losses", "models", "data", "search_spaces"),
    ("tuning/errors", "tuning/statistics"),
    ("tuning/limits", "tuning/durations"),
    ("tuning/files", "tuning/experiment"),
    ("tuning/store", "tuning/search"),
    ("tuning/objectives",),
    ("tuning/methods",),
    ("tuning/provenance", "tuning/training", "tuning/catalogue"),
    ("tuning/results", "tuning/trials", "tuning/skeletons"),
    ("tuning/planning", "tuning/progress", "tuning/export", "tuning/track"),
    ("tuning/reports", "tuning/ray"),
    ("tuning/sensitivity", "tuning/tables", "tuning/transfer"),
    ("tuning/replay", "tuning/stability"),
    ("tuning/cli",),
)
"""The packages by layer, the lowest first: a package imports only from the layers below its own."""


def files(*folders: str) -> list[Path]:
    """Return the Python files in the given folders of the repository."""
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


LIBRARY = files(*PACKAGES)
EVERYTHING = files(*PACKAGES, "src", "tests", "benchmarks")


def name(path: Path) -> str:
    """Return the path of a file within the repository."""
    return path.relative_to(ROOT).as_posix()


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(content: ast.Module, package: str) -> Iterator[str]:
    """Return every module that a file imports, at any depth and also for type checking, by absolute name."""
    for node in ast.walk(content):
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


@cache
def imports_of(path: Path) -> set[str]:
    """Return every module or name that a file imports, by absolute name."""
    package = ".".join(("contrasweep", *path.relative_to(ROOT).parent.parts))
    return set(imports(tree(path), package))


def importing(module: str, among: list[Path]) -> set[str]:
    """Return the files that import `module` or something inside it."""
    return {
        name(path)
        for path in among
        if any(found == module or found.startswith(f"{module}.") for found in imports_of(path))
    }


def module(path: Path) -> str:
    """Return the module name of a file, without `contrasweep.`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module(path): path for path in LIBRARY}


@cache
def imported_modules(path: Path) -> set[str]:
    """Return our modules that a file imports; for `from package import module`, only the module."""
    found: set[str] = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            modules = {name for name in inside if name.removeprefix("contrasweep.") in MODULES}
            found |= modules if modules == inside else {*modules, str(node.module)}
    return {name.removeprefix("contrasweep.") for name in found} & set(MODULES) - {module(path)}


def package_of(module: str) -> str:
    """Return the package of a module: one of the four libraries, or a package or loose module of `tuning`."""
    first, *rest = module.split(".")
    return "/".join(["tuning", *rest[:1]]) if first == "tuning" else first


def climbing_imports() -> list[str]:
    """Return every import of a package that is not on a lower layer."""
    layer = {package: number for number, packages in enumerate(LAYERS) for package in packages}
    return sorted(
        f"{path.relative_to(ROOT).as_posix()} imports {other}"
        for name, path in MODULES.items()
        for other in imported_modules(path)
        if package_of(other) not in (package_of(name), "tuning")
        and layer[package_of(other)] >= layer[package_of(name)]
    )


def arrows() -> set[tuple[str, str]]:
    """Return the pairs (package, other package that it imports)."""
    pairs = (
        (package_of(name), package_of(other))
        for name, path in MODULES.items()
        for other in imported_modules(path)
    )
    return {(one, other) for one, other in pairs if "tuning" not in (one, other) and one != other}


if __name__ == "__main__":
    packages = [one for layer in LAYERS for one in layer]
    print(  # noqa: T201
        f"{len(packages)} packages and loose modules in {len(LAYERS)} layers, "
        f"{len(arrows())} arrows between them, "
        f"{len(climbing_imports())} imports that climb"
    )
