"""A driver whose Ray dies, a real one, and the study that it leaves."""

from pathlib import Path

import pytest
from in_process import without_ray
from studies import TRIALS, driven

from contrasweep.tuning.experiment.statuses import ENDED
from contrasweep.tuning.ray.sweep import resume_sweep
from contrasweep.tuning.store import ResultsStore


@pytest.mark.parametrize(("process", "name"), [("raylet", "raylet"), ("gcs_server", "GCS")])
def test_a_driver_whose_ray_dies_says_so_and_its_study_goes_on(
    process: str, name: str, tmp_path: Path
) -> None:
    ended = driven(tmp_path / "lost", process, 1)
    assert ended.returncode == 1, ended.stderr
    errors = [line for line in ended.stderr.splitlines() if line.startswith("Error:")]
    assert len(errors) == 1, ended.stderr
    error = errors[0]
    assert f"({name}) has died" in error
    # Where the main thread is in a call of Ray that nothing interrupts, the watch ends the process.
    assert "--resume" in error
    assert "goes on" in error
    assert "Traceback" not in ended.stderr
    assert ResultsStore(tmp_path / "lost").studies()[0].state == "interrupted"
    with without_ray():
        resume_sweep("small", tmp_path / "lost")
    # The worker may outlive its raylet for a moment and end its trial, which nobody stops any more.
    rows = ResultsStore(tmp_path / "lost").trials("small").to_pylist()
    assert [row["trial"] for row in rows] == list(range(TRIALS))
    assert {row["status"] for row in rows}.issubset(ENDED)
    epochs = ResultsStore(tmp_path / "lost").epochs("small").to_pylist()
    for row in rows:
        own = [one["epoch"] for one in epochs if one["trial"] == row["trial"]]
        assert own == list(range(row["epoch"] + 1)), "each epoch once"
