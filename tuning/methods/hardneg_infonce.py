"""HardNeg-InfoNCE (HN-CL): the negatives closest to the anchor weigh most."""

from contrasweep.losses import HardNegInfoNCE
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter, Method, with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return HardNeg-InfoNCE on the projection head's output."""
    loss = HardNegInfoNCE(**experiment.hyperparameters)  # type: ignore[arg-type]
    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views))


METHOD = Method(
    name="hardneg-infonce",
    summary="the negatives closest to the anchor weigh most",
    paper="Robinson et al. 2021; a baseline of CCL-K and CACR (HN-CL)",
    equation="Eq. 4",
    hyperparameters={
        "temperature": TEMPERATURE,
        "beta": Hyperparameter("how much more close negatives weigh", float, at_least=0),
        "tau_plus": Hyperparameter(
            "the share of negatives taken to be of the anchor's class", float, at_least=0, below=1
        ),
    },
    build=build,
)
