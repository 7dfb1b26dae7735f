"""InfoNCE: two views of an image attract, the other images of the batch repel (SimCLR's NT-Xent)."""

from losses import InfoNCE
from losses.infonce import NEGATIVES
from models import Encoder
from tuning.config import Experiment
from tuning.methods.method import TEMPERATURE, Hyperparameter, Method, with_projection_head
from tuning.training.objective import Objective
from tuning.training.prepared import PreparedData

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
