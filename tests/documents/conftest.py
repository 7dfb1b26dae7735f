"""A folder as somebody has it who follows the documents: with studies, and with the files that they show."""

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from contrasweep.models import build_encoder, encoder_bytes
from contrasweep.tuning.cli import app
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from tests.documents.blocks import ROOT, all_blocks
from tests.studies import PlannedStudy, scored

STUDIES = ("demo", "my-study", "photos", "seeded", "two")
"""The studies whose trials the documents show or read."""
_METRICS = {"two": "accuracy,colour_mse"}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the documents show, and with studies of six trials in `results`."""
    folder = tmp_path_factory.mktemp("documents")
    for name in STUDIES:
        plan = plan_sweep(
            "fair-cclk",
            "colour-digits",
            trials=6,
            epochs=2,
            results=folder / "results",
            name=name,
            metric=_METRICS.get(name),
        )
        curves = [(0.5, 0.6 + trial / 50, 0.7 + trial / 50) for trial in range(6)]
        runs = [
            scored(curve, values={"lam": 0.1 + trial}, colour=190.0 + 10 * trial)
            for trial, curve in enumerate(curves)
        ]
        PlannedStudy(plan).write(*runs)
    for block in all_blocks("yaml", "text"):
        if block.file:
            (folder / block.file).write_text(block.text, encoding="utf-8")
    pools = ["pool", "infonce", "fair-cclk", "--size", "48", "-o", str(folder / "pools")]
    assert CliRunner().invoke(app, pools).exit_code == 0
    (folder / "docs").symlink_to(ROOT / "docs")
    for name in re.findall(
        r'load_encoder\("(.+?)"\)', (ROOT / "docs/your-data.md").read_text(encoding="utf-8")
    ):
        (folder / name).parent.mkdir(parents=True)
        encoder = build_encoder("small-conv", 3, 16)
        (folder / name).write_bytes(encoder_bytes(encoder, name="small-conv", channels=3, image_size=16))
    return folder


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, as the working directory; no dataset that needs files is there."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CONTRASWEEP_DATA", str(folder / "data"))
    return folder
