"""What a command refuses, or only lists, it does before torch, Ray and the like are imported.

These take seconds to import. One process runs all commands: what one imports, the next would have.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from contrasweep.plugin_packages import plugin_names
from contrasweep.tuning.catalogue.declared import (
    DECLARED_DATASETS,
    DECLARED_ENCODERS,
    DECLARED_METHODS,
    DECLARED_SAMPLERS,
    FILE,
)
from contrasweep.tuning.catalogue.writing import catalogue, text_of
from contrasweep.tuning.methods import METHODS
from tests.studies import PlannedStudy, scored, small_plan

HEAVY = ("torch", "ray", "sklearn", "scipy", "matplotlib", "torchvision", "plotly")

SWEEP = ["sweep", "fair-cclk"]
COMMANDS: list[tuple[list[str], int]] = [
    (["--help"], 0),
    (["--version"], 0),
    (["show", "-h"], 0),
    (["sweep", "--help"], 0),
    (["methods"], 0),
    (["metrics"], 0),
    (["metrics", "--data", "digit"], 2),
    (["spaces", "fair-cclk"], 0),
    (["spaces", "fair-ccl"], 2),
    (["sweep", "fair-ccl"], 2),
    ([*SWEEP, "--data", "colour-digit"], 2),
    ([*SWEEP, "--data", "colour-digits:image=100"], 2),
    ([*SWEEP, "--data", "digits"], 2),
    ([*SWEEP, "--nonsense", "1"], 2),
    ([*SWEEP, "--trials", "0"], 2),
    ([*SWEEP, "--workers", "0"], 2),
    ([*SWEEP, "--sampler", "tp"], 2),
    ([*SWEEP, "--device", "gpu"], 2),
    ([*SWEEP, "--trial-timeout", "-1"], 2),
    ([*SWEEP, "--metric", "acuracy"], 2),
    ([*SWEEP, "--data", "colour-digits:images=100", "--metric", "acuracy"], 2),
    ([*SWEEP, "--set", "temprature=1"], 2),
    ([*SWEEP, "--set", "temperature=-1"], 2),
    ([*SWEEP, "--set", "optimizer.lr=-1"], 2),
    ([*SWEEP, "--set", "encoder.name=lenet"], 2),
    ([*SWEEP, "--set", "encoder.name=torchvison:resnet18"], 2),
    ([*SWEEP, "--set", "encoder.weights=absent.pt"], 2),
    ([*SWEEP, "--preset"], 2),
    ([*SWEEP, "--lr", "0.1"], 2),
    (["sweep", "fair-cclk", "fair-cclk"], 2),
    (["replay", "study-1", "--samplers", "tpee"], 2),
    (["pool", "infonce", "fair-cclkk", "-o", "pools"], 2),
    (["stability", "study-1", "study-1"], 2),
]
WITH_STORE: list[tuple[list[str], int]] = [
    (["train", "wrong.yaml"], 2),
    ([*SWEEP, "--name", "study-1"], 2),
    ([*SWEEP, "--name", "study-2", "--resume"], 2),
    (["run", "study-2"], 2),
    (["run", "absent.yaml"], 2),
    (["run", "study-1", "--top", "0"], 2),
    (["run", "study-1", "--seeds", "0"], 2),
    (["table", "cclk-t33"], 2),
    (["best", "study-2"], 2),
    (["export", "study-1", "--format", "tim", "-o", "out"], 2),
    (["export", "study-2", "--format", "timm", "-o", "out"], 2),
    (["report", "study-2"], 2),
    (["report", "study-1", "-o", "page.pdf"], 2),
    (["sensitivity", "study-2"], 2),
    (["replay", "study-2"], 2),
    (["stability", "study-1", "study-2"], 2),
    (["sensitivity", "study-1", "study-1"], 2),
    (["eval", "--help"], 0),
    (["eval", "absent.safetensors", "--data", "digits"], 2),
    (["eval", "study-1", "--data", "digit"], 2),
    (["eval", "study-1", "--data", "scene"], 2),
    (["eval", "study-1", "--data", "digits", "--probe", "kn"], 2),
    (["eval", "study-1", "--data", "digits"], 2),
    (["embed", "study-2", ".", "-o", "features.parquet"], 2),
    (["embed", "study-1", "digit", "-o", "features.parquet"], 2),
    (["embed", "study-1", "digits", "-o", "features.csv"], 2),
]
"""These look into a results folder, or need what does, and pyarrow with it."""

READING = [
    ["studies"],
    ["show", "study-1", "--sort", "accuracy"],
    ["best", "study-1", "-o", "best.yaml"],
    ["copy", "--from", "results", "--results", "elsewhere"],
    ["delete", "study-1", "--yes"],
]
"""Where pyarrow finds pandas, it imports it to read rows."""

PROBE = """
import json, sys
from typer.testing import CliRunner
from contrasweep.tuning.cli import app

for heavy, arguments, code in json.loads(sys.argv[1]):
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == code, (arguments, result.output)
    imported = [name for name in heavy if name in sys.modules]
    assert not imported, (arguments, imported)
"""


def test_nothing_heavy_is_imported_before_it_is_needed(tmp_path: Path) -> None:
    PlannedStudy(small_plan(tmp_path / "results")).write(scored())
    (tmp_path / "wrong.yaml").write_text("{method: fair-cclk, dataset: colour-digits, epoch: 3}")
    steps = [[[*HEAVY, "pandas", "pyarrow", "numpy"], *one] for one in COMMANDS]
    steps += [[[*HEAVY, "pandas"], *one] for one in WITH_STORE] + [[HEAVY, one, 0] for one in READING]
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(steps)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not list((tmp_path / "results" / "studies").iterdir())


def test_the_catalogue_says_what_the_code_declares() -> None:
    path = Path(__file__).parents[2] / "tuning" / "catalogue" / FILE
    assert path.read_text() == text_of(catalogue()), "`make catalogue` writes it anew"


@pytest.mark.parametrize("name", sorted(METHODS.keys() - plugin_names("method")))
def test_a_declaration_reads_as_it_was_written(name: str) -> None:
    declared, method = DECLARED_METHODS[name], METHODS[name]
    fields: dict[str, Any] = vars(declared)
    assert fields == {field: getattr(method, field) for field in fields}


def test_the_kinds_are_complete() -> None:
    assert {"colour-digits", "scene", "image-folder"} <= set(DECLARED_DATASETS)
    assert DECLARED_ENCODERS["herocon-mlp"].takes == "vectors"
    assert DECLARED_SAMPLERS["grid"].exhaustive
    assert "nothing" not in DECLARED_METHODS
