"""MIB: each view has a random code; two codes of an object share information and hold little else.

As HeroCon's baseline it learns end to end: a linear classifier reads the means of the codes.

Shapes: n labelled and u unlabelled objects, B = n + u, D width of a code.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.data import MultiView
from contrasweep.losses import InfoNCE, JensenShannon, SymmetricKL
from contrasweep.losses.terms import LossTerms, TermsOf
from contrasweep.losses.validation import rule_of
from contrasweep.models.encoders.multiview import MultiViewEncoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method
from contrasweep.tuning.objectives.batches import transductive_feed
from contrasweep.tuning.objectives.draws import StepDraws
from contrasweep.tuning.objectives.objective import Gather, Metrics, Objective, of_every_image
from contrasweep.tuning.objectives.prepared import PreparedTransductive, TransductiveBatch
from contrasweep.tuning.objectives.transductive import InputMap, MultiViewClassifier, views_of

SMALLEST_DEVIATION = 1e-7


class Codes(nn.Module):
    """Normal distributions of two codes of each object: a linear map of the features of each view.

    Where the data have one view, a linear map of the input itself stands for the features of the second, as
    in HeroCon's Eq. 4; the authors make a second view by augmentation.
    """

    def __init__(self, encoder: MultiViewEncoder, shapes: Sequence[Sequence[int]], dim: int) -> None:
        super().__init__()
        widths = [own.width for own in encoder.encoders]
        if len(shapes) == 1:
            self.of_input = InputMap(shapes[0], widths[0])
            widths *= 2
        self.of_features = nn.ModuleList(nn.Linear(width, 2 * dim) for width in widths)

    def forward(self, features: list[Tensor], views: list[Tensor]) -> tuple[Tensor, Tensor]:
        """Return the means and the standard deviations, `(2, B, D)` each."""
        both = features if len(features) > 1 else [*features, self.of_input(views[0])]
        outputs = torch.stack([code(own) for code, own in zip(self.of_features, both, strict=True)])
        means, raw = outputs.chunk(2, dim=2)
        return means, functional.softplus(raw) + SMALLEST_DEVIATION

    def means(self, features: list[Tensor]) -> Tensor:
        """Return the joined means `(B, VD)` of the codes of the data's own views."""
        codes = list(self.of_features)[: len(features)]
        outputs = [code(own).chunk(2, dim=1)[0] for code, own in zip(codes, features, strict=True)]
        return torch.cat(outputs, dim=1)


class InformationBottleneck(MultiViewClassifier):
    """`L_c + alpha (-I(z_1; z_2) + beta D_SKL)`, with a beta that grows over the run.

    L_c is on labelled objects, the bottleneck on all; both kinds pass the network separately, as HeroCon's
    do. `information` takes the codes `(2, B, D)` and returns the terms of -I.
    """

    def __init__(
        self,
        experiment: Experiment,
        encoder: MultiViewEncoder,
        data: PreparedTransductive,
        information: Callable[[Tensor], LossTerms],
    ) -> None:
        super().__init__(encoder, data)
        settings = experiment.hyperparameters
        dim = int(settings["dim"])
        self.codes = Codes(encoder, data.spec.views, dim)
        self.classifier = nn.Linear(dim * len(data.spec.views), self.classes)
        self.information = information
        self.divergence = SymmetricKL(str(settings["divergence"]))
        self.alpha = float(settings["alpha"])
        self.experiment = experiment
        self.beta = scheduled_beta(experiment, 1)
        self.draws = StepDraws(experiment.seed, "codes")

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Set the epoch's beta and begin to draw its noise."""
        self.draws.begin(epoch)
        self.beta = scheduled_beta(self.experiment, epoch)
        return {}

    def after_step(self) -> None:
        """Go on to the next step's noise."""
        self.draws.advance()

    def compute(self, batch: TransductiveBatch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss and its parts, `classification`, `information` and `divergence`."""
        features, means, deviations = self._passed(batch.labelled, gather)
        logits = gather(self.classifier(self.codes.means(features)), 0)
        classification = self.classification(logits, batch.gathered_labels(gather))
        _, more_means, more_deviations = self._passed(batch.unlabelled, gather)
        means, deviations = torch.cat([means, more_means], 1), torch.cat([deviations, more_deviations], 1)
        noise = self.draws.normal(means)
        information = self.information(means + deviations * noise).mean()
        divergence = self.divergence(means, deviations, noise)
        loss = classification + self.alpha * (information + self.beta * divergence)
        parts = {"classification": classification, "information": -information, "divergence": divergence}
        return of_every_image(loss, parts)

    def _passed(self, objects: MultiView, gather: Gather) -> tuple[list[Tensor], Tensor, Tensor]:
        """Return the features of each view, and the codes' means and deviations of all ranks' objects."""
        views = views_of(objects)
        features = self.encoder.by_view(views)
        means, deviations = self.codes(features, views)
        return features, gather(means, 1), gather(deviations, 1)

    def logits(self, views: list[Tensor]) -> Tensor:
        """Return the classifier's scores of the means of the codes."""
        scores: Tensor = self.classifier(self.codes.means(self.encoder.by_view(views)))
        return scores


def scheduled_beta(experiment: Experiment, epoch: int) -> float:
    """Return beta in an epoch (from 1).

    It is `beta_start` in the share `hold` of the epochs, then moves to `beta` over the share `rise`, at a
    constant rate of its logarithm. The released code (utils/schedulers.py) does so step by step.
    """
    settings = experiment.hyperparameters
    start, end = float(settings["beta_start"]), float(settings["beta"])
    passed = (epoch - 1) / experiment.epochs - float(settings["hold"])
    share = min(max(passed / float(settings["rise"]), 0.0), 1.0)
    return float(start ** (1.0 - share) * end**share)


def build(experiment: Experiment, encoder: MultiViewEncoder, data: PreparedTransductive) -> Objective:
    """Return the bottleneck with the estimate of information that the hyperparameters name."""
    settings = experiment.hyperparameters
    if settings["estimator"] == "jsd":
        loss = JensenShannon(int(settings["dim"]), int(settings["hidden"]))
        return InformationBottleneck(experiment, encoder, data, TermsOf(loss))
    return InformationBottleneck(experiment, encoder, data, InfoNCE(float(settings["temperature"])).terms)


METHOD = Method(
    name="mib",
    summary="random codes of two views share information and contain little else; a classifier reads them",
    paper="MIB (Federici et al. 2020); a baseline of HeroCon",
    equation="L_MIB",
    hyperparameters={
        "alpha": Hyperparameter("the weight of the bottleneck beside classification", Number(at_least=0)),
        "dim": Hyperparameter("the width of a code", rule_of(JensenShannon, "dim")),
        "estimator": Hyperparameter("how shared information is estimated", OneOf(("jsd", "infonce"))),
        "hidden": Hyperparameter("the width of the estimator's network", rule_of(JensenShannon, "hidden")),
        "temperature": Hyperparameter(TEMPERATURE, rule_of(InfoNCE, "temperature")),
        "divergence": Hyperparameter(
            "the divergence of one sample, or its closed form", rule_of(SymmetricKL, "form")
        ),
        "beta_start": Hyperparameter("the weight of the divergence at first", Number(above=0)),
        "beta": Hyperparameter("its weight at the end", Number(above=0)),
        "hold": Hyperparameter("the share of the epochs at the first weight", Number(at_least=0, at_most=1)),
        "rise": Hyperparameter("the share over which the weight changes", Number(above=0, at_most=1)),
    },
    build=build,
    feed=transductive_feed,
    needs=frozenset({"labels", "own views"}),
    classifies=True,
    train_metrics=("classification", "information", "divergence"),
)
