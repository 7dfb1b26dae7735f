"""Pages of the site about the Python interface: one for each public package, from its docstrings.

A package is public if it says in `__all__` what it exports. `MODULES` are the further modules that users
need. `conf.py` writes the pages when it builds the site.
"""

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import contrasweep

_ROOT = Path(__file__).parents[1]
_FOLDERS = ("data", "losses", "models", "search_spaces", "tuning")
MODULES = (
    "contrasweep.data.options",
    "contrasweep.data.spec",
    "contrasweep.losses.validation",
    "contrasweep.rules",
    "contrasweep.tuning.objectives.objective",
    "contrasweep.tuning.objectives.ranks",
    "contrasweep.tuning.planning.resolve",
    "contrasweep.tuning.ray.result",
    "contrasweep.tuning.ray.signals",
    "contrasweep.tuning.reports.page",
    "contrasweep.tuning.results.final_runs",
    "contrasweep.tuning.results.selection",
    "contrasweep.tuning.results.study",
    "contrasweep.tuning.sensitivity.analyse",
)
_OF_EVERY_MODEL = ("model_config", "model_post_init")
"""What pydantic gives every class of settings, which says nothing of ours."""
_HEAD = """# Python

`import contrasweep` gives the entry points: each command as a function. The pages after it are the packages
and modules inside that users need. What is listed nowhere here may change without notice.

"""


def public_modules() -> Iterator[str]:
    """Return the modules that have a page, the entry points first."""
    yield "contrasweep"
    packages = [
        _dotted(path.parent)
        for folder in _FOLDERS
        for path in (_ROOT / folder).rglob("__init__.py")
        if "\n__all__ = " in path.read_text(encoding="utf-8")
    ]
    yield from sorted({*packages, *MODULES})


def _dotted(folder: Path) -> str:
    return ".".join(("contrasweep", *folder.relative_to(_ROOT).parts))


def api_pages() -> dict[str, str]:
    """Return the pages as Markdown, by file name; `index.md` lists them."""
    names = list(public_modules())
    index = "\n".join(["```{toctree}", ":maxdepth: 1", "", *names, "```", ""])
    return {"index.md": _HEAD + index, **{f"{name}.md": _page(name) for name in names}}


def _page(module: str) -> str:
    elsewhere = _entry_points_of(module) if module != "contrasweep" else []
    told = f"An [entry point](contrasweep.md) too: {', '.join(f'`{one}`' for one in elsewhere)}."
    directive = [
        f".. automodule:: {module}",
        "   :members:",
        "   :member-order: bysource",
        f"   :exclude-members: {', '.join([*_OF_EVERY_MODEL, *elsewhere])}",
    ]
    return "\n".join(
        [f"# {module}", "", told if elsewhere else "", "", "```{eval-rst}", *directive, "```", ""]
    )


def _entry_points_of(module: str) -> list[str]:
    exported = getattr(import_module(module), "__all__", ())
    return sorted(set(contrasweep.__all__).intersection(exported))
