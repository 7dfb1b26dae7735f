"""PCL: MoCo's loss, and the prototype of an image's cluster attracts it, in several clusterings at once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from contrasweep.data import named_seed
from contrasweep.losses import PrototypeNCE, QueueInfoNCE, cluster_concentrations, cluster_prototypes
from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.rules import Number
from contrasweep.tuning.errors import told_to_user
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.methods.clustering import METRICS, STARTS, information_about, kmeans_of_epoch
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.methods.moco_v2 import MOMENTUM
from contrasweep.tuning.objectives.momentum import Contrast, MomentumObjective
from contrasweep.tuning.objectives.objective import Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.ranks import ONE, Ranks


@dataclass(frozen=True)
class Clustering:
    """A clustering of the N training images: `clusters` (N,), `prototypes` (K, D), `concentrations` (K,)."""

    clusters: Tensor
    prototypes: Tensor
    concentrations: Tensor


class ProtoNCE:
    """InfoNCE against the queue, plus the mean over the `clusterings` of the prototypes' cross-entropy.

    It is an object of its own: a method of the objective in its place would tie the objective to itself, and
    its memory would stay until Python looks for such cycles.
    """

    def __init__(self, temperature: float) -> None:
        self.temperature = temperature
        self.instances = QueueInfoNCE(temperature)
        self.prototypes = PrototypeNCE()
        self.clusterings: list[Clustering] = []

    def __call__(self, contrast: Contrast) -> tuple[LossTerms, Metrics]:
        """Return the terms of the queries, and the prototypes' part as a metric."""
        queries = contrast.queries[0]
        values, valid = self.instances.terms(queries, contrast.keys[0], contrast.queue)
        pulled = torch.zeros_like(values)
        for one in self.clusterings:
            clusters = one.clusters[contrast.batch.index]
            terms = self.prototypes.terms(queries, one.prototypes, one.concentrations, clusters)
            pulled = pulled + terms.values / len(self.clusterings)
        return LossTerms(values + pulled, valid), {"prototype_loss": pulled.detach().mean()}


class PrototypicalContrast(MomentumObjective):
    """ProtoNCE: InfoNCE against the queue, plus the mean over clusterings of the prototypes' cross-entropy.

    The momentum encoder's embeddings of the whole training images are clustered before every epoch, with the
    smallest number of clusters and its doubles, but not in the first `instance_epochs`, which are InfoNCE
    alone. Clusterings are no part of the state: an epoch begins by making them from it.
    """

    def __init__(self, experiment: Experiment, encoder: Encoder, labels: Tensor, ranks: Ranks = ONE) -> None:
        settings = experiment.hyperparameters
        terms = ProtoNCE(float(settings["temperature"]))
        super().__init__(experiment, encoder, terms, queried=slice(0, 1), keyed=slice(1, 2))
        self.labels, self.ranks = labels, ranks
        self.terms = terms
        self.cluster_counts = cluster_counts(experiment.hyperparameters)
        self.instance_epochs = int(settings["instance_epochs"])
        self.experiment = experiment

    @property
    def clusterings(self) -> list[Clustering]:
        """The clusterings of the present epoch, the coarsest first; none in the epochs of InfoNCE alone."""
        return self.terms.clusterings

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Cluster the training images anew; return what the coarsest clusters tell of the labels (bits).

        Raises:
            TrainingDiverged: the embeddings are not finite, or fewer of them differ than there are clusters.
        """
        coarsest = torch.zeros_like(self.labels)
        if epoch > self.instance_epochs:
            embeddings = F.normalize(embed(), dim=1)
            self.terms.clusterings = [
                self._cluster(embeddings, count, epoch) for count in self.cluster_counts
            ]
            coarsest = self.clusterings[0].clusters
        return information_about(coarsest, self.labels)

    def _cluster(self, embeddings: Tensor, count: int, epoch: int) -> Clustering:
        seed = named_seed(self.experiment.seed, "prototypes", epoch, count)
        numbers = kmeans_of_epoch(self.experiment, epoch, embeddings, count, seed, self.ranks)
        clusters = torch.unique(numbers, return_inverse=True)[1].to(embeddings.device)
        prototypes = cluster_prototypes(embeddings, clusters)
        concentrations = cluster_concentrations(embeddings, clusters, prototypes, self.terms.temperature)
        return Clustering(clusters, prototypes, concentrations)


def cluster_counts(hyperparameters: Mapping[str, Value]) -> list[int]:
    """Return how many clusters each clustering has, the smallest number first, each twice the one before."""
    levels = range(int(hyperparameters["clusterings"]))
    return [int(hyperparameters["clusters"]) * 2**level for level in levels]


def fits(hyperparameters: Mapping[str, Value], images: int) -> None:
    """Raise ValueError if the finest clustering has more clusters than there are training images."""
    largest = cluster_counts(hyperparameters)[-1]
    if largest > images:
        raise ValueError(
            f"the finest of the clusterings has {largest:,} clusters, more than the {images:,} training "
            "images; lower clusters or clusterings"
        )


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return ProtoNCE of the first view's queries.

    Raises:
        InputError: there are fewer training images than clusters.
    """
    with told_to_user(f"pcl on {experiment.dataset}: "):
        fits(experiment.hyperparameters, len(data.train))
    return PrototypicalContrast(experiment, encoder, data.train.labels, data.ranks)


METHOD = Method(
    name="pcl",
    summary="MoCo's loss, and the prototype of an image's cluster attracts it",
    paper="PCL (Li et al. 2021)",
    equation="Eq. 11, 12",
    hyperparameters={
        **hyperparameters_of(QueueInfoNCE, {"temperature": TEMPERATURE}),
        "clusters": Hyperparameter(
            "k-means clusters of the coarsest clustering", Number(at_least=2, whole=True)
        ),
        "clusterings": Hyperparameter(
            "how many, each with twice the clusters before", Number(at_least=1, whole=True)
        ),
        **STARTS,
        "instance_epochs": Hyperparameter("first epochs without prototypes", Number(at_least=0, whole=True)),
        **MOMENTUM,
    },
    build=build,
    fits=fits,
    train_metrics=("prototype_loss", *METRICS),
)
