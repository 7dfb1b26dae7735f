"""WeaklySup-CCLK: images whose conditions are alike by a kernel attract, all others repel."""

from losses import WeaklySupCCLK
from models import Encoder
from tuning.config import Experiment
from tuning.methods.conditioning import KERNEL, condition_of
from tuning.methods.method import Method, with_projection_head
from tuning.training.objective import Objective
from tuning.training.prepared import PreparedData


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return WeaklySup-CCLK on the projection head's output and the batch's condition."""
    loss = WeaklySupCCLK(**experiment.hyperparameters)  # type: ignore[arg-type]
    return with_projection_head(
        experiment, encoder, lambda views, batch: loss.terms(views, condition_of(batch))
    )


METHOD = Method(
    name="weaklysup-cclk",
    summary="images attract by how similar their conditions are",
    paper="CCL-K (Tsai et al. 2022)",
    equation="Eq. 7",
    hyperparameters=KERNEL,
    build=build,
    needs=frozenset({"condition"}),
)
