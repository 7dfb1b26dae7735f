"""A sweep whose store fills up, or refuses, stops; once resumed, it ends like an undisturbed one."""

import re
from pathlib import Path

import pytest
from studies import outcome, tiny_plan

from contrasweep.tuning.errors import SweepStopped
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray import sweep as sweep_module
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.store import ResultsStore
from tests.store import faulty_disk


def test_a_sweep_outlives_a_full_disk(
    finished: tuple[Path, list[SweepProgress]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_process: None,
) -> None:
    """A short full disk in trial 1 has no effect; a disk that stays full from trial 3 on stops the sweep."""
    results, switch = tmp_path / "results", tmp_path / "switch"
    results.mkdir()
    location = faulty_disk.faulty_location(tmp_path, results, repaired_after=2)
    monkeypatch.setattr(sweep_module, "open_location", lambda *_, **__: location)
    filled: list[int] = []

    def fill(progress: SweepProgress) -> None:
        if progress.running and progress.done in (1, 3) and progress.done not in filled:
            filled.append(progress.done)
            switch.write_text("full")

    with pytest.raises(SweepStopped, match=r"small stopped: .*No space left on device") as stopped:
        run_sweep(tiny_plan(results), progress=fill)
    assert re.search(r"--name small.*--resume", stopped.value.__notes__[-1])
    assert filled == [1, 3]
    of_the_end = list(location.retry.waits[:4])
    noted = location.retry.wait.noted  # type: ignore[attr-defined]
    assert noted[2:] == [*location.retry.waits, *of_the_end]
    rows = ResultsStore(results).trials("small").to_pylist()
    assert [row["status"] for row in rows[:3]] == [row["status"] for row in outcome(finished[0])[:3]]
    assert {row["status"] for row in rows[3:]} <= {"interrupted"}
    assert ResultsStore(results).studies()[0].state == "interrupted"

    switch.unlink()
    resume_sweep("small", results)
    assert outcome(results) == outcome(finished[0])


def test_a_store_that_refuses_stops_the_sweep_at_once_and_fails_no_trial(
    finished: tuple[Path, list[SweepProgress]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    in_process: None,
) -> None:
    results, switch = tmp_path / "results", tmp_path / "switch"
    results.mkdir()
    location = faulty_disk.faulty_location(tmp_path, results)
    monkeypatch.setattr(sweep_module, "open_location", lambda *_, **__: location)

    def refuse(progress: SweepProgress) -> None:
        if progress.running and progress.done == 2:
            switch.write_text("refuses")

    with pytest.raises(SweepStopped, match=r"small stopped: .*permits no writing .*not permitted") as stopped:
        run_sweep(tiny_plan(results), progress=refuse)
    assert "--resume" in stopped.value.__notes__[-1]
    assert not location.retry.wait.noted  # type: ignore[attr-defined]
    statuses = {row["status"] for row in ResultsStore(results).trials("small").to_pylist()}
    assert "failed" not in statuses

    switch.unlink()
    resume_sweep("small", results)
    assert outcome(results) == outcome(finished[0])
