"""The clusters of the training images, for the methods that learn from them.

N training images, K clusters.

Source: Tsai et al., "Learning weakly-supervised contrastive representations" (ICLR 2022), Sections 3.1 and 4,
Algorithms 1 and 2.
"""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from contrasweep.data import (
    UNLABELLED,
    LabelledImages,
    cluster_information,
    instance_clusters,
    kmeans_clusters,
    label_clusters,
    named_seed,
    renumbered,
    top_k_clusters,
)
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.errors import InputError, TrainingDiverged, told_to_user
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.ranks import ONE, Ranks

KMEANS, CONDITION, DISTINCT, ATTRIBUTES = "kmeans", "condition", "distinct", "attributes"
LABELS, INSTANCES = "labels", "instances"

STARTS = {
    "kmeans_starts": Hyperparameter(
        "starts of an epoch's k-means, of which the best is kept", Number(at_least=1, whole=True)
    )
}
"""The hyperparameter of every method that clusters anew in every epoch."""

HYPERPARAMETERS = {
    "clusters_from": Hyperparameter(
        "k-means of the method's own representation, anew in every epoch; k-means of the condition; one for "
        "each distinct condition, as the ancestors of a hierarchy are; the highest-entropy attributes of the "
        "condition; the labels; or every image by itself",
        OneOf((KMEANS, CONDITION, DISTINCT, ATTRIBUTES, LABELS, INSTANCES)),
        needs={CONDITION: "condition", DISTINCT: "condition", ATTRIBUTES: "condition", LABELS: "labels"},
    ),
    "clusters": Hyperparameter("K of k-means", Number(at_least=2, whole=True)),
    **STARTS,
    "top_k": Hyperparameter(
        "attributes, those of the highest entropy", Number(at_least=1, whole=True), counts_columns=True
    ),
}
"""The hyperparameters of every method with clusters of the training images."""


def fits(hyperparameters: Mapping[str, Value], images: int) -> None:
    """Raise ValueError if k-means is to find more clusters than there are training images."""
    clusters = int(hyperparameters.get("clusters", 0))
    if clusters > images:
        raise ValueError(f"clusters must be at most the {images:,} training images, given {clusters:,}")


METRICS = ("mutual_information", "conditional_entropy")
"""I(Z; T) and H(Z | T) in bits between clusters Z and labels T; they are reported and never trained on."""


def information_about(clusters: Tensor, labels: Tensor) -> dict[str, float]:
    """Return `METRICS` of the `clusters` `(N,)` of those images that have a label, by `labels` `(N,)`.

    Without any label there are none.
    """
    known = labels != UNLABELLED
    if not bool(known.any()):
        return {}
    information = cluster_information(clusters[known].cpu(), labels[known].cpu())
    return dict(zip(METRICS, information, strict=True))


def kmeans_of_epoch(
    experiment: Experiment, epoch: int, embeddings: Tensor, count: int, seed: int, ranks: Ranks = ONE
) -> Tensor:
    """Return `count` k-means clusters `(N,)` of the `embeddings` `(N, D)` that an epoch begins with.

    Of several `ranks`, the first one makes them: two kinds of hardware might not find the same.

    Raises:
        TrainingDiverged: the embeddings are not finite, or have fewer distinct rows than clusters.
    """
    # Studies that are older than the setting had one start.
    starts = int(experiment.hyperparameters.get("kmeans_starts", 1))
    try:
        # Few iterations suffice, as in PCL's code: the next epoch makes new clusters anyway.
        return ranks.once(lambda: kmeans_clusters(embeddings, count, seed, starts=starts, iterations=20))
    except ValueError as error:
        raise TrainingDiverged(f"{experiment.method}: k-means before epoch {epoch}: {error}") from error


def kmeans_of_condition(experiment: Experiment, condition: Tensor | None, ranks: Ranks = ONE) -> Tensor:
    """Return k-means clusters `(N,)` of the training images' condition; their seed is the experiment's.

    Of several `ranks`, the first one makes them.

    Raises:
        ValueError: there are fewer distinct conditions than clusters are asked for.
    """
    assert condition is not None, "checked when the experiment was resolved"
    clusters = int(experiment.hyperparameters["clusters"])
    rows, seed = condition, named_seed(experiment.seed, "clusters")
    return ranks.once(lambda: kmeans_clusters(rows, clusters, seed))


def static_clusters(experiment: Experiment, train: LabelledImages, ranks: Ranks = ONE) -> Tensor | None:
    """Return the clusters `(N,)` of the whole run, or None if every epoch makes its own.

    Raises:
        InputError: the training images have too few distinct conditions, no binary attributes, fewer of them
            than `top_k`, or no label.
    """
    settings = experiment.hyperparameters
    source = settings["clusters_from"]
    if source == KMEANS:
        return None
    if source == INSTANCES:
        return instance_clusters(len(train))
    try:
        if source == LABELS:
            return _clusters_of_labels(train.labels)
        if source == DISTINCT:
            assert train.condition is not None, "checked when the experiment was resolved"
            distinct: Tensor = torch.unique(train.condition.cpu(), dim=0, return_inverse=True)[1]
            return distinct
        if source == ATTRIBUTES:
            assert train.condition is not None, "checked when the experiment was resolved"
            return top_k_clusters(train.condition, int(settings["top_k"]))
        return kmeans_of_condition(experiment, train.condition, ranks)
    except ValueError as error:
        where = f"{experiment.method} with clusters_from={source} on {experiment.dataset}"
        raise InputError(f"{where}: {error}") from error


class ImageClusters(nn.Module):
    """The cluster of every training image: for the whole run, or by k-means before every epoch.

    Args:
        experiment: its method has the hyperparameters above.
        data: the data of the experiment.
        keep_numbers: whether k-means clusters are numbered so that as many images as possible keep the number
            they had in the epoch before. The clusters are then part of the state: a resumed run needs those
            of the epoch before.

    Attributes:
        count: K.

    Raises:
        InputError: see `static_clusters`; or there are fewer training images than clusters.
    """

    assigned: Tensor

    def __init__(self, experiment: Experiment, data: PreparedData, *, keep_numbers: bool = False) -> None:
        super().__init__()
        images = len(data.train)
        static = static_clusters(experiment, data.train, data.ranks)
        self.refreshed = static is None
        if static is None:
            static = torch.zeros(images, dtype=torch.int64)
            with told_to_user(f"{experiment.method} on {experiment.dataset}: "):
                fits(experiment.hyperparameters, images)
            self.count = int(experiment.hyperparameters["clusters"])
        else:
            self.count = int(static.max()) + 1
        self.keep_numbers = keep_numbers and self.refreshed
        self.register_buffer("assigned", static, persistent=self.keep_numbers)
        self._labels = data.train.labels.cpu()
        self._experiment, self._ranks = experiment, data.ranks

    def of(self, index: Tensor) -> Tensor:
        """Return the clusters `(B,)` of the training images at the rows `index` `(B,)`."""
        return self.assigned[index]

    def start_epoch(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Make the clusters of the epoch (from 1) from `embed()` `(N, D)`, and return `METRICS` of them.

        Raises:
            TrainingDiverged: the representation is not finite, or has fewer distinct rows than clusters.
        """
        if self.refreshed:
            self.assigned.copy_(self._from_kmeans(epoch, embed()))
        return information_about(self.assigned.cpu(), self._labels)

    def _from_kmeans(self, epoch: int, embeddings: Tensor) -> Tensor:
        seed = named_seed(self._experiment.seed, "k-means", epoch)
        found = kmeans_of_epoch(self._experiment, epoch, embeddings, self.count, seed, self._ranks)
        if self.keep_numbers and epoch > 1:
            found = renumbered(found, self.assigned.cpu(), self.count)
        return found


def _clusters_of_labels(labels: Tensor) -> Tensor:
    without = int((labels == UNLABELLED).sum())
    if without:
        raise ValueError(f"{without:,} of {len(labels):,} training images have no label")
    return label_clusters(labels)
