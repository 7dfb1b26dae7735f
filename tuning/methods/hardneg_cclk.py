"""HardNeg-CCLK: negatives are weighted by how close they lie to the anchor among the encoder's features."""

from torch import Tensor, nn

from contrasweep.losses import HardNegCCLK
from contrasweep.models import Encoder
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.conditioning import KERNEL
from contrasweep.tuning.methods.method import Method, experiment_head, hyperparameters_of
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


class FeatureConditioned(Objective):
    """HardNeg-CCLK of the head's embeddings, conditioned on the features that they were made of.

    The condition `(2, B, D)` is each view's features before the head, as long as they are and without
    gradient: `sigma2` and `lam` belong to that scale.
    """

    def __init__(self, encoder: Encoder, head: nn.Module, loss: HardNegCCLK) -> None:
        super().__init__(encoder)
        self.head = head
        self.loss = loss

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the mean of the loss over its valid anchors, and the fraction dropped."""
        features = self._encode(batch.views)
        embeddings = self.head(features.flatten(0, 1)).unflatten(0, features.shape[:2])
        terms = self.loss.terms(gather(embeddings, 1), gather(features.detach(), 1))
        return terms.mean(), {"dropped_fraction": terms.dropped_fraction()}


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return HardNeg-CCLK on the projection head's output and the encoder's features."""
    loss = HardNegCCLK(**experiment.hyperparameters)  # type: ignore[arg-type]
    return FeatureConditioned(encoder, experiment_head(experiment, encoder), loss)


METHOD = Method(
    name="hardneg-cclk",
    summary="negatives are weighted by how close their features are to the anchor's",
    paper="CCL-K (Tsai et al. 2022)",
    equation="Eq. 9",
    hyperparameters=hyperparameters_of(HardNegCCLK, KERNEL),
    build=build,
)
