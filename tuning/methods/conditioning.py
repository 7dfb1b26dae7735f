"""The condition and the bias in methods: a kernel on the condition, its k-means clusters, bias labels.

Sources: Tsai et al. 2022, "Conditional contrastive learning with kernel", https://arxiv.org/abs/2202.05458;
Barbano et al. 2023, "Unbiased supervised contrastive learning", https://arxiv.org/abs/2211.05568.
"""

from torch import Tensor
from torch.nn import functional

from contrasweep.data import kmeans_clusters, named_seed
from contrasweep.losses.validation import Number
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter
from contrasweep.tuning.objectives.objective import Batch
from contrasweep.tuning.objectives.prepared import PreparedData

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


def kmeans_of_condition(experiment: Experiment, condition: Tensor | None) -> Tensor:
    """Return k-means clusters `(N,)` of the training images' condition; their seed is the experiment's.

    Raises:
        ValueError: there are fewer distinct conditions than clusters are asked for.
    """
    assert condition is not None, "checked when the experiment was resolved"
    clusters = int(experiment.hyperparameters["clusters"])
    return kmeans_clusters(condition, clusters, named_seed(experiment.seed, "clusters"))


def condition_clusters(experiment: Experiment, data: PreparedData) -> Tensor:
    """Return `kmeans_of_condition` of the training images.

    Raises:
        InputError: the training images have fewer distinct conditions than clusters are asked for.
    """
    try:
        return kmeans_of_condition(experiment, data.train.condition)
    except ValueError as error:
        raise InputError(f"{experiment.method} on {experiment.dataset}: {error}") from error


def bias_of(batch: Batch) -> Tensor:
    """Return the bias labels `(B,)` of a batch whose method needs them."""
    assert batch.bias is not None, "checked when the experiment was resolved"
    return batch.bias


def bias_similarity(batch: Batch) -> Tensor:
    """Return the similarity of the images' bias features `(B, B)`, 0..1: their cosines, clipped at 0.

    The condition holds the features. Source: Barbano et al. 2023, section B.2.4; there a network that
    captures the bias gives the features, and they are never negative.
    """
    assert batch.condition is not None, "checked when the experiment was resolved"
    directions = functional.normalize(batch.condition.float(), dim=1)
    return (directions @ directions.T).clamp(0.0, 1.0)
