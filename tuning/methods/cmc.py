"""CMC: InfoNCE over all pairs of several views of an image."""

from losses import InfoNCE
from models import Encoder
from tuning.config import Experiment
from tuning.methods import cacr
from tuning.methods.method import TEMPERATURE, Method, with_projection_head
from tuning.training.objective import Objective
from tuning.training.prepared import PreparedData


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
