"""Training of a fixed length, to separate the other costs of a sweep from the training itself."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ray import cloudpickle

import benchmarks.fake_training as this_module
from contrasweep.tuning.planning import trial
from contrasweep.tuning.ray import tuner
from contrasweep.tuning.ray.worker import TrialWorker

EPOCHS = 5


class NoState:
    """Stands in for `tuning.training.checkpoint.Snapshot`."""

    def dumped(self) -> bytes:
        return b""


@dataclass(frozen=True)
class FakeRecord:
    """Stands in for `tuning.training.pretrain.EpochRecord`."""

    epoch: int
    epochs: int
    metrics: dict[str, float]
    train_seconds: float
    evaluate_seconds: float = 0.0

    @property
    def finished(self) -> bool:
        return self.epoch == self.epochs

    def snapshot(self) -> NoState:
        return NoState()


def spin(seconds: float) -> float:
    """Compute for `seconds` of this thread's processor time, like training; return the wall-clock seconds."""
    started, end = time.perf_counter(), time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
    return time.perf_counter() - started


def use_fake_training(seconds: float) -> None:
    """Make each trial of this process's sweeps train for a fixed time; everything else is real."""

    class FakeTrialWorker(TrialWorker):
        def setup(self, config: dict[str, Any]) -> None:
            def pretrain(experiment: Any, *_: Any, **__: Any) -> Iterator[FakeRecord]:
                for epoch in range(experiment.epochs + 1):
                    spent = spin(0.0 if epoch == 0 else seconds / experiment.epochs)
                    score = 0.5 + 0.1 * epoch / experiment.epochs
                    metrics = {"val.ridge_accuracy": score, "val.accuracy": score, "train.loss": 1.0}
                    yield FakeRecord(epoch, experiment.epochs, metrics, spent)

            trial.pretrain = pretrain
            trial.DataCache.get = lambda *_: None
            super().setup(config)

    cloudpickle.register_pickle_by_value(this_module)
    tuner.TrialWorker = FakeTrialWorker
