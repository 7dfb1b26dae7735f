"""Methods of other distributions: entry points lead to them, and a broken one is refused by name.

The others can be used meanwhile: the author of one breaks it with every second edit.
"""

import json
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import torch
from installing import install_example, write_metadata
from typer.testing import CliRunner

from contrasweep.plugin_packages import installed_plugins, plugin_versions, source_digest
from contrasweep.plugins import PluginError, Registry, defined_beside
from contrasweep.search_spaces import Space
from contrasweep.tuning.catalogue.declared import DECLARED_METHODS, Declared
from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.methods import METHODS, Method
from contrasweep.tuning.methods.registry import method_registry
from contrasweep.tuning.provenance import changed_plugins, package_versions

HEAD = """
from contrasweep.rules import Number
from contrasweep.search_spaces import Space
from contrasweep.tuning.methods import Hyperparameter, Method

class Odd(Number):
    def check(self, name, value): raise KeyError("odd")

ONE = Hyperparameter("", Number(above=0))
SPACE = {"tau": {"log": [0.1, 1.0], "default": 0.5}, "optimizer.lr": 0.1}

def method(name="mine", space=SPACE, own={"tau": ONE}):
    return Method(
        name=name, summary="", paper="", equation="", build=lambda *_: None, hyperparameters=own,
        space=None if space is None else Space.parse(space, "its space"),
    )

"""

Bring = Callable[..., Registry[Method]]
OWN = {method.name for method in defined_beside("contrasweep.tuning.methods.method", Method)}


@pytest.fixture
def bring(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bring:
    """A registry where a distribution brings a module with some `code`, by some entry points."""
    # Found anew with what a test brings, and forgotten after it.
    monkeypatch.delitem(vars(DECLARED_METHODS), "_others")

    def brought(
        code: str, points: dict[str, str] | None = None, distribution: str = "my-plugin"
    ) -> Registry[Method]:
        folder, module = tmp_path / distribution, distribution.replace("-", "_")
        found = points or {"mine": f"{module}:METHOD"}
        write_metadata(folder, distribution, {"contrasweep.methods": found})
        (folder / f"{module}.py").write_text(HEAD + code)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, module, raising=False)
        return method_registry()

    return brought


def _refused(registry: Registry[Method], name: str = "mine") -> str:
    """Return why one name is refused; no other name is, and a list has those alone that can be used."""
    with pytest.raises(PluginError) as refused:
        _ = registry[name]
    with pytest.raises(PluginError):
        _ = name in registry
    assert list(registry) == [one for one in registry if one != name]
    assert OWN - {name} <= set(registry)
    return str(refused.value)


def test_a_method_stands_among_our_own(bring: Bring) -> None:
    registry = bring("METHOD = method()")
    assert list(registry) == [*sorted(OWN), "mine"]
    assert len(registry) == len(OWN) + 1
    assert registry["mine"].search_space().names == ("tau", "optimizer.lr")


def test_our_own_methods_have_the_space_that_ships() -> None:
    assert METHODS["infonce"].space is None
    assert METHODS["infonce"].search_space().origin == "search_spaces/infonce.yaml"


def test_its_version_is_part_of_where_a_result_comes_from(bring: Bring) -> None:
    assert "my-plugin" not in package_versions()
    bring("METHOD = method()")
    assert plugin_versions()["my-plugin"] == "0.1.0"
    assert package_versions()["my-plugin"] == "0.1.0"


def test_other_code_of_the_same_version_is_noticed(bring: Bring, tmp_path: Path) -> None:
    bring("METHOD = method()")
    before = package_versions()
    assert changed_plugins(before, ["mine"]) == []
    file = next(tmp_path.rglob("my_plugin.py"))
    file.write_text(file.read_text() + "# another line\n")
    assert changed_plugins(before, ["mine"]) == ["my-plugin"]
    assert changed_plugins(before, ["infonce"]) == []
    older = {name: version for name, version in before.items() if name != "my-plugin source"}
    assert changed_plugins(older, ["mine"]) == []
    assert changed_plugins({**older, "my-plugin": "0.0.9"}, ["mine"]) == ["my-plugin"]


def test_a_package_is_read_whole_without_its_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_metadata(tmp_path, "wide", {"contrasweep.metrics": {"own": "wide_package.metrics:METRIC"}})
    below = tmp_path / "wide_package" / "parts"
    below.mkdir(parents=True)
    for folder in (below.parent, below):
        (folder / "__init__.py").write_text("raise OSError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    first = source_digest(installed_plugins()["wide"])
    (below / "readme.txt").write_text("says nothing")
    assert source_digest(installed_plugins()["wide"]) == first
    (below / "space.yaml").write_text("temperature: 1")
    assert source_digest(installed_plugins()["wide"]) != first


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise OSError('no disk')", "my_plugin:METHOD fails with OSError: no disk"),
        ("raise OSError('no disk.')", "OSError: no disk, at my_plugin.py:18 in <module>. Repair"),
        ("METHOD = (", "fails with SyntaxError: '(' was never closed, at my_plugin.py:18. Repair"),
        ("import sys; sys.exit(4)", "fails with SystemExit: 4, at my_plugin.py:18 in <module>. Repair"),
        ("import absent_package", "fails with ModuleNotFoundError: No module named 'absent_package'"),
        ("OTHER = method()", "fails with AttributeError"),
        ("METHOD = method", "must be Method; it is function"),
        ("METHOD = method('yours')", "called 'yours'"),
        ("METHOD = method(space=None)", "no search space"),
        (
            "METHOD = method(space={'tua': 0.5})",
            "has other names than it must have. Surplus: 'tua'. Did you mean 'tau'? Missing: 'tau'.",
        ),
        ("METHOD = method(space={'optimizer.lr': 0.5})", "have. Missing: 'tau'. It must have all hyperparam"),
        (
            "METHOD = method(space={'tau': 0.5, 'optimizer.lrr': 0.5})",
            "Surplus: 'optimizer.lrr'. Did you mean 'optimizer.lr'? It must have all hyperparameters of mi",
        ),
        (
            "METHOD = method(own={'seed': ONE}, space={'seed': 0})",
            "'seed' has the name of a setting",
        ),
        (
            "METHOD = method(own={'tau': Hyperparameter('', Odd())})",
            "the check of its Method fails with KeyError: 'odd', at my_plugin.py:7 in check. Repair",
        ),
        ("METHOD = method(space={'tau': {'log': [1]}})", "fails with SpaceError: its space: tau"),
        (
            "METHOD = method(space={'tau': {'uniform': [-1.0, 1.0], 'default': 0.5}})",
            "its space: tau must be",
        ),
        (
            "METHOD = method(space={'tau': {'int': [1, 2], 'default': 1}})",
            "tau: given int values; allowed: float",
        ),
    ],
)
def test_a_broken_one_is_named_with_its_distribution(bring: Bring, code: str, reason: str) -> None:
    message = _refused(bring(code))
    assert message.startswith("method 'mine' of the distribution my-plugin cannot be used: ")
    assert reason in message
    assert "pip uninstall my-plugin" in message


def test_an_entry_point_that_names_no_object_leaves_out_its_plugin_alone(bring: Bring) -> None:
    registry = bring("METHOD = method()", {"mine": "my-plugin.METHOD :"})
    assert "its entry point is 'my-plugin.METHOD :'; allowed: MODULE:OBJECT. Repair" in _refused(registry)
    assert "my-plugin" in installed_plugins()


def test_what_is_no_exception_leaves_out_its_plugin_alone(bring: Bring) -> None:
    code = "class Stop(BaseException): pass\n\nraise Stop('here')"
    assert "my_plugin:METHOD fails with Stop: here, at my_plugin.py:20" in _refused(bring(code))
    interrupted = bring("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        _ = interrupted["infonce"]


def test_a_module_that_python_cannot_read_is_named_with_its_folder(bring: Bring, tmp_path: Path) -> None:
    below = tmp_path / "my-plugin" / "my_package" / "below"
    below.mkdir(parents=True)
    (below.parent / "__init__.py").touch()
    (below / "__init__.py").write_text("one = 1\ntwo = (\n")
    registry = bring("", {"mine": "my_package.below:METHOD"})
    told = "fails with SyntaxError: '(' was never closed, at my_package/below/__init__.py:2. Repair"
    assert told in _refused(registry)


def test_a_name_of_ours_is_taken(bring: Bring) -> None:
    message = _refused(bring("METHOD = method('infonce')", {"infonce": "my_plugin:METHOD"}), "infonce")
    assert "method 'infonce' of the distribution my-plugin" in message
    assert "taken by contrasweep itself" in message


def test_a_name_of_another_plugin_is_taken(bring: Bring) -> None:
    bring("METHOD = method()")
    message = _refused(bring("METHOD = method()", distribution="your-plugin"))
    assert "method 'mine' of the distribution your-plugin" in message
    assert "taken by my-plugin" in message


def test_a_warning_names_it_once_unless_it_is_refused_anyway(
    bring: Bring, caplog: pytest.LogCaptureFixture
) -> None:
    registry = bring("METHOD = (")
    reason = _refused(registry)
    refused = bring("METHOD = (")
    with pytest.raises(PluginError):
        _ = refused["mine"]
    warned = [record.getMessage() for record in caplog.records]
    assert warned == [f"Left out: {reason}"]
    assert refused["infonce"] is METHODS["infonce"]
    assert len(refused) == len(OWN) == len(list(refused))
    assert [record.getMessage() for record in caplog.records] == warned * 2


def test_what_is_declared_leaves_it_out_too(bring: Bring) -> None:
    broken = bring("METHOD = (")
    declared: Declared[Method] = Declared("method", dict, lambda: broken, lambda method: method)
    # Its name is told without importing it.
    assert list(declared) == ["mine"]
    assert not declared.values()
    assert not declared.items()
    with pytest.raises(PluginError):
        _ = declared["mine"]


def test_commands_go_on_without_it(bring: Bring, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = bring("METHOD = (")
    monkeypatch.setattr("contrasweep.tuning.methods.registry.METHODS", broken)
    monkeypatch.setattr("contrasweep.tuning.methods.METHODS", broken, raising=False)
    listed = CliRunner().invoke(app, ["methods", "--json"])
    assert {row["method"] for row in json.loads(listed.stdout)} == OWN
    asked = CliRunner().invoke(app, ["spaces", "mine"])
    assert asked.exit_code == 2
    assert "'mine' of the distribution my-plugin cannot be used" in asked.stderr


def test_a_space_is_shown_of_no_method_whose_name_two_have(
    bring: Bring, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = bring("METHOD = method('infonce')", {"infonce": "my_plugin:METHOD"})
    monkeypatch.setattr("contrasweep.tuning.methods.registry.METHODS", taken)
    monkeypatch.setattr("contrasweep.tuning.methods.METHODS", taken, raising=False)
    asked = CliRunner().invoke(app, ["spaces", "infonce"])
    assert asked.exit_code == 2
    assert "'infonce' of the distribution my-plugin cannot be used" in asked.stderr
    assert CliRunner().invoke(app, ["spaces", "supcon"]).exit_code == 0


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The plug-in of the documentation."""
    for folder in install_example(tmp_path):
        monkeypatch.syspath_prepend(folder)
    return import_module("contrasweep_dcl")


def test_the_loss_of_the_example_is_infonce_without_its_positive(example: ModuleType) -> None:
    views = torch.randn(2, 2, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    z = torch.nn.functional.normalize(views, dim=2)
    cosines = torch.einsum("vid,wjd->vwij", z, z) / 0.5
    # Of two images, each view has two negatives: both views of the other image.
    anchors = [
        torch.logaddexp(cosines[v, 0, i, 1 - i], cosines[v, 1, i, 1 - i]) - cosines[0, 1, i, i]
        for v in range(2)
        for i in range(2)
    ]
    torch.testing.assert_close(example.DCL(0.5)(views), torch.stack(anchors).mean())


def test_the_loss_s_own_check_has_the_last_word(example: ModuleType) -> None:
    # The constructor says `temperature: float`: only its body knows that 0 is too small.
    for refused in (0.0, -1.0):
        with pytest.raises(InputError, match=f"dcl: temperature must be above 0, given {refused}"):
            example.METHOD.check({"temperature": refused})
    too_wide = Space.parse({"temperature": {"uniform": [0.0, 1.0], "default": 0.5}}, "too wide")
    with pytest.raises(InputError, match=r"too wide: dcl: temperature must be above 0, given 0\.0"):
        example.METHOD.check_space(too_wide)
