"""DFA (Lee et al. 2021): features for the class and for the bias, which are swapped between images.

Shapes: B images in the batch, over all ranks, D and E features of the two encoders, C classes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from contrasweep.losses import GeneralizedCrossEntropy
from contrasweep.models import Encoder
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.biased_network import BIASED_ENCODER, LOSS_MOMENTUM, build_biased_encoder
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.lff import (
    GCE,
    each_cross_entropy,
    generalized_cross_entropy,
    loss_averages,
)
from contrasweep.tuning.methods.method import Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.draws import StepDraws
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective, channels_last
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.two_networks import PairLosses, first_epochs, reported


@dataclass(frozen=True)
class Weights:
    """DFA's weights: `dis` is lambda_dis of Eq. 2, `swap_b` lambda_swap_b of Eq. 3, `swap` that of Eq. 4."""

    dis: float
    swap_b: float
    swap: float


class Disentangled(Objective):
    """Two encoders, and two classifiers that read the features of both.

    A classifier's gradient reaches its own encoder alone. After the first `undisturbed` epochs, both also see
    the features of the class beside the bias features of another image of the batch.
    """

    def __init__(
        self, experiment: Experiment, encoder: Encoder, data: PreparedData, undisturbed: int, weights: Weights
    ) -> None:
        super().__init__(encoder)
        biased, classes = build_biased_encoder(experiment, data), data.spec.classes
        width = encoder.width + biased.width
        self.biased_encoder = biased.to(memory_format=torch.channels_last)
        self.classifier, self.biased_classifier = nn.Linear(width, classes), nn.Linear(width, classes)
        self.gce = generalized_cross_entropy(experiment)
        self.difficulty = loss_averages(experiment, data)
        self.undisturbed = undisturbed
        self.weights = weights
        self.draws = StepDraws("feature swaps", experiment.seed)

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Begin to draw the epoch's swaps."""
        self.draws.begin(epoch)
        return {}

    def after_step(self) -> None:
        """Go on to the next step's swap."""
        self.draws.advance()

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss of the class's network (Eq. 4), with the gradient of both losses, and metrics."""
        images, whole = channels_last(batch.views[0]), batch.gathered(gather)
        own, biased = gather(self.encoder(images), 0), gather(self.biased_encoder(images), 0)
        return reported(self._losses(own, biased, whole.labels, whole.index))

    def _losses(self, own: Tensor, biased: Tensor, labels: Tensor, index: Tensor) -> PairLosses:
        """Return both losses for features `(B, D)` and `(B, E)`."""
        logits, biased_logits = self._logits(own, biased)
        each = each_cross_entropy(logits, labels)
        weight = self.difficulty(each_cross_entropy(biased_logits, labels), each, index)
        loss = (weight * each).mean()
        biased_loss = self.weights.dis * self.gce(biased_logits, labels)
        if self.draws.epoch > self.undisturbed:
            order = self.draws.order(own)
            logits, biased_logits = self._logits(own, biased[order])
            loss = loss + self.weights.swap * (weight * each_cross_entropy(logits, labels)).mean()
            swapped = self.weights.swap_b * self.gce(biased_logits, labels[order])
            biased_loss = biased_loss + self.weights.swap * swapped
        return PairLosses(loss, biased_loss, {"weight": weight.mean()})

    def _logits(self, own: Tensor, biased: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits `(B, C)` of both classifiers, of features `(B, D)` and `(B, E)`."""
        return (
            self.classifier(torch.cat([own, biased.detach()], dim=1)),
            self.biased_classifier(torch.cat([own.detach(), biased], dim=1)),
        )

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Return the class's scores `(N, C)` of `images` `(N, C', S, S)` in evaluation mode."""
        given = channels_last(images)
        return self._evaluated(lambda: self._logits(self.encoder(given), self.biased_encoder(given))[0])


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return both networks; one step of one optimizer moves them together, as the released two do."""
    settings = experiment.hyperparameters
    weights = Weights(*(float(settings[name]) for name in ("lambda_dis", "lambda_swap_b", "lambda_swap")))
    undisturbed = first_epochs(float(settings["swap_from"]), experiment.epochs)
    return Disentangled(experiment, encoder, data, undisturbed, weights)


METHOD = Method(
    name="dfa",
    summary="separate features of class and bias; classes are also learned with swapped bias features",
    paper="DFA (Lee et al. 2021)",
    equation="Eq. 1-4",
    hyperparameters={
        **hyperparameters_of(GeneralizedCrossEntropy, GCE),
        "loss_momentum": LOSS_MOMENTUM,
        "biased_encoder": BIASED_ENCODER,
        "lambda_dis": Hyperparameter("the weight of the biased classifier's loss", Number(at_least=0)),
        "lambda_swap": Hyperparameter("the weight of the losses of swapped features", Number(at_least=0)),
        "lambda_swap_b": Hyperparameter(
            "the weight, among these, of the biased classifier's loss", Number(at_least=0)
        ),
        "swap_from": Hyperparameter(
            "the share of the run's epochs after which features are swapped", Number(at_least=0, below=1)
        ),
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels"}),
    classifies=True,
    train_metrics=("biased_loss", "weight"),
)
