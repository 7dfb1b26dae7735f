"""The clusters of Cl-InfoNCE as classes: a linear classifier learns them together with the encoder."""

from collections.abc import Callable

from torch import Tensor

from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import clustering
from contrasweep.tuning.methods.clustering import ImageClusters
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.classifiers import (
    EndToEndClassifier,
    repeated_cross_entropy,
    without_drops,
)
from contrasweep.tuning.objectives.objective import Batch, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


class ClusterClassifier(EndToEndClassifier):
    """Cross-entropy of a linear classifier on the encoder's features, with clusters for classes.

    k-means numbers its clusters arbitrarily. DeepCluster therefore draws a new classifier in every epoch
    (Caron et al. 2018, Section 3.2), but a classifier cannot recover within an epoch of a few steps. Here the
    clusters are renumbered to agree with the epoch before, and the classifier and its momentum stay.
    """

    def __init__(self, encoder: Encoder, clusters: ImageClusters) -> None:
        def loss(_: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
            return without_drops(repeated_cross_entropy(logits, clusters.of(batch.index)))

        super().__init__(encoder, clusters.count, loss)
        self.clusters = clusters

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Make the clusters of the epoch, and return their information about the labels."""
        return self.clusters.start_epoch(epoch, embed)


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return the classification of clusters; there is no projection head."""
    return ClusterClassifier(encoder, ImageClusters(experiment, data, keep_numbers=True))


METHOD = Method(
    name="cluster-ce",
    summary="a linear classifier learns clusters together with the encoder",
    paper="Cl-InfoNCE (Tsai et al. 2022), a baseline; with k-means, after DeepCluster (Caron et al. 2018)",
    equation="cross-entropy of Table 2",
    hyperparameters=clustering.HYPERPARAMETERS,
    build=build,
    feed=single_view,
    train_metrics=clustering.METRICS,
)
