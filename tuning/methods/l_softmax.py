"""L-Softmax: cross-entropy in which the own class needs a smaller angle, by a margin that grows."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from contrasweep.losses import LargeMarginSoftmax
from contrasweep.models import Encoder
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.objective import (
    Batch,
    Gather,
    Metrics,
    Objective,
    channels_last,
    of_every_image,
)
from contrasweep.tuning.objectives.prepared import PreparedData

DECAY, POWER = 0.75, 35
"""The released decay of lambda, `(1 + 2.5e-5 step)^-35`, at 30,000 steps in a run."""


class LargeMarginClassifier(Objective):
    """A linear classifier without biases, and the large-margin softmax of it and the encoder's features.

    In epoch e of E, the plain logit weighs `lambda = max(lambda_min, lambda_start (1 + 0.75 (e-1)/E)^-35)`
    against 1 for the logit with the margin.
    """

    def __init__(
        self,
        encoder: Encoder,
        classes: int,
        loss: LargeMarginSoftmax,
        epochs: int,
        start: float,
        least: float,
    ) -> None:
        super().__init__(encoder)
        self.classifier = nn.Linear(encoder.width, classes, bias=False)
        self.loss = loss
        self.epochs, self.start, self.least = epochs, start, least
        self.lam = start

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Set lambda for the epoch and report it."""
        self.lam = max(self.least, self.start * (1 + DECAY * (epoch - 1) / self.epochs) ** -POWER)
        return {"lambda": self.lam}

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss of all views of the whole batch."""
        features = gather(self._encode(batch.views), 1)
        labels = batch.gathered(gather).labels.repeat(len(features))
        loss = self.loss(features.flatten(0, 1), self.classifier.weight, labels, lam=self.lam)
        return of_every_image(loss, {})

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Return the plain logits `(N, C)` of `images` `(N, C', S, S)` in evaluation mode."""
        return self._evaluated(lambda: self.classifier(self.encoder(channels_last(images))))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return the classifier with the margin of the settings."""
    settings = experiment.hyperparameters
    return LargeMarginClassifier(
        encoder,
        data.spec.classes,
        LargeMarginSoftmax(int(settings["margin"])),
        experiment.epochs,
        float(settings["lambda_start"]),
        float(settings["lambda_min"]),
    )


METHOD = Method(
    name="l-softmax",
    summary="a linear classifier with a margin: an integer multiple of the angle to the class",
    paper="L-Softmax (Liu et al. 2016)",
    equation="Eq. 4-6",
    hyperparameters={
        **hyperparameters_of(LargeMarginSoftmax, {"margin": "m, the multiple of the angle"}),
        "lambda_start": Hyperparameter("the weight of the plain logit at first", Number(at_least=0)),
        "lambda_min": Hyperparameter("the smallest weight of the plain logit", Number(at_least=0)),
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels"}),
    classifies=True,
    train_metrics=("lambda",),
)
