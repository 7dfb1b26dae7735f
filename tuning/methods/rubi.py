"""RUBi (Cadene et al. 2019): a branch that reads the biased features masks the logits in training."""

from torch import nn

from contrasweep.losses import RUBi
from contrasweep.models import Encoder
from contrasweep.rules import OneOf
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.biased_network import BIASED_ENCODER, build_biased_encoder
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.objective import Batch, Objective
from contrasweep.tuning.objectives.prepared import PreparedData
from contrasweep.tuning.objectives.two_networks import Outputs, PairLosses, TwoNetworks


class MaskedLogits(nn.Module):
    """RUBi's loss with the branch that makes the mask, and the branch's own answer.

    No gradient of it reaches the biased features, whose network learns by its own cross-entropy. RUBi's
    question encoder has no classifier of its own; it learns with the model that it is a part of.
    """

    def __init__(self, loss: RUBi, mask: nn.Module, answer: nn.Module) -> None:
        super().__init__()
        self.loss = loss
        self.mask = mask
        self.answer = answer

    def forward(self, own: Outputs, biased: Outputs, batch: Batch) -> PairLosses:
        """Return both losses."""
        mask = self.mask(biased.features.detach())
        loss = self.loss(own.logits, mask, self.answer(mask), batch.labels)
        return PairLosses(loss, nn.functional.cross_entropy(biased.logits, batch.labels), {})


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return both networks and the branch."""
    settings, classes = experiment.hyperparameters, data.spec.classes
    biased = build_biased_encoder(experiment, data)
    mask, answer = _branch(str(settings["branch"]), biased.width, classes)
    loss = MaskedLogits(RUBi(float(settings["weight"])), mask, answer)
    return TwoNetworks(encoder, biased, classes, loss)


def _branch(kind: str, width: int, classes: int) -> tuple[nn.Module, nn.Module]:
    """Return the map from features to the mask's logits, and that from these to the branch's answer.

    Source: rubi/models/networks/rubi.py of the released code; criterions/comparison_methods.py of ReBias's,
    whose optimizer never gets the layer.
    """
    if kind == "mlp":
        hidden = (nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU())
        return nn.Sequential(*hidden, nn.Linear(width, classes)), nn.Linear(classes, classes)
    return nn.Linear(width, classes).requires_grad_(kind == "linear"), nn.Identity()


METHOD = Method(
    name="rubi",
    summary="a branch that knows the bias masks the logits, so that the encoder does not learn the bias",
    paper="RUBi (Cadene et al. 2019)",
    equation="L_QM + L_QO",
    hyperparameters={
        **hyperparameters_of(RUBi, {"weight": "the weight of the branch's own loss"}),
        "branch": Hyperparameter(
            "three layers and one for its answer, or one layer, or one that stays random as in ReBias's code",
            OneOf(("mlp", "linear", "fixed")),
        ),
        "biased_encoder": BIASED_ENCODER,
    },
    build=build,
    feed=single_view,
    needs=frozenset({"labels"}),
    classifies=True,
    train_metrics=("biased_loss",),
)
