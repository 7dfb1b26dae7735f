"""CACR with a momentum encoder: its keys attract, those of earlier batches repel beside the batch itself."""

from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import cacr
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.methods.momentum import MOMENTUM, with_momentum
from contrasweep.tuning.objectives.momentum import Contrast
from contrasweep.tuning.objectives.objective import Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return CACR of all views' queries against all views' keys; the last view's keys join the queue."""
    loss = cacr.loss_of(experiment.hyperparameters)

    def terms(contrast: Contrast) -> tuple[LossTerms, Metrics]:
        entropy = loss.repulsion_entropy(contrast.queries.detach(), contrast.queue)
        found = loss.terms(contrast.queries, contrast.queue, contrast.keys)
        return found, {"repulsion_entropy": entropy}

    return with_momentum(experiment, encoder, terms, enqueued=slice(-1, None))


METHOD = Method(
    name="cacr-moco",
    summary="CACR against a momentum encoder's keys and a queue of older ones",
    paper="CACR (Zheng et al. 2021)",
    equation="Algorithm 3",
    hyperparameters={**cacr.HYPERPARAMETERS, **MOMENTUM},
    build=build,
    feed=cacr.feed,
    train_metrics=("repulsion_entropy",),
)
