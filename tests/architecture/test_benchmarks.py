"""The benchmarks run rarely and by hand; what they import of the library must be there.

Their README lists them.
"""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = (ROOT / "benchmarks").rglob("*.py")
MODULES = sorted(".".join(file.relative_to(ROOT).with_suffix("").parts) for file in FILES)


@pytest.mark.parametrize("module", MODULES)
def test_a_benchmark_can_be_imported(module: str) -> None:
    try:
        importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("benchmarks", "contrasweep", "tests"):
            raise
        pytest.skip(f"needs {error.name}")


def test_the_readme_lists_every_script() -> None:
    folder = ROOT / "benchmarks"
    runs = {file.stem for file in folder.glob("*.py") if "__main__" in file.read_text(encoding="utf-8")}
    runs |= {file.parent.name for file in folder.glob("*/__main__.py")}
    listed = re.findall(r"^\| `(\w+)` \|", (folder / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(runs)
