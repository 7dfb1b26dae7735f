"""Packages that import their exports on first use, which they name once."""

import ast
import sys
from importlib import import_module
from pathlib import Path

import pytest

import contrasweep
from contrasweep.__main__ import main
from contrasweep.lazy import exports

MADE = """
from typing import TYPE_CHECKING
from contrasweep.__main__ import main
from contrasweep.lazy import exports

if TYPE_CHECKING:
    from made_package import part
    from made_package.part import thing

__getattr__, __dir__ = exports(__name__, __file__)
"""


def test_exports_are_found_where_type_checkers_find_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "made_package"
    folder.mkdir()
    (folder / "__init__.py").write_text(MADE)
    (folder / "part.py").write_text("thing = 3")
    monkeypatch.syspath_prepend(str(tmp_path))
    made = import_module("made_package")
    try:
        assert {"part", "thing"} <= set(dir(made))
        assert "made_package.part" not in sys.modules
        assert made.part is sys.modules["made_package.part"]
        assert made.thing == 3
        with pytest.raises(AttributeError, match="'made_package' has no attribute 'other'"):
            _ = made.other
    finally:
        for name in ("made_package", "made_package.part"):
            sys.modules.pop(name, None)


def test_the_front_door_names_its_entry_points_once_for_python() -> None:
    """A second list beside the imports for type checkers would have to be kept equal by hand."""
    source = Path(contrasweep.__file__).read_text(encoding="utf-8")
    texts = [node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant)]
    for name in contrasweep.__all__:
        assert texts.count(name) == 1, name  # in `__all__`
    _, names = exports("contrasweep", contrasweep.__file__)
    assert {*contrasweep.__all__, "data", "losses", "models", "search_spaces", "tuning"} <= set(names())


def test_an_interrupt_during_the_imports_ends_the_command_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted:
        @staticmethod
        def find_spec(name: str, *_: object) -> None:
            if name == "contrasweep.tuning.cli":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "contrasweep.tuning.cli", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupted, *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
