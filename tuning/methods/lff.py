"""LfF (Nam et al. 2020): images that a biased network fails on weigh most."""

from collections.abc import Callable

from torch import Tensor, nn

from contrasweep.losses import GeneralizedCrossEntropy, relative_difficulty
from contrasweep.models import Encoder
from contrasweep.rules import OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.biased_network import BIASED_ENCODER, LOSS_MOMENTUM, build_biased_encoder
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.relative_difficulty import RelativeDifficulty
from contrasweep.tuning.objectives.two_networks import Outputs, PairLosses, TwoNetworks

GCE = {
    "q": "how much the biased network prefers what it already knows (near 0: hardly)",
    "form": "the generalised cross-entropy: its formula, or LfF's released code",
}
"""The hyperparameters of the biased network's loss."""

COMPARED = ("averages", "losses")
"""What the weights compare: LfF's released code and its Algorithm 1."""

Difficulty = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Takes the losses `(B,)` of the biased network and of the other, and the images' rows; returns weights."""


class WeightedByFailure(nn.Module):
    """Cross-entropy weighted by relative difficulty, and the loss of the network that amplifies the bias.

    Where `difficulty` keeps moving averages of the images, they belong to the module.
    """

    def __init__(self, gce: GeneralizedCrossEntropy, difficulty: Difficulty) -> None:
        super().__init__()
        self.gce = gce
        self.difficulty = difficulty

    def forward(self, own: Outputs, biased: Outputs, batch: Batch) -> PairLosses:
        """Return both losses and the mean weight."""
        of_biased, of_own = (each_cross_entropy(one.logits, batch.labels) for one in (biased, own))
        weights = self.difficulty(of_biased, of_own, batch.index)
        mean = (weights * of_own).mean()
        return PairLosses(mean, self.gce(biased.logits, batch.labels), {"weight": weights.mean()})


def each_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy `(B,)` of every image's `logits` `(B, C)`."""
    return nn.functional.cross_entropy(logits, labels, reduction="none")


def difficulty_of_step(biased: Tensor, debiased: Tensor, index: Tensor) -> Tensor:
    """Return the weights `(B,)` from the losses of the step alone, without gradient (LfF, Algorithm 1)."""
    return relative_difficulty(biased.detach(), debiased.detach())


def loss_averages(experiment: Experiment, data: PreparedData) -> RelativeDifficulty:
    """Return weights of the training images, none of which has been seen."""
    momentum = float(experiment.hyperparameters["loss_momentum"])
    return RelativeDifficulty(data.train.labels, data.spec.classes, momentum)


def generalized_cross_entropy(experiment: Experiment) -> GeneralizedCrossEntropy:
    """Return the biased network's loss with the experiment's hyperparameters."""
    settings = experiment.hyperparameters
    return GeneralizedCrossEntropy(float(settings["q"]), str(settings["form"]))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return both networks; one step of one optimizer moves them together, as the released two do."""
    of_step = experiment.hyperparameters["compared"] == "losses"
    difficulty = difficulty_of_step if of_step else loss_averages(experiment, data)
    loss = WeightedByFailure(generalized_cross_entropy(experiment), difficulty)
    return TwoNetworks(encoder, build_biased_encoder(experiment, data), data.spec.classes, loss)


METHOD = Method(
    name="lff",
    summary="a classifier learns most from the images on which a biased classifier fails",
    paper="LfF (Nam et al. 2020)",
    equation="Algorithm 1",
    hyperparameters={
        **hyperparameters_of(GeneralizedCrossEntropy, GCE),
        "compared": Hyperparameter(
            "what weighs an image: moving averages of its losses within its class, or those of the step",
            OneOf(COMPARED),
        ),
        "loss_momentum": LOSS_MOMENTUM,
        "biased_encoder": BIASED_ENCODER,
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels"}),
    classifies=True,
    train_metrics=("biased_loss", "weight"),
)
