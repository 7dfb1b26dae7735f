"""SupCon: images of one class attract, all others repel."""

from contrasweep.losses import SupCon
from contrasweep.losses.supcon import FORMS
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import TEMPERATURE, Hyperparameter, Method, with_projection_head
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return SupCon on the projection head's output."""
    loss = SupCon(**experiment.hyperparameters)  # type: ignore[arg-type]
    return with_projection_head(experiment, encoder, lambda views, batch: loss.terms(views, batch.labels))


METHOD = Method(
    name="supcon",
    summary="images of one class attract, all others repel",
    paper="Khosla et al. 2020",
    equation="Eq. 2 (out), Eq. 3 (in)",
    hyperparameters={
        "temperature": TEMPERATURE,
        "form": Hyperparameter("the mean over positives outside the logarithm, or inside", str, FORMS),
    },
    build=build,
    needs=frozenset({"labels"}),
)
