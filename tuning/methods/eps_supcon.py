"""eps-SupCon: SupCon with a margin between positives and negatives."""

from losses import EpsSupCon
from models import Encoder
from tuning.config import Experiment
from tuning.methods.eps_supinfonce import EPSILON
from tuning.methods.method import TEMPERATURE, Method, with_projection_head
from tuning.training.objective import Objective
from tuning.training.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return eps-SupCon on the projection head's output."""
    loss = EpsSupCon(**experiment.hyperparameters)  # type: ignore[arg-type]
    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views, batch.labels))


METHOD = Method(
    name="eps-supcon",
    summary="SupCon with a margin between positives and negatives",
    paper="eps-SupInfoNCE + FairKL (Barbano et al. 2023)",
    equation="Eq. 5",
    hyperparameters={"temperature": TEMPERATURE, "epsilon": EPSILON},
    build=build,
    needs=frozenset({"labels"}),
)
