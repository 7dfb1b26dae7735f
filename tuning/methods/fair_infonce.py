"""Fair-InfoNCE: InfoNCE on batches that each come from one cluster of the sensitive condition."""

from contrasweep.data import OneClusterBatches
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import infonce
from contrasweep.tuning.methods.conditioning import CLUSTERS, condition_clusters
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import Feed, batches_seed, image_feed
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def feed(experiment: Experiment, data: PreparedData) -> Feed:
    """Return batches that are each drawn from one cluster of the condition."""
    clusters = condition_clusters(experiment, data)
    batches = OneClusterBatches(clusters, experiment.batch_size, batches_seed(experiment))
    return image_feed(experiment, data, sampler=batches)


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return InfoNCE; the clusters act through the batches alone."""
    own = {name: value for name, value in experiment.hyperparameters.items() if name != "clusters"}
    return infonce.build(experiment.model_copy(update={"hyperparameters": own}), encoder, data)


METHOD = Method(
    name="fair-infonce",
    summary="InfoNCE on batches drawn from one k-means cluster of the condition at a time",
    paper="CCL-K (Tsai et al. 2022), after Tsai et al. 2021",
    equation="Eq. 4",
    hyperparameters={**infonce.HYPERPARAMETERS, **CLUSTERS},
    build=build,
    needs=frozenset({"condition"}),
    # A batch of two from a cluster of odd size would leave an image without a partner.
    smallest_batch=3,
    feed=feed,
)
