"""WeaklySup-CCLK: images whose conditions are alike by a kernel attract, all others repel."""

from contrasweep.losses import WeaklySupCCLK
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import KERNEL, kernel_conditioned
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return WeaklySup-CCLK on the projection head's output and the batch's condition."""
    loss = WeaklySupCCLK(**experiment.hyperparameters)  # type: ignore[arg-type]
    return kernel_conditioned(experiment, encoder, loss)


METHOD = Method(
    name="weaklysup-cclk",
    summary="images attract by how similar their conditions are",
    paper="CCL-K (Tsai et al. 2022)",
    equation="Eq. 7",
    hyperparameters=KERNEL,
    build=build,
    needs=frozenset({"condition"}),
)
