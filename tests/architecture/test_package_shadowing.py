"""A folder that holds packages of our names stands in the way loudly, not silently."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def _use_tuning(folder: Path, use: str) -> subprocess.CompletedProcess[str]:
    """Use our engine from `folder`, which Python puts first on its path."""
    return subprocess.run(
        [sys.executable, "-c", f"import tuning; {use}; print(tuning.__file__)"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("file", "use"),
    [
        ("models/__init__.py", "tuning.plan_sweep"),
        ("data.py", "tuning.pretrain"),
        ("losses.py", "import tuning.ray"),  # what a worker of a sweep begins with
        ("search_spaces/__init__.py", "tuning.sweep"),
    ],
)
def test_a_package_in_the_way_is_named(file: str, use: str, tmp_path: Path) -> None:
    hostile = tmp_path / file
    hostile.parent.mkdir(exist_ok=True)
    hostile.write_text("raise SystemExit('hostile code ran')")
    done = _use_tuning(tmp_path, use)
    assert done.returncode != 0
    assert "ShadowedPackage" in done.stderr
    assert str(hostile) in done.stderr
    assert str(ROOT / Path(file).parts[0].removesuffix(".py")) in done.stderr
    assert "hostile code ran" not in done.stderr


def test_what_does_not_stand_in_the_way_is_no_trouble(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()  # no package: a folder of weights, say
    (tmp_path / "models" / "weights.pt").write_bytes(b"")
    (tmp_path / "train.py").write_text("")
    done = _use_tuning(tmp_path, "tuning.Experiment")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == str(ROOT / "tuning" / "__init__.py")
