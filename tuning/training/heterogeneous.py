"""HeroCon's objective: a classifier on the views of an object, with a contrast of views and one of labels.

Shapes: n labelled and u unlabelled objects, D features a view, c labels.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from losses.terms import LossTerms
from models.encoders.multiview import MultiViewEncoder
from tuning.training.objective import Gather, Metrics, Objective
from tuning.training.transductive import TransductiveBatch

ViewContrast = Callable[[Tensor], LossTerms]
"""Of the embeddings `(2, n + u, D)` of both views of all objects."""

LabelContrast = Callable[[Tensor, Tensor], LossTerms]
"""Of the joined features `(n, 2D)` and the labels of the labelled objects."""


class HeterogeneousObjective(Objective):
    """`L_c + alpha L_u + beta L_s`: binary cross-entropy on the labelled objects, and two contrasts.

    `view_contrast` is L_u with the map of each view's features to its embeddings, `label_contrast` L_s;
    either may be left out. Single labels are classified as one-hot rows, by the largest score.
    """

    encoder: MultiViewEncoder

    def __init__(
        self,
        encoder: MultiViewEncoder,
        classes: int,
        *,
        multi_label: bool,
        view_contrast: tuple[float, ViewContrast, nn.ModuleList] | None,
        label_contrast: tuple[float, LabelContrast] | None,
    ) -> None:
        super().__init__(encoder)
        self.classifier = nn.Linear(encoder.width, classes)
        self.multi_label = multi_label
        self.classes = classes
        self.alpha = 0.0 if view_contrast is None else view_contrast[0]
        self.view_contrast = None if view_contrast is None else view_contrast[1]
        self.embeddings = nn.ModuleList() if view_contrast is None else view_contrast[2]
        self.beta = 0.0 if label_contrast is None else label_contrast[0]
        self.label_contrast = None if label_contrast is None else label_contrast[1]

    def compute(self, batch: TransductiveBatch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss and its three parts, `classification`, `between_views` and `between_labels`."""
        labels, count = batch.labelled.labels, len(batch.labelled)
        assert labels is not None, "labelled objects have labels"
        both = zip(batch.labelled.views, batch.unlabelled.views, strict=True)
        features = self.encoder.by_view([pixels(torch.cat(parts)) for parts in both])
        joined = torch.cat(features, dim=1)[:count]
        targets = labels if self.multi_label else functional.one_hot(labels, self.classes)
        classification = functional.binary_cross_entropy_with_logits(
            self.classifier(joined), targets.to(joined.dtype)
        )
        zero = torch.zeros((), device=joined.device)
        between_views, between_labels = zero, zero
        if self.view_contrast is not None:
            embedded = [embed(own) for embed, own in zip(self.embeddings, features, strict=True)]
            between_views = self.view_contrast(gather(torch.stack(embedded), 1)).mean()
        if self.label_contrast is not None:
            between_labels = self.label_contrast(gather(joined, 0), gather(labels, 0)).mean()
        loss = classification + self.alpha * between_views + self.beta * between_labels
        return loss, {
            # Without a pair in the contrast of labels, the classifier still learns: nothing is dropped.
            "dropped_fraction": zero,
            "classification": classification.detach(),
            "between_views": between_views.detach(),
            "between_labels": between_labels.detach(),
        }

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
