"""WeaklySup-InfoNCE: images whose conditions fall into one cluster attract, all others repel."""

from torch import Tensor

from contrasweep.losses import ClInfoNCE
from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import CLUSTERS, condition_clusters
from contrasweep.tuning.methods.method import TEMPERATURE, Method, with_projection_head
from contrasweep.tuning.objectives.batches import Feed, image_feed
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def feed(experiment: Experiment, data: PreparedData) -> Feed:
    """Return uniform batches of two views, with the k-means cluster of each image's condition."""
    return image_feed(experiment, data, clusters=condition_clusters(experiment, data))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return Cl-InfoNCE on the projection head's output, with the feed's clusters."""
    loss = ClInfoNCE(float(experiment.hyperparameters["temperature"]))

    def terms(views: Tensor, batch: Batch) -> LossTerms:
        assert batch.clusters is not None, "the feed of this method gives them"
        return loss.terms(views, batch.clusters)

    return with_projection_head(experiment, encoder, terms)


METHOD = Method(
    name="weaklysup-infonce",
    summary="images of one k-means cluster of the condition attract",
    paper="CCL-K (Tsai et al. 2022), after Tsai et al. 2021",
    equation="Eq. 3",
    hyperparameters={"temperature": TEMPERATURE, **CLUSTERS},
    build=build,
    feed=feed,
    needs=frozenset({"condition"}),
)
