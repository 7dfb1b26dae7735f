"""CCL-K: losses with a kernel of the condition, and two baselines that use its k-means clusters instead.

Source: Tsai et al. 2022, "Conditional contrastive learning with kernel", https://arxiv.org/abs/2202.05458.
"""

from torch import Tensor, nn

from contrasweep.data import OneClusterBatches
from contrasweep.losses import ClInfoNCE, FairCCLK, HardNegCCLK, InfoNCE, WeaklySupCCLK
from contrasweep.models import Encoder
from contrasweep.rules import Number
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.baselines import INFONCE_HYPERPARAMETERS
from contrasweep.tuning.methods.clustering import fits as clusters_fit
from contrasweep.tuning.methods.clustering import kmeans_of_condition
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.from_loss import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import Feed, batches_seed, image_feed
from contrasweep.tuning.objectives.heads import experiment_head
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective, of_views
from contrasweep.tuning.objectives.prepared import PreparedData

PAPER = "CCL-K (Tsai et al. 2022)"
KERNEL = {
    "kernel": "the kernel on the condition",
    "sigma2": "the kernel's scale (not of the cosine kernel)",
    "lam": "the ridge lambda of the kernel regression",
    "temperature": TEMPERATURE,
    "weights": "as the released code, or literally as printed",
}
"""The arguments of a kernel-conditioned loss, and what they mean."""

CLUSTERS = {"clusters": Hyperparameter("k-means clusters of the condition", Number(at_least=1, whole=True))}
"""The hyperparameter of a method that groups the condition."""


class FeatureConditioned(Objective):
    """HardNeg-CCLK of the head's embeddings, conditioned on the features that they were made of.

    The condition `(2, B, D)` is each view's features before the head, as long as they are and without
    gradient: `sigma2` and `lam` belong to that scale.
    """

    def __init__(self, encoder: Encoder, head: nn.Module, loss: HardNegCCLK) -> None:
        super().__init__(encoder)
        self.head = head
        self.loss = loss

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the mean of the loss over its valid anchors, and the fraction dropped."""
        features = self._encode(batch.views)
        embeddings = of_views(self.head, features, apart=self.views_apart)
        terms = self.loss.terms(gather(embeddings, 1), gather(features.detach(), 1))
        return terms.mean(), {"dropped_fraction": terms.dropped_fraction()}


def _hardneg_cclk(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    loss = HardNegCCLK(**experiment.hyperparameters)  # type: ignore[arg-type]
    return FeatureConditioned(encoder, experiment_head(experiment, encoder), loss)


def condition_clusters(experiment: Experiment, data: PreparedData) -> Tensor:
    """Return `kmeans_of_condition` of the training images.

    Raises:
        InputError: the training images have fewer distinct conditions than clusters are asked for.
    """
    try:
        return kmeans_of_condition(experiment, data.train.condition, data.ranks)
    except ValueError as error:
        raise InputError(f"{experiment.method} on {experiment.dataset}: {error}") from error


def _from_one_cluster(experiment: Experiment, data: PreparedData) -> Feed:
    """Return batches that are each drawn from one cluster of the condition."""
    clusters = condition_clusters(experiment, data)
    batches = OneClusterBatches(clusters, experiment.batch_size, batches_seed(experiment))
    return image_feed(experiment, data, sampler=batches)


def _with_clusters(experiment: Experiment, data: PreparedData) -> Feed:
    """Return uniform batches of two views, with the k-means cluster of each image's condition."""
    return image_feed(experiment, data, clusters=condition_clusters(experiment, data))


FAIR_CCLK = loss_method(
    FairCCLK,
    name="fair-cclk",
    summary="negatives are weighted by how similar their condition is to the anchor's",
    paper=PAPER,
    equation="Eq. 8",
    hyperparameters=KERNEL,
)
WEAKLYSUP_CCLK = loss_method(
    WeaklySupCCLK,
    name="weaklysup-cclk",
    summary="images attract each other by the similarity of their conditions",
    paper=PAPER,
    equation="Eq. 7",
    hyperparameters=KERNEL,
)
HARDNEG_CCLK = Method(
    name="hardneg-cclk",
    summary="negatives are weighted by how close their features are to the anchor's",
    paper=PAPER,
    equation="Eq. 9",
    hyperparameters=hyperparameters_of(HardNegCCLK, KERNEL),
    build=_hardneg_cclk,
)
FAIR_INFONCE = loss_method(
    InfoNCE,
    name="fair-infonce",
    summary="InfoNCE on batches drawn from one k-means cluster of the condition at a time",
    paper=f"{PAPER}, after Tsai et al. 2021",
    equation="Eq. 4",
    hyperparameters={**INFONCE_HYPERPARAMETERS, **CLUSTERS},
    feed=_from_one_cluster,
    fits=clusters_fit,
    needs=frozenset({"condition"}),
    # A batch of two from a cluster of odd size would leave an image without a partner.
    smallest_batch=3,
)
WEAKLYSUP_INFONCE = loss_method(
    ClInfoNCE,
    name="weaklysup-infonce",
    summary="images of one k-means cluster of the condition attract each other",
    paper=f"{PAPER}, after Tsai et al. 2021",
    equation="Eq. 3",
    hyperparameters={"temperature": TEMPERATURE, **CLUSTERS},
    feed=_with_clusters,
    fits=clusters_fit,
    needs=frozenset({"condition"}),
)
