"""Objectives with a linear classifier of their own, which learns with the encoder or beside it.

Shapes: V views, B images in the batch, D features, C classes.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.models import Encoder
from contrasweep.tuning.objectives.objective import (
    Batch,
    Gather,
    Metrics,
    Objective,
    channels_last,
    learning_beside,
    of_every_image,
    of_views,
)

FeatureLoss = Callable[[Tensor, Tensor, Batch], tuple[Tensor, Metrics]]
"""Takes the gathered features `(V, B, D)`, embeddings `(V, B, E)` and batch; returns a scalar and metrics.

Without a projection head, the embeddings are the features.
"""

ClassifierLoss = Callable[[Tensor, Tensor, Batch], tuple[Tensor, Metrics]]
"""Takes the gathered features `(V, B, D)`, logits `(V, B, C)` and batch.

It returns a scalar, in which every image counts, and its metrics.
"""


class ClassifierBeside(Objective):
    """A loss of the encoder's features, and a linear classifier that learns beside it without changing it.

    The classifier takes the features, detached, L2-normalised if `normalised` says so. Its cross-entropy is
    the metric `classifier_loss`. The loss may also use the embeddings of a projection `head`.
    """

    def __init__(
        self,
        encoder: Encoder,
        classes: int,
        loss: FeatureLoss,
        head: nn.Module | None = None,
        *,
        normalised: bool = True,
    ) -> None:
        super().__init__(encoder)
        self.classifier = nn.Linear(encoder.width, classes)
        self.loss = loss
        self.head = head
        self.normalised = normalised

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss plus the classifier's; no parameter gets a gradient of both."""
        features, whole = self._encode(batch.views), batch.gathered(gather)
        gathered = embeddings = gather(features, 1)
        if self.head is not None:
            embeddings = gather(of_views(self.head, features, apart=self.views_apart), 1)
        loss, metrics = self.loss(gathered, embeddings, whole)
        logits = self._logits(features.detach())
        own = repeated_cross_entropy(gather(logits, 1), whole.labels)
        return learning_beside(loss, own), {**metrics, "classifier_loss": own.detach()}

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Return the classifier's scores `(N, C)` of `images` `(N, C', S, S)` in evaluation mode."""
        return self._evaluated(lambda: self._logits(self.encoder(channels_last(images))))

    def _logits(self, features: Tensor) -> Tensor:
        return read_by(self.classifier, features, normalised=self.normalised)


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
        return of_every_image(loss, metrics)

    @torch.no_grad()
    def predict(self, images: Tensor) -> Tensor:
        """Return the classifier's scores `(N, C)` of `images` `(N, C', S, S)` in evaluation mode."""
        return self._evaluated(lambda: self._logits(self.encoder(channels_last(images))))

    def _logits(self, features: Tensor) -> Tensor:
        return read_by(self.classifier, features, normalised=self.normalised)


def read_by(classifier: nn.Module, features: Tensor, *, normalised: bool) -> Tensor:
    """Return the scores `(..., C)` that a classifier gives features `(..., D)`, or their directions."""
    logits: Tensor = classifier(functional.normalize(features, dim=-1) if normalised else features)
    return logits


def repeated_cross_entropy(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy of `logits` `(V, B, C)` against the `labels` `(B,)` of every view."""
    return functional.cross_entropy(logits.flatten(0, 1), labels.repeat(len(logits)))


def plain_loss(features: Tensor, logits: Tensor, batch: Batch) -> tuple[Tensor, Metrics]:
    """Return the cross-entropy of every view alone, as a `ClassifierLoss`."""
    return repeated_cross_entropy(logits, batch.labels), {}
