"""Fair-InfoNCE: InfoNCE on batches that each come from one cluster of the sensitive condition."""

from torch import Tensor

from data import LabelledImages, kmeans_clusters, named_seed
from models import Encoder
from tuning.config import Experiment
from tuning.errors import InputError
from tuning.methods import infonce
from tuning.methods.method import Hyperparameter, Method
from tuning.training.objective import Objective


def clusters_of(experiment: Experiment, train: LabelledImages) -> Tensor:
    """Return k-means clusters `(N,)` of the condition `(N, Z)`; their seed follows the experiment's.

    Raises:
        InputError: the training images have fewer distinct conditions than clusters are asked for.
    """
    assert train.condition is not None, "checked when the experiment was resolved"
    clusters = int(experiment.hyperparameters["clusters"])
    try:
        return kmeans_clusters(train.condition, clusters, named_seed(experiment.seed, "clusters"))
    except ValueError as error:
        raise InputError(f"fair-infonce on {experiment.dataset}: {error}") from error


def build(experiment: Experiment, encoder: Encoder) -> Objective:
    """Return InfoNCE; the clusters act through the batches alone."""
    own = {name: value for name, value in experiment.hyperparameters.items() if name != "clusters"}
    return infonce.build(experiment.model_copy(update={"hyperparameters": own}), encoder)


METHOD = Method(
    name="fair-infonce",
    summary="InfoNCE on batches drawn from one k-means cluster of the condition at a time",
    paper="CCL-K (Tsai et al. 2022), after Tsai et al. 2021",
    equation="Eq. 4",
    hyperparameters={
        **infonce.HYPERPARAMETERS,
        "clusters": Hyperparameter("k-means clusters of the condition", int, at_least=1),
    },
    build=build,
    needs_condition=True,
    # A batch of two from a cluster of odd size would leave an image without a partner.
    smallest_batch=3,
    clusters_of=clusters_of,
)
