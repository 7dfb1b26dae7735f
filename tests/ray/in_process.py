"""Sweeps without Ray: the real searcher, scheduler, callbacks and workers, in the process of the test.

`without_ray` replaces Ray Tune's tuner by one of a few lines. It calls what Tune calls, in Tune's order (see
`TuneController._process_trial_result`). A test of the store, of resuming, of limits or of groups therefore
starts no processes. Other tests run Ray, where Ray can fail: workers die, nodes leave, Ctrl-C arrives.
"""

import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import torch
from ray import cloudpickle, tune
from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler
from ray.tune.search import Searcher
from ray.tune.utils import flatten_dict

from contrasweep.tuning.errors import GpuFault, SharedGpuFull


@contextmanager
def without_ray() -> Iterator[None]:
    """Run sweeps in this process while inside."""
    # Not `tests.threads`: drive.py imports this module where there is no package `tests`.
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contrasweep.tuning.ray.tuner.tune.Tuner", InProcessTuner)
        patch.setattr("contrasweep.tuning.ray.sweep.ray_session", _scratch)
        # It would send the crash reports of the test process itself to a file.
        patch.setattr("contrasweep.tuning.ray.worker.report_crashes", lambda folder: None)
        # It would ask Ray for the GPUs of the node, and so start one, which later tests would find.
        patch.setattr("contrasweep.tuning.ray.worker.take_share_of_node", lambda gpus: None)
        try:
            yield
        finally:
            torch.set_num_threads(threads)
        assert not ray.is_initialized(), "something has started Ray in the process of the tests"


@contextmanager
def _scratch(*_: Any) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


class InProcessTuner:
    """`ray.tune.Tuner` as far as a sweep uses it: workers take a step in turn, as many as may run at once."""

    def __init__(self, trainable: Any, *, tune_config: tune.TuneConfig, run_config: tune.RunConfig) -> None:
        self._trainable = trainable
        self._search: Any = tune_config.search_alg
        self._scheduler: Any = tune_config.scheduler
        self._samples = tune_config.num_samples
        self._at_once = tune_config.max_concurrent_trials or 1
        self._stopper: Any = run_config.stop
        self._callbacks: list[Any] = list(run_config.callbacks or [])
        self._max_failures = run_config.failure_config.max_failures if run_config.failure_config else 0
        self._trials: list[Any] = []
        self._running: list[tuple[Any, Any]] = []
        self._idle: list[Any] = []
        self._finished = False
        self._folder = tempfile.TemporaryDirectory()

    def fit(self) -> None:
        """Run trials until the searcher has no more, or the stopper stops all."""
        try:
            while not self._stopper.stop_all():
                self._tell("on_step_begin")
                while len(self._running) < self._at_once and self._start_next():
                    pass
                if not self._running:
                    break
                for running in list(self._running):
                    self._step(*running)
                self._tell("on_step_end")
        finally:
            for worker in self._idle + [worker for _, worker in self._running]:
                worker.stop()
            self._folder.cleanup()

    def _start_next(self) -> bool:
        if self._finished or len(self._trials) == self._samples:
            return False
        name = f"trial-{len(self._trials)}"
        proposed = self._search.suggest(name)
        # Tune does not ask again.
        self._finished = proposed == Searcher.FINISHED
        if proposed is None or self._finished:
            return False
        # A worker gets a copy, as it would by Ray.
        config: dict[str, Any] = cloudpickle.loads(cloudpickle.dumps(proposed))
        trial = _trial(name, config, self._folder.name)
        self._trials.append(trial)
        self._scheduler.on_trial_add(None, trial)
        if self._idle:
            worker = self._idle.pop()
            try:
                assert worker.reset(config)
            except GpuFault as error:
                self._note(trial, error)
                self._give_up(trial, worker)
                return True
            # Tune of Ray 2.51 closes a worker's log here, and its controller opens another.
            if hasattr(worker, "_create_logger"):
                worker._create_logger(config)
        else:
            worker = self._trainable(config)
        self._running.append((trial, worker))
        self._tell("on_trial_start", trial=trial)
        return True

    def _fail(self, trial: Any, worker: Any, error: Exception) -> None:
        """Do what Tune does with a worker that raised: `TuneController._process_trial_failure`."""
        self._note(trial, error)
        self._running.remove((trial, worker))
        if trial.num_failures <= self._max_failures:
            worker.stop()
            trial.status = Trial.ERROR
            self._scheduler.on_trial_error(None, trial)
            trial.status = Trial.PENDING
            self._scheduler.on_trial_add(None, trial)
            self._tell("on_trial_recover", trial=trial)
            trial.status = Trial.RUNNING
            again = self._trainable(cloudpickle.loads(cloudpickle.dumps(trial.config)))
            self._running.append((trial, again))
            self._tell("on_trial_start", trial=trial)
            return
        self._give_up(trial, worker)

    def _note(self, trial: Any, error: Exception) -> None:
        trial.num_failures += 1
        with Path(trial.error_file).open("a", encoding="utf-8") as file:
            told = "".join(traceback.format_exception(error))
            # The worker of each failure is another process.
            file.write(
                f"Failure # {trial.num_failures} (occurred at noon)\npid={trial.num_failures}\n{told}\n"
            )

    def _give_up(self, trial: Any, worker: Any) -> None:
        self._scheduler.on_trial_error(None, trial)
        self._search.on_trial_complete(trial.trial_id, error=True)
        worker.stop()
        self._tell("on_trial_error", trial=trial)

    def _step(self, trial: Any, worker: Any) -> None:
        try:
            results = worker.train_buffered(self._samples, 0.0)
        except (GpuFault, SharedGpuFull) as error:
            self._fail(trial, worker, error)
            return
        for result in results:
            if self._process(trial, worker, result) == TrialScheduler.STOP:
                break

    def _process(self, trial: Any, worker: Any, result: dict[str, Any]) -> str:
        flat = flatten_dict(result)
        stopped = self._stopper(trial.trial_id, result) or flat["done"]
        decision = TrialScheduler.STOP
        if not stopped:
            decision = self._scheduler.on_trial_result(None, trial, flat)
        if decision != TrialScheduler.STOP:
            self._search.on_trial_result(trial.trial_id, flat)
        self._tell("on_trial_result", trial=trial, result=result)
        if decision == TrialScheduler.STOP:
            self._running.remove((trial, worker))
            self._idle.append(worker)
            self._scheduler.on_trial_complete(None, trial, flat)
            self._search.on_trial_complete(trial.trial_id, flat)
            self._tell("on_trial_complete", trial=trial)
        return str(decision)

    def _tell(self, event: str, **what: Any) -> None:
        for callback in self._callbacks:
            getattr(callback, event)(iteration=0, trials=self._trials, **what)


def _trial(name: str, config: dict[str, Any], folder: str) -> Any:
    metadata = SimpleNamespace(last_result={}, metric_analysis={}, metric_n_steps={})
    trial = SimpleNamespace(
        trial_id=name,
        status=Trial.RUNNING,
        config=config,
        evaluated_params=dict(config),
        experiment_tag=name,
        run_metadata=metadata,
        error_file=f"{folder}/{name}.txt",
        num_failures=0,
        resources=[],
    )
    trial.update_resources = trial.resources.append
    Path(trial.error_file).touch()
    return trial
