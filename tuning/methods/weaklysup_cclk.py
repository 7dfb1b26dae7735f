"""WeaklySup-CCLK: images whose conditions are alike by a kernel attract, all others repel."""

from losses import WeaklySupCCLK
from models import Encoder
from tuning.config import Experiment
from tuning.methods.conditioning import KERNEL, kernel_conditioned
from tuning.methods.method import Method
from tuning.training.objective import Objective
from tuning.training.prepared import PreparedData


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
