"""Objectives with a second network, which learns the bias so that the first network does not.

Both networks are an encoder and a linear classifier, and both see the same view of an image. A run scores the
encoder of the first network: probes use its features, and its classifier predicts.

Shapes: B images in the batch, over all ranks, D features, C classes.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from contrasweep.models import Encoder
from contrasweep.tuning.objectives.objective import (
    Batch,
    Gather,
    Metrics,
    Objective,
    channels_last,
    learning_beside,
    of_every_image,
)


class Outputs(NamedTuple):
    """What a network gives for a batch, gathered over ranks: `features` `(B, D)` and `logits` `(B, C)`."""

    features: Tensor
    logits: Tensor


class PairLosses(NamedTuple):
    """The loss of the network, that of the biased network, and metrics; the losses are scalars."""

    own: Tensor
    biased: Tensor
    metrics: Metrics


PairLoss = Callable[[Outputs, Outputs, Batch], PairLosses]
"""Takes the outputs of the network and of the biased network, and the gathered batch.

A parameter of either network gets the gradient of both losses; what should not is detached inside. A loss
that is a module learns with the networks, and checkpoints keep it.
"""


class TwoNetworks(Objective):
    """A classifier that should not learn the bias, and beside it one that should.

    The reported loss is the first network's; the second one's is the metric `biased_loss`.
    """

    def __init__(self, encoder: Encoder, biased_encoder: Encoder, classes: int, loss: PairLoss) -> None:
        super().__init__(encoder)
        self.classifier = nn.Linear(encoder.width, classes)
        self.biased_encoder = biased_encoder.to(memory_format=torch.channels_last)
        self.biased_classifier = nn.Linear(biased_encoder.width, classes)
        self.loss = loss

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the network's loss, with the gradient of both losses, and the metrics."""
        own = _outputs(self.encoder, self.classifier, batch, gather)
        biased = self.biased_outputs(batch, gather)
        return reported(self.loss(own, biased, batch.gathered(gather)))

    def biased_outputs(self, batch: Batch, gather: Gather) -> Outputs:
        """Return what the biased network gives for the batch."""
        return _outputs(self.biased_encoder, self.biased_classifier, batch, gather)

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Return the classifier's scores `(N, C)` of `images` `(N, C', S, S)` in evaluation mode."""
        return self._evaluated(lambda: self.classifier(self.encoder(channels_last(images))))


def reported(losses: PairLosses) -> tuple[Tensor, Metrics]:
    """Return the first network's loss with the gradient of both, and metrics with `biased_loss`."""
    loss = learning_beside(losses.own, losses.biased)
    return of_every_image(loss, {"biased_loss": losses.biased, **losses.metrics})


def first_epochs(share: float, epochs: int) -> int:
    """Return how many epochs a share of a run of `epochs` is, rounded up; the last epoch is never in it."""
    # Rounding keeps 0.07 * 100, which is a little above 7, at 7.
    return min(epochs - 1, math.ceil(round(share * epochs, 6)))


def _outputs(encoder: Encoder, classifier: nn.Module, batch: Batch, gather: Gather) -> Outputs:
    features = encoder(channels_last(batch.views[0]))
    return Outputs(gather(features, 0), gather(classifier(features), 0))
