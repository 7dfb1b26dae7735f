"""`contrasweep new` writes packages that can be installed, are in good style, and pass their own tests."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from installing import write_metadata
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.skeletons.writing import KINDS, check_new, write_skeleton
from tests.search_path import search_path

ROOT = Path(__file__).parents[2]
NAMES = {"method": "my-loss", "encoder": "my-net", "dataset": "my-set", "metric": "my_score"}


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A package of each kind, as an installer would leave it on the path."""
    root = tmp_path_factory.mktemp("new")
    folders = []
    for kind, name in NAMES.items():
        folder = root / f"contrasweep-{name.replace('_', '-')}"
        write_skeleton(kind, name, folder)
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        write_metadata(folder, project["name"], project["entry-points"])
        folders.append(folder)
    return folders


def test_their_own_tests_pass(packages: list[Path]) -> None:
    path = search_path(ROOT / "src", *packages)
    tests = [str(test) for folder in packages for test in folder.glob("tests/*.py")]
    assert len(tests) == 4
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(packages[0])]
    env = {**os.environ, "PYTHONPATH": path}
    ended = subprocess.run([*command, *tests], env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert "13 passed" in ended.stdout


def test_they_keep_the_rules_of_style(packages: list[Path]) -> None:
    ruff = [sys.executable, "-m", "ruff", "check", "--select", "E,F,W,I,N,UP,B", "--line-length", "110"]
    # Elsewhere, so that contrasweep is a package like any other.
    assert subprocess.run([*ruff, *map(str, packages)], cwd=packages[0].parent, check=False).returncode == 0


def test_what_its_test_needs_is_installed_with_it(packages: list[Path]) -> None:
    for folder in packages:
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        assert project["optional-dependencies"] == {"test": ["pytest"]}


def test_a_package_holds_what_its_project_file_names(packages: list[Path]) -> None:
    for folder in packages:
        setuptools = tomllib.loads((folder / "pyproject.toml").read_text())["tool"]["setuptools"]
        (package,) = setuptools["packages"]
        assert (folder / package / "__init__.py").is_file()
        for file in setuptools.get("package-data", {}).get(package, []):
            assert (folder / package / file).is_file()


@pytest.mark.parametrize(
    ("kind", "name", "says"),
    [
        ("metod", "mine", "Did you mean 'method'?"),
        ("loss", "mine", "Did you mean 'method'?"),
        ("method", "infonce", "the method 'infonce' is there already"),
        ("dataset", "digits", "the dataset 'digits' is there already"),
        ("metric", "class", "'class' is a word of Python"),
        ("method", "none", "'none' is a word of Python"),
        ("metric", "float", "'float' is the name of a function of Python"),
        ("method", "path", "'path' is a name that the code of the package imports"),
        ("encoder", "My Net", "given 'My Net'"),
        ("encoder", "3d", "begins with a letter"),
        ("metric", "my-score", "single underscores"),
        ("metric", "rankme", "one of contrasweep's own"),
    ],
)
def test_what_is_wrong_is_refused(kind: str, name: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        check_new(kind, name, tmp_path / "new")
    assert says in str(refused.value)


def test_nothing_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    first = CliRunner().invoke(app, ["new", "method", "mine"])
    assert first.exit_code == 0, first.output
    assert "pip install --editable 'contrasweep-mine[test]', then python -m pytest" in first.output
    again = CliRunner().invoke(app, ["new", "method", "mine"])
    assert again.exit_code == 2
    assert "contrasweep-mine has files in it" in again.output


def test_every_kind_is_tried() -> None:
    assert list(NAMES) == list(KINDS)
