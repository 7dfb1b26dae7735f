"""WeaklySup-InfoNCE: images whose conditions fall into one cluster attract, all others repel."""

from torch import Tensor

from losses import ClInfoNCE
from losses.terms import LossTerms
from models import Encoder
from tuning.config import Experiment
from tuning.methods.conditioning import CLUSTERS, condition_clusters
from tuning.methods.method import TEMPERATURE, Method, with_projection_head
from tuning.training.feeds import Feed, image_feed
from tuning.training.objective import Batch, Objective
from tuning.training.prepared import PreparedData


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
