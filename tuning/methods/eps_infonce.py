"""eps-InfoNCE: two views of an image attract until a margin ahead of all other images."""

from contrasweep.losses import EpsInfoNCE
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.eps_supinfonce import EPSILON
from contrasweep.tuning.methods.method import TEMPERATURE, Method, with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return eps-InfoNCE on the projection head's output."""
    loss = EpsInfoNCE(**experiment.hyperparameters)  # type: ignore[arg-type]
    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views))


METHOD = Method(
    name="eps-infonce",
    summary="two views attract until a margin ahead of all other images",
    paper="eps-SupInfoNCE + FairKL (Barbano et al. 2023)",
    equation="Eq. 2",
    hyperparameters={"temperature": TEMPERATURE, "epsilon": EPSILON},
    build=build,
)
