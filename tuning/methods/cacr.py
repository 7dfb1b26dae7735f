"""CACR: far views of an image attract most, near views of other images repel most; and its baseline CMC.

CACR-MoCo has a momentum encoder: its keys attract; the images of the batch and the keys of earlier batches
repel.
"""

from collections.abc import Mapping

from torch import Tensor

from contrasweep.losses import CACR, InfoNCE
from contrasweep.losses.terms import LossTerms
from contrasweep.losses.validation import rule_of
from contrasweep.models import Encoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.experiment import Experiment, Value
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.from_loss import loss_method
from contrasweep.tuning.methods.method import TEMPERATURE, Method, with_projection_head
from contrasweep.tuning.methods.moco_v2 import MOMENTUM
from contrasweep.tuning.objectives.batches import Feed, image_feed
from contrasweep.tuning.objectives.momentum import Contrast, MomentumObjective
from contrasweep.tuning.objectives.objective import Batch, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData

PAPER = "CACR (Zheng et al. 2021)"
POSITIVES = Hyperparameter("K, the other views of each: K + 1 views an image", Number(at_least=1, whole=True))
SWITCH = OneOf(("off", "on"))
HYPERPARAMETERS = {
    "positives": POSITIVES,
    "attraction": Hyperparameter("whether far positives weigh more than near ones", SWITCH),
    "t_pos": Hyperparameter("how much more far positives weigh", rule_of(CACR, "t_pos")),
    "repulsion": Hyperparameter("whether near negatives weigh more than far ones", SWITCH),
    "t_neg": Hyperparameter("how much more near negatives weigh", rule_of(CACR, "t_neg")),
    "negatives": Hyperparameter(
        "negatives of another view, or of the query's own", rule_of(CACR, "negatives")
    ),
    "cost": Hyperparameter(
        "what a negative costs: its distance, or an rbf kernel of it", rule_of(CACR, "cost")
    ),
    "precision": Hyperparameter("the scale t of the rbf cost", rule_of(CACR, "precision")),
    "detach_positive_weights": Hyperparameter("positives' weights without gradient", SWITCH),
}


def loss_of(hyperparameters: Mapping[str, Value]) -> CACR:
    """Return the loss with those of the `hyperparameters` that are its own.

    What is not there has no effect: `t_neg` without repulsion, say.
    """
    given = {name: value for name, value in hyperparameters.items() if name in HYPERPARAMETERS}
    given.pop("positives")
    switched = {name: value == "on" if value in SWITCH.choices else value for name, value in given.items()}
    return CACR(**switched)  # type: ignore[arg-type]


def feed(experiment: Experiment, data: PreparedData) -> Feed:
    """Return uniform batches with K + 1 views of each image."""
    return image_feed(experiment, data, views=int(experiment.hyperparameters["positives"]) + 1)


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return CACR on the projection head's output, with H(X-|X) of every batch (nats) as a metric."""
    loss = loss_of(experiment.hyperparameters)

    def measure(views: Tensor, batch: Batch) -> Metrics:
        return {"repulsion_entropy": loss.repulsion_entropy(views)}

    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views), measure)


def build_with_momentum(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return CACR of all views' queries against all views' keys; the last view's keys join the queue."""
    loss = loss_of(experiment.hyperparameters)

    def terms(contrast: Contrast) -> tuple[LossTerms, Metrics]:
        entropy = loss.repulsion_entropy(contrast.queries.detach(), contrast.queue)
        found = loss.terms(contrast.queries, contrast.queue, contrast.keys)
        return found, {"repulsion_entropy": entropy}

    return MomentumObjective(experiment, encoder, terms, enqueued=slice(-1, None))


CACR_IN_BATCH = Method(
    name="cacr",
    summary="far positives attract more, near negatives repel more",
    paper=PAPER,
    equation="Eq. 5-8; rbf cost Eq. 14; variants Table 8",
    hyperparameters=HYPERPARAMETERS,
    build=build,
    feed=feed,
    train_metrics=("repulsion_entropy",),
)
CACR_MOCO = Method(
    name="cacr-moco",
    summary="CACR against a momentum encoder's keys and a queue of older ones",
    paper=PAPER,
    equation="Algorithm 3",
    hyperparameters={**HYPERPARAMETERS, **MOMENTUM},
    build=build_with_momentum,
    feed=feed,
    train_metrics=("repulsion_entropy",),
)
CMC = loss_method(
    InfoNCE,
    name="cmc",
    summary="all pairs of several views of an image attract, all other images repel",
    paper="Tian et al. 2020; a baseline of CACR",
    equation="L_F, the full graph",
    hyperparameters={"positives": POSITIVES, "temperature": TEMPERATURE},
    feed=feed,
)
