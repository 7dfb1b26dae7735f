"""Training of a fixed length: what a sweep costs beside training, told apart from the training itself."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ray import cloudpickle

import benchmarks.fake_training as this_module
from contrasweep.tuning.planning.plan_sweep import trial
from contrasweep.tuning.ray import sweep
from contrasweep.tuning.ray.worker import TrialWorker

EPOCHS = 5


@dataclass(frozen=True)
class FakeRecord:
    """Looks to a trial like `tuning.training.pretrain.EpochRecord`."""

    epoch: int
    epochs: int
    metrics: dict[str, float]
    train_seconds: float
    evaluate_seconds: float = 0.0

    @property
    def finished(self) -> bool:
        return self.epoch == self.epochs

    def checkpoint(self) -> bytes:
        return b""


def spin(seconds: float) -> float:
    """Compute for so many seconds of this thread's time, as training does; return the wall-clock it took."""
    started, end = time.perf_counter(), time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
    return time.perf_counter() - started


def use_fake_training(seconds: float) -> None:
    """Have the sweeps of this process train for so many seconds a trial; all else of them is real."""

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
    sweep.TrialWorker = FakeTrialWorker
