"""What is published: the wheel and the sdist are whole, and what is said about versions agrees."""

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import yaml

import contrasweep
from tests.architecture import lowest
from tests.architecture.imports import PACKAGES, ROOT

BUILD = """
import sys
from setuptools import build_meta

folder = sys.argv[1]  # setuptools changes it
build_meta.build_sdist(folder)
build_meta.build_wheel(folder)
"""
BESIDE = (
    "pyproject.toml",
    "README.md",
    "LICENSE",
    "MANIFEST.in",
    "CHANGELOG.md",
    "CITATION.cff",
    "constraints.txt",
)


def test_the_wheel_holds_contrasweep_alone_and_whole_and_so_does_the_sdist(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in BESIDE:
        shutil.copy(ROOT / name, source)
    (source / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "test_given_files.py", source / "tests")
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        unpacked = {name.partition("/")[2] for name in archive.getnames()}
    assert {name.split("/")[0] for name in names} == {
        "contrasweep",
        f"contrasweep-{contrasweep.__version__}.dist-info",
    }
    for package in PACKAGES:
        folder = ROOT / package
        there = {
            f"contrasweep/{path.relative_to(ROOT).as_posix()}"
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".pyc"
        }
        assert there <= set(names), package
        assert {f"src/{name}" for name in there} <= unpacked, package
    assert "contrasweep/py.typed" in names
    assert set(BESIDE) <= unpacked
    assert not [name for name in unpacked if name.startswith("tests")]


def test_links_lead_to_the_five_folders() -> None:
    for package in PACKAGES:
        assert (ROOT / "src" / "contrasweep" / package).resolve() == ROOT / package


def test_ci_tests_the_versions_that_are_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    declared = [line.rpartition(" ")[2] for line in project["classifiers"] if line.startswith(prefix)]
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["tests"]["strategy"]["matrix"]["python"] == declared
    assert project["requires-python"] == f">={declared[0]}"
    assert lowest.FILE.read_text(encoding="utf-8") == lowest.constraints(), "run `make lowest`"


def test_the_citation_names_the_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == contrasweep.__version__
