"""WeaklySup-InfoNCE: images whose conditions fall into one cluster attract, all others repel."""

from contrasweep.losses import ClInfoNCE
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import CLUSTERS, condition_clusters
from contrasweep.tuning.methods.loss_method import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE
from contrasweep.tuning.objectives.batches import Feed, image_feed
from contrasweep.tuning.objectives.prepared import PreparedData


def feed(experiment: Experiment, data: PreparedData) -> Feed:
    """Return uniform batches of two views, with the k-means cluster of each image's condition."""
    return image_feed(experiment, data, clusters=condition_clusters(experiment, data))


METHOD = loss_method(
    ClInfoNCE,
    name="weaklysup-infonce",
    summary="images of one k-means cluster of the condition attract",
    paper="CCL-K (Tsai et al. 2022), after Tsai et al. 2021",
    equation="Eq. 3",
    hyperparameters={"temperature": TEMPERATURE, **CLUSTERS},
    feed=feed,
    needs=frozenset({"condition"}),
)
