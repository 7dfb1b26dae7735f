"""Fair-CCLK: negatives are weighted by the kernel similarity of their condition to the anchor's."""

from contrasweep.losses import FairCCLK
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import KERNEL, kernel_conditioned
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return Fair-CCLK on the projection head's output and the batch's condition."""
    loss = FairCCLK(**experiment.hyperparameters)  # type: ignore[arg-type]
    return kernel_conditioned(experiment, encoder, loss)


METHOD = Method(
    name="fair-cclk",
    summary="negatives are weighted by how similar their condition is to the anchor's",
    paper="CCL-K (Tsai et al. 2022)",
    equation="Eq. 8",
    hyperparameters=KERNEL,
    build=build,
    needs=frozenset({"condition"}),
)
