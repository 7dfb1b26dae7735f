"""A sweep with results on S3: its driver is killed, the sweep is resumed, and commands read the results."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("moto")
pytest.importorskip("flask")

from in_process import without_ray
from studies import outcome, small_plan
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.progress.states import SweepProgress
from contrasweep.tuning.ray.sweep import resume_sweep
from contrasweep.tuning.store import ResultsStore, open_location, save_study
from contrasweep.tuning.trials.checkpoints import RAREST_SECONDS
from contrasweep.tuning.trials.trial import DataCache, Trial, TrialRequest
from tests.search_path import search_path
from tests.store.s3_server import s3_server

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[2]


@pytest.fixture(scope="module")
def results() -> Iterator[str]:
    """The URI of a results folder in an empty bucket; the environment holds the credentials for it."""
    with s3_server() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        server.make_bucket("bucket")
        yield server.uri("bucket/results")


def _command(*arguments: object) -> str:
    done = CliRunner().invoke(app, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_a_killed_sweep_goes_on_and_its_study_is_shown_selected_run_and_compacted(
    finished: tuple[Path, list[SweepProgress]], results: str, tmp_path: Path
) -> None:
    drive = [sys.executable, str(HERE / "drive.py"), results]
    path = {**os.environ, "PYTHONPATH": search_path(ROOT / "src", ROOT, HERE)}
    killed = subprocess.run([*drive, "SIGKILL", "2", "here"], env=path, timeout=240, check=False)
    assert killed.returncode == -signal.SIGKILL
    held = ResultsStore(results).trials("small").to_pylist()
    ended = [row for row in held if row["status"] in ("completed", "stopped")]
    assert 2 <= len(ended) < 8
    with without_ray():
        resume_sweep("small", results)
    assert outcome(results) == outcome(finished[0])
    after = {row["trial"]: row for row in ResultsStore(results).trials("small").to_pylist()}
    assert [after[row["trial"]] for row in ended] == ended, "what had ended is as it was"

    shown = json.loads(_command("show", "small", "--results", results, "--json"))
    assert shown
    best = tmp_path / "best.yaml"
    _command("best", "small", "--results", results, "-o", best)
    told = _command("run", best, "--seeds", 1, "--concurrency", 1, "--results", results)
    assert "untrained" in told
    (final,) = ResultsStore(results).trials("small-final").to_pylist()
    assert final["status"] == "completed"
    exported = open_location(results).read(f"exports/small-final/{final['trial']:05d}-1/encoder.safetensors")
    assert len(exported) > 1000
    merged = json.loads(_command("compact", "small", "--results", results, "--json"))
    assert (merged["removed"], merged["damaged"]) == (0, 0), "the sweep left two files"


def test_a_trial_goes_on_from_its_checkpoint_on_s3(results: str) -> None:
    plan = small_plan(results, "dropped")
    location, record = open_location(results, writable=True), plan.record()
    save_study(location, record)
    values = plan.space.defaults()
    request = TrialRequest(location, record, 0, plan.experiment_of(values), values)
    seconds = iter(range(0, 100_000, int(RAREST_SECONDS)))
    cache = DataCache()
    dropped = Trial(request, cache, clock=lambda: float(next(seconds)))
    for _ in range(3):
        dropped.advance()
    dropped.close()
    reports = [Trial(replace(request, trial=1), cache).advance()]
    again = Trial(request, cache)
    reports.append(again.advance())
    assert [report.epoch for report in reports] == [0, 3], "the one is new, the other goes on after epoch 2"
    assert reports[1].finished
    assert location.files("checkpoints/dropped") == []
