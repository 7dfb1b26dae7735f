"""Training of a fixed length, to separate the other costs of a sweep from the training itself."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ray import cloudpickle

import benchmarks.fake_training as this_module
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.encoders import encoder_file
from contrasweep.tuning.objectives.prepared import Prepared
from contrasweep.tuning.ray import tuner
from contrasweep.tuning.ray.worker import TrialWorker
from contrasweep.tuning.trials import trial

DATASET = "colour-digits:images=300,test_images=100"
"""Real images, few of them: workers prepare them once, and nothing is trained on them."""

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
    data: Prepared
    encoder: Encoder
    experiment: Experiment
    evaluate_seconds: float = 0.0

    @property
    def finished(self) -> bool:
        return self.epoch == self.epochs

    def snapshot(self) -> NoState:
        return NoState()

    def encoder_file(self) -> bytes:
        return encoder_file(self.data.spec, self.encoder, self.experiment)


def spin(seconds: float) -> float:
    """Compute for `seconds` of this thread's processor time, like training; return the wall-clock seconds."""
    started, end = time.perf_counter(), time.thread_time() + seconds
    while time.thread_time() < end:
        sum(range(1000))
    return time.perf_counter() - started


class FakePretrain:
    """Stands in for `tuning.training.pretrain.pretrain`: each run computes for `seconds`.

    The encoder of the first run is that of all: to build one is a part of the training left out here.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._encoders: dict[str, Encoder] = {}

    def __call__(
        self, experiment: Experiment, state: bytes | None = None, *, data: Prepared, **_: Any
    ) -> Iterator[FakeRecord]:
        settings, epochs = experiment.encoder, experiment.epochs
        if settings.name not in self._encoders:
            self._encoders[settings.name] = data.build_encoder(settings)
        encoder = self._encoders[settings.name]
        for epoch in range(epochs + 1):
            spent = spin(0.0 if epoch == 0 else self._seconds / epochs)
            score = 0.5 + 0.1 * epoch / epochs
            metrics = {"val.ridge_accuracy": score, "val.accuracy": score, "train.loss": 1.0}
            yield FakeRecord(epoch, epochs, metrics, spent, data, encoder, experiment)


@contextmanager
def fake_training(seconds: float) -> Iterator[None]:
    """Make each trial of this process's sweeps train for a fixed time inside; everything else is real."""
    real_worker, real_pretrain = tuner.TrialWorker, trial.pretrain

    class FakeTrialWorker(TrialWorker):
        def setup(self, config: dict[str, Any]) -> None:
            trial.pretrain = FakePretrain(seconds)
            super().setup(config)

    cloudpickle.register_pickle_by_value(this_module)
    tuner.TrialWorker = FakeTrialWorker
    try:
        yield
    finally:
        # A sweep without Ray has its workers in this process.
        tuner.TrialWorker, trial.pretrain = real_worker, real_pretrain
        cloudpickle.unregister_pickle_by_value(this_module)
