"""Scores of an encoder by k-means: held-out images are clustered, the clusters matched with the classes."""

import torch
from torch import Tensor
from torch.nn import functional

from contrasweep.data import LabelledImages, clustering_accuracy, clustering_nmi, kmeans_clusters, named_seed
from contrasweep.models import NonFiniteFeatures
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.metrics import CLUSTERING
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.training.embedding import embed_whole


def clustering_scores(
    objective: Objective, data: PreparedData, held_out: LabelledImages, experiment: Experiment
) -> dict[str, float]:
    """Return ACC and NMI of k-means clusters of the held-out images; nothing where none are asked for.

    The directions of `embed_images` are clustered, into as many clusters as there are classes.

    Raises:
        NonFiniteFeatures: they hold NaN or Inf.
    """
    settings, spec = experiment.probes, data.spec
    if not settings.kmeans_starts:
        return {}
    embeddings = embed_whole(
        objective.embed_images, held_out.images, spec.view_size, settings.centre, data.ranks
    )
    return data.ranks.once(
        lambda: matched_clusters(embeddings, held_out.labels, spec.classes, settings.kmeans_starts)
    )


def matched_clusters(embeddings: Tensor, labels: Tensor, classes: int, starts: int) -> dict[str, float]:
    """Return ACC and NMI of k-means clusters of the directions of `embeddings` `(N, D)`, one a class.

    Raises:
        NonFiniteFeatures: they hold NaN or Inf.
    """
    found = _clusters(embeddings, classes, starts)
    accuracy, nmi = (score(found, labels) for score in (clustering_accuracy, clustering_nmi))
    return dict(zip(CLUSTERING, (accuracy, nmi), strict=True))


def _clusters(embeddings: Tensor, count: int, starts: int) -> Tensor:
    """Return the clusters `(N,)` of `embeddings` `(N, D)`: `count` of them, or one for each that differs."""
    if not bool(embeddings.isfinite().all()):
        raise NonFiniteFeatures("the embeddings to be clustered hold NaN or Inf")
    directions = functional.normalize(embeddings, dim=1)
    distinct: tuple[Tensor, Tensor] = torch.unique(directions, dim=0, return_inverse=True)
    if len(distinct[0]) <= count:
        return distinct[1]
    # The seed is the same for all encoders: they are compared with the same starts.
    return kmeans_clusters(directions, count, named_seed(0, "clustering scores"), starts=starts)
