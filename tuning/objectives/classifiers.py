"""Objectives with a linear classifier of their own, which learns with the encoder or beside it.

Shapes: V views, B images in the batch, D features, C classes.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.models import Encoder
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective, channels_last

MetricLoss = Callable[[Tensor, Batch], tuple[Tensor, Metrics]]
"""Takes the gathered features `(V, B, D)` and the gathered batch; returns a scalar and its metrics."""

ClassifierLoss = Callable[[Tensor, Tensor, Batch], tuple[Tensor, Metrics]]
"""Takes the gathered features `(V, B, D)`, logits `(V, B, C)` and batch.

It returns a scalar, in which every image counts, and its metrics.
"""


class ClassifierBeside(Objective):
    """A loss of the encoder's features, and a linear classifier that learns beside it without changing it.

    The classifier takes the L2-normalised features, detached. Its cross-entropy is the metric
    `classifier_loss`.
    """

    def __init__(self, encoder: Encoder, classes: int, loss: MetricLoss) -> None:
        super().__init__(encoder)
        self.classifier = nn.Linear(encoder.width, classes)
        self.loss = loss

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss plus the classifier's; no parameter gets a gradient of both."""
        features, whole = self._encode(batch.views), batch.gathered(gather)
        loss, metrics = self.loss(gather(features, 1), whole)
        logits = self.classifier(functional.normalize(features.detach(), dim=2))
        own = repeated_cross_entropy(gather(logits, 1), whole.labels)
        # The reported value, which divergence is read from, is the method's loss alone.
        return loss + (own - own.detach()), {**metrics, "classifier_loss": own.detach()}

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Return the classifier's scores `(N, C)` of `images` `(N, C', S, S)` in evaluation mode."""
        encoder = self.encoder
        return self._evaluated(
            lambda: self.classifier(functional.normalize(encoder(channels_last(images)), dim=1))
        )


class EndToEndClassifier(Objective):
    """An encoder and a linear classifier on its features; one loss of both trains them together.

    The classifier reads the features as they are, or L2-normalised if `normalised` says so. The loss is given
    them as they are.
    """

    def __init__(
        self, encoder: Encoder, classes: int, loss: ClassifierLoss, *, normalised: bool = False
    ) -> None:
        super().__init__(encoder)
        self.classifier = nn.Linear(encoder.width, classes)
        self.loss = loss
        self.normalised = normalised

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss of features and logits, and its metrics."""
        features = self._encode(batch.views)
        logits = self._logits(features)
        loss, metrics = self.loss(gather(features, 1), gather(logits, 1), batch.gathered(gather))
        nothing = torch.zeros((), device=loss.device)
        return loss, {"dropped_fraction": nothing, **{name: one.detach() for name, one in metrics.items()}}

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Return the classifier's scores `(N, C)` of `images` `(N, C', S, S)` in evaluation mode."""
        return self._evaluated(lambda: self._logits(self.encoder(channels_last(images))))

    def _logits(self, features: Tensor) -> Tensor:
        logits: Tensor = self.classifier(
            functional.normalize(features, dim=-1) if self.normalised else features
        )
        return logits


def repeated_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of `logits` `(V, B, C)` against the `labels` `(B,)` of every view."""
    return functional.cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)))
