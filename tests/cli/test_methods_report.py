"""What a search of several methods says at its end."""

from dataclasses import replace
from pathlib import Path

import pytest

from contrasweep.tuning.cli.sweep_report import report_methods
from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.ray.result import SweepResult
from contrasweep.tuning.ray.sweep_group import GroupResult
from tests.studies import PlannedStudy, scored, small_plan


def test_one_command_compares_the_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = []
    for name in ("both-fair-cclk", "both-infonce"):
        plan = replace(small_plan(tmp_path, trials=1), name=name)
        PlannedStudy(plan).write(scored((0.5, 0.6, 0.7)))
        done.append(SweepResult(plan, {"completed": 1}))
    failed = {"both-cmc": "no trial finished"}
    with pytest.raises(SweepFailed, match="no trial finished"):
        report_methods(GroupResult(tuple(done), failed), "both", str(tmp_path), as_json=False)
    said = capsys.readouterr()
    told = f"Next: contrasweep run both-fair-cclk both-infonce --results {tmp_path} --seeds 5"
    assert told in " ".join((said.out + said.err).split())
