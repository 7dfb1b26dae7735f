"""HeroCon's objective: a classifier on the views of an object, with a contrast of views and one of labels.

Shapes: n labelled and u unlabelled objects, D features a view, c labels.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.data import MultiView
from contrasweep.losses.terms import LossTerms
from contrasweep.models.encoders.multiview import MultiViewEncoder
from contrasweep.tuning.objectives.objective import Gather, Metrics, Objective
from contrasweep.tuning.objectives.transductive import TransductiveBatch

ViewContrast = Callable[[Tensor], LossTerms]
"""Of the embeddings `(2, n + u, D)` of both views of all objects."""

Embed = Callable[[list[Tensor], list[Tensor]], Tensor]
"""Embeddings `(2, B, D)` from the features `(B, D)` of each view and the views themselves."""

LabelContrast = Callable[[Tensor, Tensor], LossTerms]
"""Of the joined features `(n, VD)` of V views and the labels of the labelled objects."""


class EmbeddedViews(nn.Module):
    """The two embeddings of objects in two views: a map of the features of each (HeroCon, Eq. 5)."""

    def __init__(self, of_features: nn.ModuleList) -> None:
        super().__init__()
        self.of_features = of_features

    def forward(self, features: list[Tensor], views: list[Tensor]) -> Tensor:
        """Return the embeddings `(2, B, D)`."""
        return torch.stack([embed(own) for embed, own in zip(self.of_features, features, strict=True)])


class EmbeddedInput(nn.Module):
    """The two embeddings of objects in one view: of its features, and of the input itself (HeroCon, Eq. 4).

    The paper contrasts an embedding with the input and leaves open how their widths come to match, its code
    has no such form: here a learned linear map takes the flattened input to the width of the features.
    """

    def __init__(self, of_features: nn.Module, of_input: nn.Module) -> None:
        super().__init__()
        self.of_features = of_features
        self.of_input = of_input

    def forward(self, features: list[Tensor], views: list[Tensor]) -> Tensor:
        """Return the embeddings `(2, B, D)`."""
        (own,), (view,) = features, views
        return torch.stack([self.of_features(own), self.of_input(view.flatten(1))])


class HeterogeneousObjective(Objective):
    """`L_c + alpha L_u + beta L_s`: binary cross-entropy on the labelled objects, and two contrasts.

    `view_contrast` is L_u with what makes the two embeddings of an object, `label_contrast` L_s;
    either may be left out. Single labels are classified as one-hot rows, by the largest score.
    """

    encoder: MultiViewEncoder

    def __init__(
        self,
        encoder: MultiViewEncoder,
        classes: int,
        *,
        multi_label: bool,
        view_contrast: tuple[float, ViewContrast, nn.Module] | None,
        label_contrast: tuple[float, LabelContrast] | None,
    ) -> None:
        super().__init__(encoder)
        self.classifier = nn.Linear(encoder.width, classes)
        self.multi_label = multi_label
        self.classes = classes
        self.alpha = 0.0 if view_contrast is None else view_contrast[0]
        self.view_contrast = None if view_contrast is None else view_contrast[1]
        self.embed: Embed | None = None if view_contrast is None else view_contrast[2]
        self.beta = 0.0 if label_contrast is None else label_contrast[0]
        self.label_contrast = None if label_contrast is None else label_contrast[1]

    def compute(self, batch: TransductiveBatch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss and its three parts, `classification`, `between_views` and `between_labels`."""
        assert batch.labelled.labels is not None, "labelled objects have labels"
        labels, (features, views) = gather(batch.labelled.labels, 0), self._passed(batch.labelled)
        joined = torch.cat(features, dim=1)
        targets = labels if self.multi_label else functional.one_hot(labels, self.classes)
        classification = functional.binary_cross_entropy_with_logits(
            gather(self.classifier(joined), 0), targets.to(joined.dtype)
        )
        zero = torch.zeros((), device=joined.device)
        between_views, between_labels = zero, zero
        if self.view_contrast is not None and self.embed is not None:
            embedded = [self.embed(features, views), self.embed(*self._passed(batch.unlabelled))]
            between_views = self.view_contrast(gather(torch.cat(embedded, dim=1), 1)).mean()
        if self.label_contrast is not None:
            between_labels = self.label_contrast(gather(joined, 0), labels).mean()
        loss = classification + self.alpha * between_views + self.beta * between_labels
        return loss, {
            # Without a pair in the contrast of labels, the classifier still learns: nothing is dropped.
            "dropped_fraction": zero,
            "classification": classification.detach(),
            "between_views": between_views.detach(),
            "between_labels": between_labels.detach(),
        }

    def _passed(self, objects: MultiView) -> tuple[list[Tensor], list[Tensor]]:
        """Return the features of each view, and the views: each kind of objects passes the network by itself.

        Batch norm is why, as in the released code: with the unlabelled objects in their batch, the few
        labelled ones are overfitted (on Scene's fold 1, under the released optimizer: F1 0.59, not 0.64).
        """
        views = [pixels(view) for view in objects.views]
        return self.encoder.by_view(views), views

    @torch.no_grad()
    def predict(self, views: Sequence[Tensor]) -> Tensor:
        """Return the probability of each label `(N, c)` for objects of these `views`, in evaluation mode."""

        def scores() -> Tensor:
            logits: Tensor = self.classifier(self.encoder([pixels(view) for view in views]))
            return logits.sigmoid() if self.multi_label else logits.softmax(dim=1)

        return self._evaluated(scores)


def pixels(view: Tensor) -> Tensor:
    """Return a view as an encoder takes it: uint8 images in 0..1, features as they are."""
    return view.float() / 255.0 if view.dtype == torch.uint8 else view
