"""A method of another distribution runs through the command line.

The sweep runs in one process. In the tests of faults on Ray, a method of another distribution reaches Ray's
workers, from a folder of foreign packages too.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from installing import EXAMPLES, install_example

from contrasweep.tuning.store import ResultsStore
from tests.foreign_packages import write_foreign_packages
from tests.search_path import search_path

ROOT = Path(__file__).parents[2]
PROJECT = EXAMPLES / "contrasweep-dcl"
CONTRASWEEP = "from contrasweep.tuning.cli import main; main()"
WITHOUT_RAY = """
from in_process import without_ray
from contrasweep.tuning.cli import main
with without_ray():
    main()
"""
PAGES = "\n".join(page.read_text(encoding="utf-8") for page in sorted((ROOT / "docs").glob("add-*.md")))


def _python(folder: Path, command: list[str], *arguments: str) -> str:
    """Run Python in a folder of its own, with the plug-in installed."""
    path = search_path(ROOT / "src", ROOT / "tests" / "ray", *install_example(folder / "site"))
    done = subprocess.run(
        [sys.executable, *command, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=480,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_its_space_is_printed_and_it_is_found_when_it_is_imported_first(tmp_path: Path) -> None:
    # It imports our registry while it is itself incomplete: to look for plug-ins there would be too early.
    first = (
        "import contrasweep_dcl as c, contrasweep.tuning.methods as t; assert t.METHODS['dcl'] is c.METHOD"
    )
    rows = json.loads(_python(tmp_path, ["-c", f"{first}; {CONTRASWEEP}"], "spaces", "dcl", "--json"))
    assert [row["parameter"] for row in rows] == [
        "temperature",
        "optimizer.lr",
        "views.min_crop",
        "views.flip",
    ]


def test_it_is_searched_and_run_from_a_folder_of_foreign_packages(tmp_path: Path) -> None:
    """A user's own models/ and data.py, in the folder they work in, are not mistaken for ours."""
    write_foreign_packages(tmp_path)
    small = [
        "--set",
        "probes.max_steps=5",
        "--trials",
        "2",
        "--epochs",
        "1",
        "--name",
        "outside",
        "--concurrency",
        "1",
    ]
    said = _python(tmp_path, ["-c", WITHOUT_RAY], "sweep", "dcl", "--data", "digits", *small)
    assert "Next: contrasweep best outside -o best.yaml" in said
    store = ResultsStore(tmp_path / "results")
    rows = store.trials("outside").to_pylist()
    assert [row["status"] for row in rows] == ["completed", "completed"]
    assert rows[0]["hp.temperature"] == 0.1
    assert rows[1]["hp.temperature"] != 0.1
    assert store.study("outside").method == "dcl"
    assert store.study("outside").versions["contrasweep-dcl"] == "0.1.0"

    told = _python(tmp_path, ["-m", "contrasweep"], "run", "outside", "--seeds", "1", "--json")
    assert [row["scores"]["accuracy"]["n"] for row in json.loads(told)["rows"]] == [1, 1]
    rows = store.trials("outside-final").to_pylist()
    assert [(row["seed"], row["status"]) for row in rows] == [(1, "completed")]


@pytest.mark.parametrize(
    "file",
    sorted(
        path
        for path in EXAMPLES.glob("contrasweep-*/**/*.*")
        if path.suffix in (".py", ".yaml", ".toml")
        and (path.name != "__init__.py" or PROJECT in path.parents)
    ),
)
def test_the_documentation_shows_these_very_files(file: Path) -> None:
    name = file.relative_to(EXAMPLES).as_posix()
    shown = re.search(rf"`{re.escape(name)}`:\n\n<!-- [^\n]* -->\n```\w+\n(.*?)```\n", PAGES, flags=re.DOTALL)
    assert shown, f"{name} is in no page docs/add-*.md"
    assert shown.group(1) == file.read_text(encoding="utf-8")
