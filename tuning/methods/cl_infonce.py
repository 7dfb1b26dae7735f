"""Cl-InfoNCE: images of one cluster attract, all others repel; a baseline classifies the clusters."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.data import PairedBatches
from contrasweep.losses import ClInfoNCE, InfoNCE
from contrasweep.losses.clinfonce import PAIRINGS
from contrasweep.losses.terms import LossTerms
from contrasweep.losses.validation import rule_of
from contrasweep.models import Encoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import clustering
from contrasweep.tuning.methods.clustering import ImageClusters, static_clusters
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import Feed, ImageFeed, batches_seed, image_feed, single_view
from contrasweep.tuning.objectives.classifiers import EndToEndClassifier, repeated_cross_entropy
from contrasweep.tuning.objectives.heads import experiment_head
from contrasweep.tuning.objectives.objective import (
    Batch,
    ContrastiveObjective,
    Metrics,
    Objective,
    SecondHead,
    channels_last,
)
from contrasweep.tuning.objectives.prepared import PreparedData

IN_BATCH, SAMPLED = PAIRINGS
FEATURES, EMBEDDING = "features", "embedding"


class ClusterContrast(ContrastiveObjective):
    """Cl-InfoNCE of the head's embeddings, with the clusters that the images have in the epoch.

    k-means groups the encoder's features (as the paper's Algorithm 1 has it) or, where `embedding` is true,
    the head's output on the unit sphere (as the released code does). `pairs` makes the batches of an epoch
    from its clusters, where these decide who is whose partner and are made anew in every epoch.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        loss: ClInfoNCE,
        clusters: ImageClusters,
        *,
        embedding: bool,
        pairs: Callable[[Tensor], PairedBatches] | None = None,
        second: SecondHead | None = None,
    ) -> None:
        def terms(views: Tensor, batch: Batch) -> LossTerms:
            return loss.terms(views, clusters.of(batch.index))

        super().__init__(encoder, head, terms, second=second)
        self.clusters = clusters
        self.embedding = embedding
        self.pairs = pairs

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Make the clusters of the epoch, and return their information about the labels."""
        return self.clusters.start_epoch(epoch, embed)

    def regroup(self, feed: ImageFeed) -> ImageFeed:
        """Return the feed with partners from the clusters of the epoch, if they decide the partners."""
        return feed if self.pairs is None else replace(feed, sampler=self.pairs(self.clusters.assigned))

    @torch.no_grad()
    def embed_images(self, images: Tensor) -> Tensor:
        """Return the representation of `images` `(N, C, S, S)` that k-means clusters, `(N, D)`."""
        if not self.embedding:
            return self.features(images)

        def embed() -> Tensor:
            return functional.normalize(self.head(self.encoder(channels_last(images))), dim=1)

        return self._evaluated(embed)


class ClusterClassifier(EndToEndClassifier):
    """Cross-entropy of a linear classifier on the encoder's features, with clusters for classes.

    k-means numbers its clusters arbitrarily. DeepCluster therefore draws a new classifier in every epoch
    (Caron et al. 2018, Section 3.2), but a classifier cannot recover within an epoch of a few steps. Here the
    clusters are renumbered to agree with the epoch before, and the classifier and its momentum stay.
    """

    def __init__(self, encoder: Encoder, clusters: ImageClusters) -> None:
        def loss(_: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
            return repeated_cross_entropy(logits, clusters.of(batch.index)), {}

        super().__init__(encoder, clusters.count, loss)
        self.clusters = clusters

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Make the clusters of the epoch, and return their information about the labels."""
        return self.clusters.start_epoch(epoch, embed)


def feed(experiment: Experiment, data: PreparedData) -> Feed:
    """Return two views of each image, or one of the image and one of a partner from its cluster.

    Where the clusters are made anew in every epoch, the objective puts the partners in: see `regroup`.
    """
    if _pairing(experiment) == IN_BATCH:
        return image_feed(experiment, data)
    clusters = static_clusters(experiment, data.train, data.ranks)
    return image_feed(experiment, data, sampler=None if clusters is None else pairs_of(experiment, clusters))


def pairs_of(experiment: Experiment, clusters: Tensor) -> PairedBatches:
    """Return the batches of images with partners from `clusters` `(N,)`."""
    return PairedBatches(clusters, experiment.batch_size, batches_seed(experiment))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return Cl-InfoNCE on the projection head's output."""
    return _cluster_contrast(experiment, encoder, data, experiment_head(experiment, encoder))


def _with_instances(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return Cl-InfoNCE, and NT-Xent of the same temperature on the output of a second head."""
    settings = experiment.hyperparameters
    instances = InfoNCE(float(settings["temperature"]), "all")
    head = experiment_head(experiment, encoder)
    second = SecondHead(
        experiment_head(experiment, encoder),
        lambda embeddings, batch: instances.terms(embeddings),
        float(settings["weight"]),
    )
    return _cluster_contrast(experiment, encoder, data, head, second)


def _cluster_contrast(
    experiment: Experiment,
    encoder: Encoder,
    data: PreparedData,
    head: nn.Module,
    second: SecondHead | None = None,
) -> Objective:
    settings, clusters = experiment.hyperparameters, ImageClusters(experiment, data)
    sampled = _pairing(experiment) == SAMPLED
    return ClusterContrast(
        encoder,
        head,
        ClInfoNCE(float(settings["temperature"]), _pairing(experiment)),
        clusters,
        embedding=settings.get("representation") == EMBEDDING,
        pairs=partial(pairs_of, experiment) if sampled and clusters.refreshed else None,
        second=second,
    )


def _pairing(experiment: Experiment) -> str:
    return str(experiment.hyperparameters.get("pairing", IN_BATCH))


def _cluster_ce(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return the classification of clusters; there is no projection head."""
    return ClusterClassifier(encoder, ImageClusters(experiment, data, keep_numbers=True))


HYPERPARAMETERS = {
    **hyperparameters_of(ClInfoNCE, {"temperature": TEMPERATURE}),
    **clustering.HYPERPARAMETERS,
    "representation": Hyperparameter(
        "what k-means groups: the encoder's features, or the head's embedding",
        OneOf((FEATURES, EMBEDDING)),
    ),
    "pairing": Hyperparameter(
        "all of a cluster in the batch attract (released code), or one partner drawn from it (Eq. 1)",
        rule_of(ClInfoNCE, "pairing"),
    ),
}

CL_INFONCE = Method(
    name="cl-infonce",
    summary="images of one cluster attract, all others repel",
    paper="Cl-InfoNCE (Tsai et al. 2022)",
    equation="Eq. 1; Algorithms 1, 2",
    hyperparameters=HYPERPARAMETERS,
    build=build,
    feed=feed,
    fits=clustering.fits,
    train_metrics=clustering.METRICS,
)
CL_INFONCE_INSTANCES = Method(
    name="cl-infonce-instances",
    summary="Cl-InfoNCE, and InfoNCE on a second head",
    paper="Cl-InfoNCE (Tsai et al. 2022)",
    equation="Appendix A.1",
    hyperparameters={
        # Without `pairing`: with a partner as the second view, the second head would not see an image twice.
        **{name: one for name, one in HYPERPARAMETERS.items() if name != "pairing"},
        "weight": Hyperparameter("the weight of the second head's loss", Number(at_least=0)),
    },
    build=_with_instances,
    feed=feed,
    fits=clustering.fits,
    train_metrics=(*clustering.METRICS, "second_loss"),
)
CLUSTER_CE = Method(
    name="cluster-ce",
    summary="a linear classifier learns clusters together with the encoder",
    paper="Cl-InfoNCE (Tsai et al. 2022), a baseline; with k-means, after DeepCluster (Caron et al. 2018)",
    equation="cross-entropy of Table 2",
    hyperparameters=clustering.HYPERPARAMETERS,
    build=_cluster_ce,
    feed=single_view,
    fits=clustering.fits,
    train_metrics=clustering.METRICS,
)
