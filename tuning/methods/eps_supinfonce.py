"""eps-SupInfoNCE: images of one class attract each by itself, until a margin ahead of all other classes."""

from contrasweep.losses import EpsSupInfoNCE
from contrasweep.losses.epsilon import VARIANTS
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter, Method, with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData

EPSILON = Hyperparameter("the margin between positives and negatives", float, at_least=0)


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return eps-SupInfoNCE on the projection head's output."""
    loss = EpsSupInfoNCE(**experiment.hyperparameters)  # type: ignore[arg-type]
    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views, batch.labels))


METHOD = Method(
    name="eps-supinfonce",
    summary="images of one class attract until a margin ahead of all other classes",
    paper="eps-SupInfoNCE + FairKL (Barbano et al. 2023)",
    equation="Eq. 4; variants of Eq. 17",
    hyperparameters={
        "temperature": TEMPERATURE,
        "epsilon": EPSILON,
        "variant": Hyperparameter("which of Eq. 17's four forms", str, VARIANTS),
    },
    build=build,
    needs=frozenset({"labels"}),
)
