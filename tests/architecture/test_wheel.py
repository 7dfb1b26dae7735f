"""The wheel has one name at its top level and holds everything in the five folders."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import contrasweep
from tests.architecture.imports import PACKAGES, ROOT

BUILD = "import sys; from setuptools import build_meta; print(build_meta.build_wheel(sys.argv[1]))"


def test_the_wheel_holds_contrasweep_alone_and_whole(tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run([sys.executable, "-c", BUILD, str(tmp_path)], cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
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
    assert "contrasweep/py.typed" in names


def test_links_lead_to_the_five_folders() -> None:
    for package in PACKAGES:
        assert (ROOT / "src" / "contrasweep" / package).resolve() == ROOT / package
