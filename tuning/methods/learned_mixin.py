"""LearnedMixin and LearnedMixin+H (Clark et al. 2019): an ensemble with a biased network, learned first."""

import logging
from collections.abc import Callable

from torch import Tensor, nn

from contrasweep.losses import LearnedMixin
from contrasweep.models import Encoder
from contrasweep.rules import Number, OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.biased_network import BIASED_ENCODER, build_biased_encoder
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.two_networks import (
    Outputs,
    PairLosses,
    TwoNetworks,
    first_epochs,
    reported,
)

logger = logging.getLogger(__name__)


class Ensemble(nn.Module):
    """LearnedMixin's loss with the map from an image's features to the biased network's share in it."""

    def __init__(self, loss: LearnedMixin, factor: nn.Module) -> None:
        super().__init__()
        self.loss = loss
        self.factor = factor

    def forward(self, own: Outputs, biased: Outputs, batch: Batch) -> PairLosses:
        """Return both losses; the biased network's has no gradient once that network is fixed."""
        factor = nn.functional.softplus(self.factor(own.features)).squeeze(1)
        loss = self.loss(own.logits, biased.logits.detach(), factor, batch.labels)
        return PairLosses(loss, nn.functional.cross_entropy(biased.logits, batch.labels), {})


class BiasLearnedFirst(TwoNetworks):
    """The biased network learns alone in the first `alone` epochs, and is fixed from then on.

    Its batch norm stays in training mode, as in ReBias's released code. The reported loss of the first epochs
    is the biased network's.
    """

    def __init__(
        self, encoder: Encoder, biased_encoder: Encoder, classes: int, ensemble: Ensemble, alone: int
    ) -> None:
        super().__init__(encoder, biased_encoder, classes, ensemble)
        self.alone = alone
        self.learns_bias = alone > 0

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Decide which network learns in the epoch."""
        self.learns_bias = epoch <= self.alone
        for part in (self.biased_encoder, self.biased_classifier):
            part.requires_grad_(self.learns_bias)
        return {}

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss of the network that learns, and metrics."""
        if not self.learns_bias:
            return super().compute(batch, gather)
        biased, whole = self.biased_outputs(batch, gather), batch.gathered(gather)
        loss = nn.functional.cross_entropy(biased.logits, whole.labels)
        return reported(PairLosses(loss, loss.detach(), {}))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return both networks and the factor, which has the paper's softplus of a linear map of the features."""
    settings = experiment.hyperparameters
    factor = nn.Linear(encoder.width, 1).requires_grad_(settings["factor"] == "learned")
    ensemble = Ensemble(LearnedMixin(float(settings["entropy_weight"])), factor)
    alone = first_epochs(float(settings["bias_first"]), experiment.epochs)
    if alone == 0:
        logger.warning("learned-mixin: a run of one epoch has none in which the biased network learns first")
    biased = build_biased_encoder(experiment, data)
    return BiasLearnedFirst(encoder, biased, data.spec.classes, ensemble, alone)


METHOD = Method(
    name="learned-mixin",
    summary="a classifier is trained in an ensemble with a biased one, and predicts without it",
    paper="LearnedMixin+H (Clark et al. 2019)",
    equation="section 3, Learned-Mixin and the entropy penalty H",
    hyperparameters={
        **hyperparameters_of(
            LearnedMixin, {"entropy_weight": "the weight of the penalty H; 0 is LearnedMixin without it"}
        ),
        "factor": Hyperparameter(
            "the map that gives the biased network's share: learned, or random as ReBias released it",
            OneOf(("learned", "fixed")),
        ),
        "bias_first": Hyperparameter(
            "the share of the run's epochs in which the biased network learns alone",
            Number(above=0, below=1),
        ),
        "biased_encoder": BIASED_ENCODER,
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels"}),
    classifies=True,
    train_metrics=("biased_loss",),
)
