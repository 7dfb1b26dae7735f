"""What we use of Ray beside its documents is there, in the Ray that is installed, and does what we think.

A test that fails names what Ray changed: mend `tuning/ray/internals.py`, or the variable in `ray/cluster.py`,
before the range in `pyproject.toml` admits that release.
"""

import gc
import weakref
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
import ray
from ray import tune
from ray.exceptions import RayActorError, RayTaskError
from ray.train import ControllerError, WorkerGroupError
from ray.train.v2._internal.exceptions import UserExceptionWithTraceback
from ray.tune.execution.tune_controller import TuneController
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from contrasweep.tuning.planning.halving import Halving
from contrasweep.tuning.ray import internals
from contrasweep.tuning.ray.cluster import ENVIRONMENT
from contrasweep.tuning.ray.scheduler import ResumableASHA
from contrasweep.tuning.ray.worker import TrialWorker

MEND = f"Ray {ray.__version__} differs here from the versions tried: mend tuning/ray/internals.py"


class Kept:
    """Stands in for a trial's request."""

    def __str__(self) -> str:
        return "kept"


@pytest.fixture
def trial(tmp_path: Path) -> Trial:
    # Tune's own would ask a running Ray for its folder.
    storage: Any = SimpleNamespace(trial_driver_staging_path=str(tmp_path))
    return Trial("trainable", config={"request": Kept()}, storage=storage, max_failures=2, stub=True)


def test_a_trial_tells_its_actor(trial: Trial) -> None:
    assert internals.actor_of(trial) is None, MEND
    # Tune asks a new actor for its node and its process.
    actor = SimpleNamespace(get_auto_filled_metrics=SimpleNamespace(remote=lambda **_: None))
    trial.set_ray_actor(actor)
    assert internals.actor_of(trial) is actor, MEND


def test_a_trial_that_must_not_restart_has_failed_for_good(trial: Trial) -> None:
    trial.handle_error(RayTaskError("step", "told", ValueError("told")))
    assert trial.should_recover(), MEND
    internals.never_restart(trial)
    assert not trial.should_recover(), MEND


def test_a_trial_tells_how_often_it_failed_and_why(trial: Trial) -> None:
    assert internals.last_failure(trial) is None, MEND
    for told in ("the first", "the second\nKeyError: 'a'"):
        trial.handle_error(RayTaskError("step", told, ValueError(told)))
    failures, told = internals.last_failure(trial) or (0, "")
    assert failures == 2, MEND
    assert "the first" not in told, MEND
    assert told.strip().endswith("KeyError: 'a'"), MEND


def test_a_worker_that_dies_while_it_takes_a_trial_over_costs_one_failure(trial: Trial) -> None:
    """Tune begins the trial again, hears of the same death once more, and gives the trial up.

    If a release no longer does, the searcher need not propose such a trial again.
    """
    controller = MagicMock(_pending_trials={trial}, _paused_trials=set())
    controller._set_trial_status = Trial.set_status
    controller._try_recover = lambda trial, exc: trial.set_status(Trial.PENDING)
    controller._process_trial_failure = partial(TuneController._process_trial_failure, controller)
    controller._trial_task_failure = partial(TuneController._trial_task_failure, controller)
    death = RayActorError(error_msg="the actor of pid 7 died")
    worker = MagicMock()
    controller._actor_to_trial = {worker: trial}
    TuneController._actor_failed(controller, worker, death)
    controller._search_alg.on_trial_complete.assert_not_called()
    controller._trial_task_failure(trial, death)
    controller._search_alg.on_trial_complete.assert_called_once_with(trial.trial_id, error=True)
    assert (internals.last_failure(trial) or (0, ""))[0] == 1, MEND


def test_a_trial_that_begins_again_takes_other_resources(trial: Trial) -> None:
    trial.set_status(Trial.RUNNING)
    assert not internals.begins_again(trial), MEND
    trial.set_status(Trial.ERROR)
    assert internals.begins_again(trial), MEND
    other = Kept()
    internals.change(trial, {"request": other}, tune.PlacementGroupFactory([{"CPU": 1, "GPU": 1.0}]))
    assert trial.config["request"] is other, MEND
    assert trial.placement_group_factory.required_resources == {"CPU": 1, "GPU": 1.0}, MEND


def test_nothing_of_a_trial_that_is_forgotten_stays(trial: Trial) -> None:
    request = weakref.ref(trial.config["request"])
    trial.evaluated_params = dict(trial.config)
    trial.update_last_result({"config": trial.config, "score": 0.5, "training_iteration": 1})
    metadata = trial.run_metadata
    assert (metadata.metric_analysis, metadata.metric_n_steps) != ({}, {}), MEND
    internals.forget(trial)
    gc.collect()
    assert request() is None, f"{MEND}: a trial keeps its configuration in one more place"
    assert (metadata.last_result, metadata.metric_analysis, metadata.metric_n_steps) == ({}, {}, {}), MEND


def test_asha_needs_no_controller() -> None:
    scheduler = ResumableASHA(9, 0.0, past=[{1: 0.9, 3: 0.9}] * 3, interrupted={}, halving=Halving())
    weak = Trial("trainable", config={"request": SimpleNamespace(trial=7)}, stub=True)
    scheduler.on_trial_add(internals.NO_CONTROLLER, weak)
    decision = scheduler.on_trial_result(internals.NO_CONTROLLER, weak, {"epoch": 1, "score": 0.1})
    assert decision == TrialScheduler.STOP, MEND


def test_asha_decides_anew_about_scores_that_were_taken_off_its_rungs() -> None:
    scheduler = ResumableASHA(9, 0.0, past=[{1: 0.9}] * 3, interrupted={}, halving=Halving())
    weak = Trial("trainable", config={"request": SimpleNamespace(trial=7)}, stub=True)
    scheduler.on_trial_add(internals.NO_CONTROLLER, weak)
    decisions = []
    for _ in range(3):
        decisions.append(scheduler.on_trial_result(internals.NO_CONTROLLER, weak, {"epoch": 1, "score": 0.1}))
        if len(decisions) == 2:
            internals.take_off_rungs(scheduler, weak.trial_id)
    assert decisions == [TrialScheduler.STOP, TrialScheduler.CONTINUE, TrialScheduler.STOP], MEND


def test_the_workers_of_a_train_run_tell_what_they_raised() -> None:
    raised = ValueError("of a worker")
    error = WorkerGroupError("told", {1: UserExceptionWithTraceback(raised, "trace")})
    assert internals.raised_by_workers(error) == [raised], MEND
    assert internals.raised_by_workers(ControllerError(raised)) == [raised], MEND
    assert internals.raised_by_workers(raised) == []


def test_tune_lets_workers_report_epochs_together() -> None:
    calls: list[dict[str, Any]] = []
    controller: Any = SimpleNamespace(
        _buffer_length=int(ENVIRONMENT["TUNE_RESULT_BUFFER_LENGTH"]),
        _buffer_min_time_s=0.0,
        _buffer_max_time_s=0.0,
        _actor_manager=SimpleNamespace(num_actor_tasks=0),
        _schedule_trial_task=lambda **call: calls.append(call),
        _on_training_result=None,
        _trial_task_failure=None,
    )
    controller._maybe_buffer_training = partial(TuneController._maybe_buffer_training, controller)
    TuneController._schedule_trial_train(
        controller, SimpleNamespace(checkpoint_at_end=False, checkpoint_freq=0)
    )
    assert calls[0]["method_name"] == TrialWorker.train_buffered.__name__, MEND


@pytest.mark.parametrize("variable", sorted(ENVIRONMENT))
def test_ray_reads_the_variable(variable: str, sources: str) -> None:
    mend = "mend ENVIRONMENT in tuning/ray/cluster.py"
    assert variable in sources, f"Ray {ray.__version__} does not read {variable}: {mend}"


@pytest.fixture(scope="module")
def sources() -> str:
    """What is written in the parts of Ray that read the variables."""
    root = Path(ray.__file__).parent
    parts = ("tune", "train", "air", "_private", "_common")
    files = [file for part in parts for file in (root / part).rglob("*.py")]
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


@pytest.mark.parametrize("attribute", ["temporary_state", "run_metadata", "error_file", "_base_exc"])
def test_they_are_used_in_one_file(attribute: str) -> None:
    files = Path(internals.__file__).parent.glob("*.py")
    users = [file.name for file in files if attribute in file.read_text(encoding="utf-8")]
    assert users == ["internals.py"]
