"""MoCo-v2: a view attracts the momentum encoder's other view and is repelled by keys of earlier batches."""

from collections.abc import Callable

from torch import Tensor

from contrasweep.losses import QueueInfoNCE
from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.objectives.momentum import Contrast, MomentumObjective
from contrasweep.tuning.objectives.objective import Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData

MOMENTUM = {
    "momentum_m": Hyperparameter(
        "the share m that the momentum encoder keeps of itself in a step", Number(at_least=0, at_most=1)
    ),
    "queue": Hyperparameter("keys of earlier batches that repel", Number(at_least=1, whole=True)),
}
"""The hyperparameters of every method with a momentum encoder."""

SYMMETRIC = Hyperparameter("whether each view is query and key in turn", OneOf(("off", "on")))


QueueTerms = Callable[[Tensor, Tensor, Tensor], LossTerms | Tensor]
"""Terms (or a scalar) of queries `(B, D)`, their keys `(B, D)` and the queue `(Q, D)`."""


def one_way(experiment: Experiment, encoder: Encoder, loss: QueueTerms) -> MomentumObjective:
    """Return a loss of the first view's queries and the second's keys, which join the queue afterwards."""

    def terms(contrast: Contrast) -> tuple[LossTerms | Tensor, Metrics]:
        return loss(contrast.queries[0], contrast.keys[0], contrast.queue), {}

    return MomentumObjective(experiment, encoder, terms, queried=slice(0, 1), keyed=slice(1, 2))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return the loss of the first view's queries and the second's keys; symmetric, both ways.

    The keys that are compared join the queue afterwards: of one view, or of both.
    """
    settings = experiment.hyperparameters
    loss = QueueInfoNCE(float(settings["temperature"]))
    if settings["symmetric"] == "off":
        return one_way(experiment, encoder, loss.terms)

    def both_ways(contrast: Contrast) -> tuple[LossTerms, Metrics]:
        keys = contrast.keys.flip(0).flatten(0, 1)
        return loss.terms(contrast.queries.flatten(0, 1), keys, contrast.queue), {}

    return MomentumObjective(experiment, encoder, both_ways)


METHOD = Method(
    name="moco-v2",
    summary="a view attracts its momentum-encoded partner, a queue of older keys repels",
    paper="MoCo (He et al. 2020), MoCo-v2 (Chen et al. 2020)",
    equation="MoCo, Eq. 1 and 2",
    hyperparameters={
        **hyperparameters_of(QueueInfoNCE, {"temperature": TEMPERATURE}),
        "symmetric": SYMMETRIC,
        **MOMENTUM,
    },
    build=build,
)
