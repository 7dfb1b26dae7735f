"""Objectives for objects in several views of their own, with a classifier of their labels.

Shapes: V views, n labelled and u unlabelled objects, D features a view, c labels.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.data import MultiView
from contrasweep.models.encoders.multiview import MultiViewEncoder
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedTransductive


class MultiViewClassifier(Objective):
    """An encoder for each view, and a classifier that scores each label.

    Single labels are classified as one-hot rows.
    """

    encoder: MultiViewEncoder

    def __init__(self, encoder: MultiViewEncoder, data: PreparedTransductive) -> None:
        super().__init__(encoder)
        self.classes = data.spec.classes
        self.multi_label = data.spec.multi_label

    @abstractmethod
    def logits(self, views: list[Tensor]) -> Tensor:
        """Return the score of each label `(N, c)` for objects of these `views`, as the encoders take them."""

    def rows_of(self, labels: Tensor, like: Tensor) -> Tensor:
        """Return `labels` as rows of 0 and 1, `(n, c)`, in the type of `like`."""
        # torch's one_hot reads the labels from some devices.
        rows = (
            labels if self.multi_label else labels[:, None] == torch.arange(self.classes, device=like.device)
        )
        return rows.to(like.dtype)

    def classification(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the binary cross-entropy of `logits` `(n, c)`, a scalar."""
        return functional.binary_cross_entropy_with_logits(logits, self.rows_of(labels, logits))

    @torch.no_grad()
    def predict(self, views: Sequence[Tensor]) -> Tensor:
        """Return the probability of each label `(N, c)` for objects of these `views`, in evaluation mode."""

        def scores() -> Tensor:
            logits = self.logits([pixels(view) for view in views])
            return logits.sigmoid() if self.multi_label else logits.softmax(dim=1)

        return self._evaluated(scores)


class InputMap(nn.Linear):
    """A learned linear map of an object's flattened input, which stands in for a second view."""

    def __init__(self, shape: Sequence[int], outputs: int) -> None:
        super().__init__(math.prod(shape), outputs)

    def forward(self, view: Tensor) -> Tensor:
        """Return `(N, outputs)` for a view `(N, ...)`."""
        return super().forward(view.flatten(1))


def views_of(objects: MultiView) -> list[Tensor]:
    """Return the views of objects as the encoders take them."""
    return [pixels(view) for view in objects.views]


def pixels(view: Tensor) -> Tensor:
    """Return a view as an encoder takes it: uint8 images in 0..1, features as they are."""
    return view.float() / 255.0 if view.dtype == torch.uint8 else view
