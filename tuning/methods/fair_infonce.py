"""Fair-InfoNCE: InfoNCE on batches that each come from one cluster of the sensitive condition."""

from contrasweep.data import OneClusterBatches
from contrasweep.losses import InfoNCE
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import infonce
from contrasweep.tuning.methods.conditioning import CLUSTERS, condition_clusters
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.objectives.batches import Feed, batches_seed, image_feed
from contrasweep.tuning.objectives.prepared import PreparedData

SMALLEST_BATCH = 3
"""A batch of two from a cluster of odd size would leave an image without a partner."""


def feed(experiment: Experiment, data: PreparedData) -> Feed:
    """Return batches that are each drawn from one cluster of the condition."""
    clusters = condition_clusters(experiment, data)
    batches = OneClusterBatches(clusters, experiment.batch_size, batches_seed(experiment))
    return image_feed(experiment, data, sampler=batches)


METHOD = loss_method(
    InfoNCE,
    name="fair-infonce",
    summary="InfoNCE on batches drawn from one k-means cluster of the condition at a time",
    paper="CCL-K (Tsai et al. 2022), after Tsai et al. 2021",
    equation="Eq. 4",
    hyperparameters={**infonce.HYPERPARAMETERS, **CLUSTERS},
    feed=feed,
    needs=frozenset({"condition"}),
    smallest_batch=SMALLEST_BATCH,
)
