"""SimSiam: a predictor maps one view's embedding onto the other's, which has no gradient."""

from torch import Tensor

from contrasweep.losses import SimSiam
from contrasweep.models import Encoder
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.predicted_views import PredictedViews
from contrasweep.tuning.objectives.prepared import PreparedData

PREDICTOR = Hyperparameter("the width of the predictor's hidden layer", Number(at_least=1, whole=True))


class SameNetwork(PredictedViews):
    """The targets are the embeddings themselves: one network, and a gradient that stops."""

    def targets(self, views: Tensor, embeddings: Tensor) -> Tensor:
        """Return `embeddings` `(V, B, D)`."""
        return embeddings


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return SimSiam on the projection head's output; every layer, the predictor too, has one schedule."""
    return SameNetwork(experiment, encoder, SimSiam())


METHOD = Method(
    name="simsiam",
    summary="a predictor maps a view's embedding onto the other view's, whose gradient stops",
    paper="SimSiam (Chen and He 2021)",
    equation="Eq. 1 and 2",
    hyperparameters={"predictor_hidden": PREDICTOR},
    build=build,
    train_metrics=("embedding_std",),
)
