"""HeroCon: classification with a contrast between views and one between labels, end to end.

With `between_views` or `between_labels` other than `herocon` it is one of the paper's baselines: none of both
is its DNN, without L_s it is HeroCon-u, without L_u HeroCon-s.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from contrasweep.losses import HeroConSupervised, HeroConUnsupervised, InfoNCE, SupCon
from contrasweep.losses.terms import LossTerms
from contrasweep.models.encoders.herocon import herocon_embedding
from contrasweep.models.encoders.multiview import MultiViewEncoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.heterogeneous import (
    EmbeddedInput,
    EmbeddedViews,
    HeterogeneousObjective,
    LabelContrast,
    ViewContrast,
)
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter, Method
from contrasweep.tuning.objectives.batches import transductive_feed
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.transductive import PreparedTransductive

NONE = "none"


def build(experiment: Experiment, encoder: MultiViewEncoder, data: PreparedTransductive) -> Objective:
    """Return HeroCon, or the baseline that the hyperparameters say."""
    settings, spec = experiment.hyperparameters, data.spec
    views, labels = _view_contrast(experiment, encoder), _label_contrast(experiment)
    # Also where nothing is contrasted: with the same seed, all forms then start from the same classifier, but
    # for those of HeroCon's own contrast, whose weights of negatives are drawn before it.
    embed = _embeddings(encoder, spec.views)
    return HeterogeneousObjective(
        encoder,
        spec.classes,
        multi_label=spec.multi_label,
        view_contrast=None if views is None else (float(settings["alpha"]), views, embed),
        label_contrast=None if labels is None else (float(settings["beta"]), labels),
    )


def _embeddings(encoder: MultiViewEncoder, views: Sequence[Sequence[int]]) -> nn.Module:
    of_features = nn.ModuleList(herocon_embedding(own.width) for own in encoder.encoders)
    if len(views) > 1:
        return EmbeddedViews(of_features)
    (shape,), (own,) = views, encoder.encoders
    return EmbeddedInput(of_features[0], nn.Linear(math.prod(shape), own.width))


def _view_contrast(experiment: Experiment, encoder: MultiViewEncoder) -> ViewContrast | None:
    settings = experiment.hyperparameters
    name = settings["between_views"]
    if name == NONE:
        return None
    if name == "herocon":
        return HeroConTerms(HeroConUnsupervised(encoder.encoders[0].width, str(settings["negatives"])))
    # CMC takes the other view's objects as negatives, NT-Xent those of both views.
    contrast = InfoNCE(float(settings["temperature"]), "cross" if name == "cmc" else "all")
    return contrast.terms


def _label_contrast(experiment: Experiment) -> LabelContrast | None:
    settings = experiment.hyperparameters
    if settings["between_labels"] == NONE:
        return None
    if settings["between_labels"] == "herocon":
        return HeroConSupervised().terms
    contrast = SupCon(float(settings["label_temperature"]))

    def same_labels(features: Tensor, labels: Tensor) -> LossTerms:
        # SupCon knows one label an object: a set of labels is one.
        groups = labels if labels.dim() == 1 else torch.unique(labels, dim=0, return_inverse=True)[1]
        return contrast.terms(features[None], groups)

    return same_labels


class HeroConTerms(nn.Module):
    """L_u as a module whose call gives its terms: its learned weights are the objective's."""

    def __init__(self, loss: HeroConUnsupervised) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, views: Tensor) -> LossTerms:
        """Return the terms for `views` `(2, B, D)`."""
        return self.loss.terms(views)


METHOD = Method(
    name="herocon",
    summary="classification with a weighted contrast between views and between labels",
    paper="HeroCon (Zheng et al. 2022)",
    equation="Eq. 5 (of one view: Eq. 4) and Eq. 7",
    hyperparameters={
        "between_views": Hyperparameter(
            "the contrast between views, L_u", str, ("herocon", "infonce", "cmc", NONE)
        ),
        "between_labels": Hyperparameter(
            "the contrast between labels, L_s", str, ("herocon", "supcon", NONE)
        ),
        "alpha": Hyperparameter("the weight of L_u", float, at_least=0),
        "beta": Hyperparameter("the weight of L_s", float, at_least=0),
        "negatives": Hyperparameter("the negatives of HeroCon's L_u", str, ("both", "cross")),
        "temperature": TEMPERATURE,
        "label_temperature": Hyperparameter("the scale tau of SupCon's scores", float, above=0),
    },
    build=build,
    feed=transductive_feed,
    needs=frozenset({"labels", "own views"}),
    smallest_batch=2,
    classifies=True,
    train_metrics=("classification", "between_views", "between_labels"),
)
