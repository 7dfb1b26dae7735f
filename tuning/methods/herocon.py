"""HeroCon: classification with a contrast between views and one between labels, end to end.

Other values of `between_views` and `between_labels` than `herocon` give the paper's baselines: its DNN has
neither contrast, HeroCon-u has no L_s, and HeroCon-s has no L_u.

Shapes: n labelled and u unlabelled objects, D features a view, c labels.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from contrasweep.data import MultiView
from contrasweep.losses import HeroConSupervised, HeroConUnsupervised, InfoNCE, SupCon
from contrasweep.losses.terms import LossTerms, TermsOf
from contrasweep.losses.validation import rule_of
from contrasweep.models.encoders.herocon import herocon_embedding
from contrasweep.models.encoders.multiview import MultiViewEncoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method
from contrasweep.tuning.objectives.batches import transductive_feed
from contrasweep.tuning.objectives.objective import Gather, Metrics, Objective, of_every_image
from contrasweep.tuning.objectives.prepared import PreparedTransductive, TransductiveBatch
from contrasweep.tuning.objectives.transductive import InputMap, MultiViewClassifier, views_of

NONE = "none"

ViewContrast = Callable[[Tensor], LossTerms]
"""Terms of the embeddings `(2, n + u, D)` of both views of all objects."""

Embed = Callable[[list[Tensor], list[Tensor]], Tensor]
"""Embeddings `(2, B, D)` from the features `(B, D)` of each view and the views themselves."""

LabelContrast = Callable[[Tensor, Tensor], LossTerms]
"""Terms of the joined features `(n, VD)` of V views and the labels `(n, c)` of 0 and 1."""


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

    The paper contrasts an embedding with the input, does not say how their widths come to match, and its code
    lacks this form. Here a learned linear map takes the flattened input to the width of the features.
    """

    def __init__(self, of_features: nn.Module, of_input: InputMap) -> None:
        super().__init__()
        self.of_features = of_features
        self.of_input = of_input

    def forward(self, features: list[Tensor], views: list[Tensor]) -> Tensor:
        """Return the embeddings `(2, B, D)`."""
        (own,), (view,) = features, views
        return torch.stack([self.of_features(own), self.of_input(view)])


class HeterogeneousObjective(MultiViewClassifier):
    """`L_c + alpha L_u + beta L_s`: binary cross-entropy on the labelled objects, and two contrasts.

    `view_contrast` holds L_u, the module that makes an object's two embeddings, and alpha; `label_contrast`
    holds L_s and beta. Either contrast may be None.
    """

    def __init__(
        self,
        encoder: MultiViewEncoder,
        data: PreparedTransductive,
        *,
        view_contrast: tuple[ViewContrast | None, nn.Module, float],
        label_contrast: tuple[LabelContrast | None, float],
    ) -> None:
        super().__init__(encoder, data)
        self.classifier = nn.Linear(encoder.width, self.classes)
        self.view_contrast, embed, self.alpha = view_contrast
        self.embed: Embed | None = None if self.view_contrast is None else embed
        self.label_contrast, self.beta = label_contrast

    def compute(self, batch: TransductiveBatch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss and its three parts, `classification`, `between_views` and `between_labels`."""
        labels, (features, views) = batch.gathered_labels(gather), self._passed(batch.labelled)
        joined = torch.cat(features, dim=1)
        classification = self.classification(gather(self.classifier(joined), 0), labels)
        zero = torch.zeros((), device=joined.device)
        between_views, between_labels = zero, zero
        if self.view_contrast is not None and self.embed is not None:
            embedded = [self.embed(features, views), self.embed(*self._passed(batch.unlabelled))]
            between_views = self.view_contrast(gather(torch.cat(embedded, dim=1), 1)).mean()
        if self.label_contrast is not None:
            between_labels = self.label_contrast(gather(joined, 0), self.rows_of(labels, joined)).mean()
        loss = classification + self.alpha * between_views + self.beta * between_labels
        # The classifier learns even if the contrast of labels has no pair.
        parts = {"between_views": between_views, "between_labels": between_labels}
        return of_every_image(loss, {"classification": classification, **parts})

    def _passed(self, objects: MultiView) -> tuple[list[Tensor], list[Tensor]]:
        """Return the features of each view, and the views.

        Labelled and unlabelled objects pass the network separately because of batch norm, as in the released
        code. With the unlabelled objects in the same batch, the few labelled ones are overfitted (on Scene's
        fold 1, under the released optimizer: F1 0.59 in place of 0.64).
        """
        views = views_of(objects)
        return self.encoder.by_view(views), views

    def logits(self, views: list[Tensor]) -> Tensor:
        """Return the classifier's scores of the joined features."""
        scores: Tensor = self.classifier(self.encoder(views))
        return scores


def build(experiment: Experiment, encoder: MultiViewEncoder, data: PreparedTransductive) -> Objective:
    """Return HeroCon, or the baseline that the hyperparameters name."""
    settings = experiment.hyperparameters
    views = _view_contrast(experiment, encoder)
    # The embeddings are made even without a contrast, so that all forms start from the same classifier with
    # the same seed. HeroCon's own contrast is an exception: its weights of negatives are drawn before.
    embed = _embeddings(encoder, data.spec.views)
    return HeterogeneousObjective(
        encoder,
        data,
        view_contrast=(views, embed, float(settings.get("alpha", 0.0))),
        label_contrast=(_label_contrast(experiment, data), float(settings.get("beta", 0.0))),
    )


def _embeddings(encoder: MultiViewEncoder, views: Sequence[Sequence[int]]) -> nn.Module:
    of_features = nn.ModuleList(herocon_embedding(own.width) for own in encoder.encoders)
    if len(views) > 1:
        return EmbeddedViews(of_features)
    (shape,), (own,) = views, encoder.encoders
    return EmbeddedInput(of_features[0], InputMap(shape, own.width))


def _view_contrast(experiment: Experiment, encoder: MultiViewEncoder) -> ViewContrast | None:
    settings = experiment.hyperparameters
    name = settings["between_views"]
    if name == NONE:
        return None
    if name == "herocon":
        return TermsOf(HeroConUnsupervised(encoder.encoders[0].width, str(settings["negatives"])))
    # CMC's negatives are the objects of the other view, NT-Xent's the objects of both views.
    contrast = InfoNCE(float(settings["temperature"]), "cross" if name == "cmc" else "all")
    return contrast.terms


def _label_contrast(experiment: Experiment, data: PreparedTransductive) -> LabelContrast | None:
    settings = experiment.hyperparameters
    if settings["between_labels"] == NONE:
        return None
    if settings["between_labels"] == "herocon":
        # The data decide, not the batch: a small one may hold no object with several labels.
        return HeroConSupervised("hamming" if data.spec.multi_label else "indicator").terms
    contrast = SupCon(float(settings["label_temperature"]))

    def same_labels(features: Tensor, labels: Tensor) -> LossTerms:
        # SupCon takes one label an object: equal sets of labels count as one label, the first that has them.
        apart = torch.cdist(labels, labels, p=1.0)
        return contrast.terms(features[None], (apart == 0).to(torch.uint8).argmax(dim=1))

    return same_labels


METHOD = Method(
    name="herocon",
    summary="classification with a weighted contrast between views and between labels",
    paper="HeroCon (Zheng et al. 2022)",
    equation="Eq. 5 (of one view: Eq. 4) and Eq. 7",
    hyperparameters={
        "between_views": Hyperparameter(
            "the contrast between views, L_u", OneOf(("herocon", "infonce", "cmc", NONE))
        ),
        "between_labels": Hyperparameter(
            "the contrast between labels, L_s", OneOf(("herocon", "supcon", NONE))
        ),
        "alpha": Hyperparameter("the weight of L_u", Number(at_least=0)),
        "beta": Hyperparameter("the weight of L_s", Number(at_least=0)),
        "negatives": Hyperparameter(
            "the negatives of HeroCon's L_u", rule_of(HeroConUnsupervised, "negatives")
        ),
        "temperature": Hyperparameter(TEMPERATURE, rule_of(InfoNCE, "temperature")),
        "label_temperature": Hyperparameter(
            "the scale tau of SupCon's scores", rule_of(SupCon, "temperature")
        ),
    },
    build=build,
    feed=transductive_feed,
    needs=frozenset({"labels", "own views"}),
    classifies=True,
    train_metrics=("classification", "between_views", "between_labels"),
)
