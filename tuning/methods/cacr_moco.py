"""CACR with a momentum encoder: its keys attract, those of earlier batches repel beside the batch itself."""

from losses.terms import LossTerms
from models import Encoder
from tuning.config import Experiment
from tuning.methods import cacr
from tuning.methods.method import Method
from tuning.methods.momentum import MOMENTUM, with_momentum
from tuning.training.momentum import Contrast
from tuning.training.objective import Metrics, Objective
from tuning.training.prepared import PreparedData


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
