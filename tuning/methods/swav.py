"""SwAV: the prototype that one view is assigned to is predicted from the other, with assignments balanced."""

from collections.abc import Callable

from torch import Tensor, nn

from contrasweep.losses import SwAV
from contrasweep.losses.validation import Number
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter, Method, hyperparameters_of
from contrasweep.tuning.objectives.heads import experiment_head, head_outputs
from contrasweep.tuning.objectives.objective import ContrastiveObjective, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


class SwappedPrediction(ContrastiveObjective):
    """SwAV on the head's output; its prototypes learn after the first `freeze_epochs` epochs."""

    def __init__(self, encoder: Encoder, head: nn.Module, loss: SwAV, freeze_epochs: int) -> None:
        super().__init__(encoder, head, lambda views, batch: loss.terms(views))
        self.prototypes = loss
        self.freeze_epochs = freeze_epochs

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Let the prototypes learn from epoch `freeze_epochs + 1` on."""
        self.prototypes.requires_grad_(epoch > self.freeze_epochs)
        return {}

    def after_step(self) -> None:
        """Normalise the prototypes to length 1; the released code does so before every step."""
        self.prototypes.normalise_prototypes()


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return SwAV on the projection head's output."""
    settings = experiment.hyperparameters
    head = experiment_head(experiment, encoder)
    loss = SwAV(
        head_outputs(head, encoder.width),
        int(settings["prototypes"]),
        float(settings["temperature"]),
        float(settings["epsilon"]),
        int(settings["iterations"]),
    )
    return SwappedPrediction(encoder, head, loss, int(settings["freeze_epochs"]))


METHOD = Method(
    name="swav",
    summary="a view's balanced assignment to prototypes is predicted from the other view",
    paper="SwAV (Caron et al. 2020)",
    equation="Eq. 1-5, without multi-crop",
    hyperparameters={
        **hyperparameters_of(
            SwAV,
            {
                "temperature": TEMPERATURE,
                "epsilon": "the softness of the assignments",
                "prototypes": "K, how many prototypes",
                "iterations": "rounds of Sinkhorn-Knopp",
            },
        ),
        "freeze_epochs": Hyperparameter(
            "first epochs in which the prototypes stay", Number(at_least=0, whole=True)
        ),
    },
    build=build,
)
