"""Shared by the methods with a momentum encoder: two hyperparameters and the objective."""

from contrasweep.data import torch_generator
from contrasweep.losses.validation import Number
from contrasweep.models import Encoder, KeyQueue
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import Hyperparameter, experiment_head, head_outputs
from contrasweep.tuning.objectives.momentum import EVERY_VIEW, MomentumLoss, MomentumObjective

MOMENTUM = {
    "momentum_m": Hyperparameter(
        "the share m that the momentum encoder keeps of itself in a step", Number(at_least=0, at_most=1)
    ),
    "queue": Hyperparameter("keys of earlier batches that repel", Number(at_least=1, whole=True)),
}


def with_momentum(
    experiment: Experiment,
    encoder: Encoder,
    loss: MomentumLoss,
    *,
    queried: slice = EVERY_VIEW,
    keyed: slice = EVERY_VIEW,
    enqueued: slice = EVERY_VIEW,
) -> MomentumObjective:
    """Return the objective of `loss` with the experiment's projection head, momentum and queue."""
    head = experiment_head(experiment, encoder)
    return MomentumObjective(
        encoder,
        head,
        loss,
        momentum_queue(experiment, head_outputs(head, encoder.width)),
        float(experiment.hyperparameters["momentum_m"]),
        queried=queried,
        keyed=keyed,
        enqueued=enqueued,
    )


def momentum_queue(experiment: Experiment, width: int) -> KeyQueue:
    """Return the experiment's queue of `width` wide keys; its random start depends on the seed alone."""
    generator = torch_generator(experiment.seed, "queue")
    return KeyQueue(int(experiment.hyperparameters["queue"]), width, generator)
