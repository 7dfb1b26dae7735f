"""InfoNCE: two views of an image attract, the other images of the batch repel (SimCLR's NT-Xent)."""

from contrasweep.losses import InfoNCE
from contrasweep.losses.infonce import NEGATIVES
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter, Method, with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData

HYPERPARAMETERS = {
    "temperature": TEMPERATURE,
    "negatives": Hyperparameter(
        "which other views repel: of the other view only, or of both", str, NEGATIVES
    ),
}


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return InfoNCE on the projection head's output."""
    loss = InfoNCE(**experiment.hyperparameters)  # type: ignore[arg-type]
    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views))


METHOD = Method(
    name="infonce",
    summary="two views of an image attract, all other images repel",
    paper="van den Oord et al. 2018; Chen et al. 2020 (SimCLR)",
    equation="NT-Xent",
    hyperparameters=HYPERPARAMETERS,
    build=build,
)
