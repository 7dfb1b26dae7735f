"""CMC: InfoNCE over all pairs of several views of an image."""

from contrasweep.losses import InfoNCE
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods import cacr
from contrasweep.tuning.methods.method import TEMPERATURE, Method, with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return InfoNCE of every ordered pair of views, on the projection head's output."""
    loss = InfoNCE(float(experiment.hyperparameters["temperature"]), negatives="cross")
    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views))


METHOD = Method(
    name="cmc",
    summary="all pairs of several views of an image attract, all other images repel",
    paper="Tian et al. 2020; a baseline of CACR",
    equation="L_F, the full graph",
    hyperparameters={"positives": cacr.HYPERPARAMETERS["positives"], "temperature": TEMPERATURE},
    build=build,
    feed=cacr.feed,
)
