"""What searches say at their end: of several methods, and of one without a best trial."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from contrasweep.tuning.cli.sweep_report import failures_in_json, report_methods
from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.ray.result import SweepResult
from contrasweep.tuning.ray.sweep_group import GroupResult
from tests.studies import PlannedStudy, scored, small_plan


def test_one_command_compares_the_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = []
    for name in ("both-fair-cclk", "both-infonce"):
        plan = replace(small_plan(tmp_path, trials=1), name=name)
        PlannedStudy(plan).write(scored((0.5, 0.6, 0.7)))
        done.append(SweepResult(plan, {"completed": 1, "failed": int(name == "both-infonce")}))
    failed = {"both-cmc": "no trial finished"}
    with pytest.raises(SweepFailed, match="no trial finished"):
        report_methods(GroupResult(tuple(done), failed), "both", str(tmp_path), as_json=False)
    said = capsys.readouterr()
    words = " ".join((said.out + said.err).split())
    assert f"Next: contrasweep run both-fair-cclk both-infonce --seeds 5 --results {tmp_path}" in words
    shows = f"`contrasweep show both-infonce --results {tmp_path}`"
    assert f"Warning: some trials failed; for the errors: {shows}" in words


@pytest.mark.parametrize("as_json", [True, False])
def test_a_sweep_without_a_best_trial_is_told_as_json_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    plan = small_plan(tmp_path, trials=2)
    failed = scored((0.5,), "failed", error="ValueError: told")
    PlannedStudy(plan).write(scored((0.5, 0.6, 0.7)), failed)
    with pytest.raises(SweepFailed, match="none keeps"), failures_in_json(plan.name, str(tmp_path), as_json):
        raise SweepFailed("none keeps the conditions")
    said = capsys.readouterr().out
    if not as_json:
        assert said == ""
        return
    content = json.loads(said)
    assert content["counts"] == {"completed": 1, "failed": 1}
    assert content["best"] == []
    assert [(one["trial"], one["error"]) for one in content["failed"]] == [(1, "ValueError: told")]


def test_a_sweep_that_never_began_is_no_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SweepFailed), failures_in_json("absent", str(tmp_path), as_json=True):
        raise SweepFailed("Ray did not start")
    assert capsys.readouterr().out == ""
