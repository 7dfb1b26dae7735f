"""eps-SupCon: SupCon with a margin between positives and negatives."""

from contrasweep.losses import EpsSupCon
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.eps_supinfonce import EPSILON
from contrasweep.tuning.methods.method import TEMPERATURE, Method, with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


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
