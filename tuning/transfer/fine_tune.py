"""Fine-tuning: an encoder and a linear classifier on it train together, as a run of `cross-entropy` does."""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Final

from contrasweep.models import Encoder
from contrasweep.tuning.experiment import EncoderSettings, Experiment
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.planning.resolve import resolve
from contrasweep.tuning.planning.settings import known_experiment
from contrasweep.tuning.training.evaluation import Reading, read_own_classifier
from contrasweep.tuning.training.pretrain import pretrain
from contrasweep.tuning.transfer.encoders import GivenEncoder
from contrasweep.tuning.transfer.plan import METHOD, FineTuning
from contrasweep.tuning.transfer.tasks import Task

STEPS: Final = 10
"""Steps of an epoch, of so few images that it would have fewer in batches of the usual size."""

SMALLEST_BATCH: Final = 8
"""Images of a batch: batch norm needs some."""


@dataclass(frozen=True)
class StartingWith(PreparedData):
    """Images on which a run begins with the encoder that `start` returns, whatever network is asked for."""

    start: Callable[[], Encoder] | None = None

    def build_encoder(self, settings: EncoderSettings) -> Encoder:
        """Return the encoder to begin with."""
        return super().build_encoder(settings) if self.start is None else self.start()


def fine_tuning_experiment(
    encoder: GivenEncoder, task: Task, settings: FineTuning, draw: int | None
) -> Experiment:
    """Return the experiment of a fine-tuned encoder on a task.

    Views and optimizer are those of `cross-entropy` on the dataset. Its batches are too, but smaller for few
    images, so that an epoch has ten steps where batches of eight allow it. Its seed is that of the encoder's
    run, or of few images the number of their draw.

    Raises:
        InputError: the dataset has training images without labels, which the classifier cannot learn from.
    """
    values = {
        "encoder.name": encoder.file.header["name"],
        "views.size": encoder.takes.size,
        "epochs": settings.epochs,
        "validation.fraction": 0.0,
        "seed": encoder.seed if draw is None else draw,
        "batch_size": _batch_size(task),
        **({} if settings.lr is None else {"optimizer.lr": settings.lr}),
    }
    return resolve(METHOD, task.name, values, data_root=task.data_root)


def _batch_size(task: Task) -> int:
    usual = known_experiment(METHOD, task.name).batch_size
    return min(usual, max(SMALLEST_BATCH, len(task.data.train) // STEPS))


def fine_tune(
    encoder: GivenEncoder, task: Task, settings: FineTuning, draw: int | None, *, trained: bool
) -> Reading:
    """Train an encoder with a linear classifier on the task's training images, and read its test images.

    Args:
        encoder: the encoder to begin with.
        task: the images; of few shots, those of one draw.
        settings: epochs and learning rate.
        draw: the number of the draw; None where all training images are there.
        trained: whether it begins with the trained weights, or with those before training.

    Raises:
        TrainingDiverged: the loss became NaN or Inf.
    """
    experiment = fine_tuning_experiment(encoder, task, settings, draw)
    held = {one.name: getattr(task.data, one.name) for one in fields(task.data)}
    spec = task.data.spec.at_view_size(encoder.takes.size)
    data = StartingWith(
        **{**held, "spec": spec, "untrained": {}},
        start=lambda: encoder.network(spec.channels, trained=trained),
    )
    for record in pretrain(experiment, data=data, device=data.device):
        last = record.objective
    probes = experiment.probes.model_copy(update={"centre": encoder.experiment.probes.centre})
    return read_own_classifier(last, data, task.test, probes, test=True)
