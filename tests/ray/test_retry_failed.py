"""A resumed sweep runs trials that failed again, if it is asked to."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from in_process import without_ray
from studies import EPOCHS, tiny_plan
from typer.testing import CliRunner

from contrasweep.tuning.cli import app
from contrasweep.tuning.errors import TrainingDiverged
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.ray.sweep import resume_sweep, run_sweep
from contrasweep.tuning.ray.sweep_end import runs_again
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.training.pretrain import EpochRecord, pretrain


def test_failed_trials_run_again_and_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[int] = []

    def breaking(experiment: Experiment, *args: Any, **options: Any) -> Iterator[EpochRecord]:
        begun.append(len(begun))
        for record in pretrain(experiment, *args, **options):
            # The second and the third of all trials.
            if record.epoch == 2 and begun[-1] in (1, 2):
                raise TrainingDiverged("it broke")
            yield record

    monkeypatch.setattr("contrasweep.tuning.trials.trial.pretrain", breaking)
    with without_ray():
        run_sweep(tiny_plan(tmp_path, trials=4, scheduler="none"))
        before = ResultsStore(tmp_path).trials("small").to_pylist()
        assert [row["status"] for row in before] == ["completed", "failed", "failed", "completed"]
        assert resume_sweep("small", tmp_path).counts == {"completed": 2, "failed": 2}
        assert len(begun) == 4, "nothing runs again unless it is asked for"
        done = resume_sweep("small", tmp_path, retry_failed=True)
    assert done.counts == {"completed": 4}
    after = ResultsStore(tmp_path).trials("small").to_pylist()
    assert [row["attempt"] for row in after] == [1, 3, 3, 1], "the second one opens the trial again"
    assert [row["error"] for row in after] == [None] * 4
    assert [after[trial] for trial in (0, 3)] == [before[trial] for trial in (0, 3)]
    epochs = ResultsStore(tmp_path).epochs("small").to_pylist()
    assert [row["epoch"] for row in epochs if row["trial"] == 1] == list(range(EPOCHS + 1))
    assert len(begun) == 6


def test_it_goes_with_a_study_that_is_resumed() -> None:
    done = CliRunner().invoke(app, ["sweep", "infonce", "--data", "digits", "--retry-failed"])
    assert done.exit_code == 2
    assert "--retry-failed goes with --resume or --extend" in " ".join(done.output.split())


def test_trials_that_died_of_damaged_data_need_a_new_study(tmp_path: Path) -> None:
    """A study keeps the fingerprint of its data, so that it refuses the mended files."""
    plan = tiny_plan(tmp_path)
    told = runs_again(plan, ": DatasetDamaged: corrupt image: a.png cannot be decoded")
    assert f"`contrasweep delete {plan.name} --results {tmp_path}` frees the name" in told
    assert "--resume --retry-failed` runs them again" in runs_again(plan, ": ValueError: told")
