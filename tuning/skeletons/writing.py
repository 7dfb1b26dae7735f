"""Write the package of a new plug-in."""

import ast
import builtins
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from contrasweep.names import unknown
from contrasweep.tuning.catalogue.declared import DECLARED_DATASETS, DECLARED_ENCODERS, DECLARED_METHODS
from contrasweep.tuning.errors import InputError, told_to_user
from contrasweep.tuning.files import check_folder, write_whole
from contrasweep.tuning.methods.added_metrics import ADDED_METRICS, check_metric_name

KINDS: Final[Mapping[str, Mapping[str, object]]] = {
    "method": DECLARED_METHODS,
    "encoder": DECLARED_ENCODERS,
    "dataset": DECLARED_DATASETS,
    "metric": ADDED_METRICS,
}
"""What can be new, and what there is of it."""

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def check_new(kind: str, name: str, folder: Path) -> None:
    """Check that a skeleton can be written.

    Raises:
        InputError: there is no such kind (the message has the nearest), the name is not allowed or taken, or
            the folder is there.
    """
    if kind == "sampler":
        raise InputError(
            f"a sampler has no skeleton, docs/add-a-sampler.md shows one; allowed: {', '.join(KINDS)}"
        )
    if kind not in KINDS:
        raise InputError(unknown("kind of plug-in", kind, KINDS))
    if kind == "metric":
        with told_to_user():
            check_metric_name(name)
    elif _NAME.fullmatch(name) is None:
        raise InputError(
            f"a name has small letters, digits and single dashes, and begins with a letter; given {name!r}"
        )
    if name in KINDS[kind]:
        raise InputError(f"the {kind} {name!r} is there already: take another name")
    _check_code(kind, name)
    check_folder(folder, "-o")
    if folder.exists() and any(folder.iterdir()):
        raise InputError(f"the folder {folder} has files in it: name one with -o that is empty or not there")


def write_skeleton(kind: str, name: str, folder: Path) -> list[Path]:
    """Write a package with a new plug-in of one of `KINDS` into `folder`; return its files.

    It can be installed as it is, and its test passes.

    Raises:
        InputError: see `check_new`.
    """
    check_new(kind, name, folder)
    written = []
    for path, content in _rendered(kind, name).items():
        write_whole(folder / path, content)
        written.append(folder / path)
    return written


def _check_code(kind: str, name: str) -> None:
    """Raise InputError if the package would not run: its name is one of Python, or one that it imports."""
    for path, content in _rendered(kind, name).items():
        if not path.endswith(".py"):
            continue
        try:
            statements = ast.parse(content).body
        except SyntaxError:
            raise InputError(f"{name!r} is a word of Python: take another name") from None
        imported = {
            alias.asname or alias.name
            for one in statements
            if isinstance(one, ast.Import | ast.ImportFrom)
            for alias in one.names
        }
        defined = {one.name for one in statements if isinstance(one, ast.FunctionDef | ast.ClassDef)}
        if imported & defined:
            raise InputError(f"{name!r} is a name that the code of the package imports: take another name")
        if defined & vars(builtins).keys():
            raise InputError(f"{name!r} is the name of a function of Python: take another name")


def package_of(name: str) -> str:
    """Return the name of the Python package of a plug-in."""
    return f"contrasweep_{name.replace('-', '_')}"


def _rendered(kind: str, name: str) -> dict[str, str]:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("contrasweep.tuning.skeletons")
    whitespace: Any = {"keep_trailing_newline": True, "trim_blocks": True}
    environment = Environment(loader=loader, undefined=StrictUndefined, autoescape=False, **whitespace)
    words = {
        "kind": kind,
        "name": name,
        "package": package_of(name),
        "title": "".join(part.capitalize() for part in name.split("-")),
        "snake": name.replace("-", "_"),
    }
    package = package_of(name)
    sources = {
        "pyproject.toml": "all/pyproject.toml.j2",
        f"{package}/__init__.py": f"{kind}/__init__.py.j2",
        f"{package}/{name}.yaml": f"{kind}/settings.yaml.j2",
        f"tests/test_{name.replace('-', '_')}.py": f"{kind}/test.py.j2",
    }
    there = environment.list_templates()
    return {
        path: environment.get_template(source).render(words)
        for path, source in sources.items()
        if source in there
    }
