"""Packages that import what they export on first use, so that a name of one module does not wait for torch.

Such a package lists its exports in `__all__` and imports them under `if TYPE_CHECKING:`, where type checkers
and editors find them. `exports` reads these imports and gives the package's `__getattr__` and `__dir__`:

    if TYPE_CHECKING:
        from contrasweep.data.seeds import torch_generator

    __all__ = ["torch_generator"]
    __getattr__, __dir__ = exports(__name__, __file__)

What it imports from itself are its submodules.
"""

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any


def exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the `__getattr__` and `__dir__` of a package that imports its exports on first use.

    Args:
        package: its `__name__`.
        file: its `__file__`.
    """

    @cache
    def homes() -> dict[str, str]:
        return dict(_typed_imports(ast.parse(Path(file).read_text(encoding="utf-8"))))

    def get(name: str) -> Any:
        home = homes().get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home == package:
            return import_module(f"{package}.{name}")
        value = getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes()})

    return get, names


def _typed_imports(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Yield each name that a module imports under `if TYPE_CHECKING:`, with the module that it comes from."""
    for node in module.body:
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for line in node.body:
                if isinstance(line, ast.ImportFrom) and line.module is not None:
                    yield from ((alias.asname or alias.name, line.module) for alias in line.names)
