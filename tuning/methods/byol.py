"""BYOL: a predictor maps one view's embedding onto the momentum network's embedding of the other view."""

from collections.abc import Callable

from torch import Tensor

from contrasweep.losses import BYOL
from contrasweep.models import Encoder, MomentumCopy, rising_momentum
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import Method
from contrasweep.tuning.methods.simsiam import PREDICTOR
from contrasweep.tuning.objectives.batches import image_feed
from contrasweep.tuning.objectives.momentum import embed
from contrasweep.tuning.objectives.objective import Objective
from contrasweep.tuning.objectives.predicted_views import PredictedViews
from contrasweep.tuning.objectives.prepared import PreparedData

RISING_MOMENTUM = Hyperparameter(
    "the share that the momentum network keeps of itself in the first step; it rises to 1",
    Number(at_least=0, at_most=1),
)


class MomentumTargets(PredictedViews):
    """The targets come from copies of encoder and head, which follow ever more slowly.

    In step k (from 0) of K, the copies keep the share `1 - (1 - momentum_m) (cos(pi k / K) + 1) / 2` of
    themselves: `momentum_m` at first, almost 1 in the end. A checkpoint keeps the copies.
    """

    def __init__(self, experiment: Experiment, encoder: Encoder, steps_per_epoch: int) -> None:
        super().__init__(experiment, encoder, BYOL())
        self.momentum = float(experiment.hyperparameters["momentum_m"])
        self.target_encoder = MomentumCopy(self.encoder, self.momentum)
        self.target_head = MomentumCopy(self.head, self.momentum)
        self.steps_per_epoch = steps_per_epoch
        self.steps = experiment.epochs * steps_per_epoch
        self._done = 0

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Go to the epoch's place in the schedule of the momentum, and report the momentum there."""
        self._done = (epoch - 1) * self.steps_per_epoch
        return {"momentum": rising_momentum(self.momentum, self._done, self.steps)}

    def targets(self, views: Tensor, embeddings: Tensor) -> Tensor:
        """Return the copies' embeddings `(V, B, D)` of `views`, without gradient."""
        return embed(self.target_encoder, self.target_head, views, apart=self.views_apart)

    def after_step(self) -> None:
        """Move the copies towards their originals."""
        share = rising_momentum(self.momentum, self._done, self.steps)
        self.target_encoder.follow(self.encoder, share)
        self.target_head.follow(self.head, share)
        self._done += 1


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return BYOL on the projection head's output."""
    return MomentumTargets(experiment, encoder, image_feed(experiment, data).sampler.steps_per_epoch)


METHOD = Method(
    name="byol",
    summary="a predictor maps a view's embedding onto a momentum network's of the other view",
    paper="BYOL (Grill et al. 2020)",
    equation="Eq. 1 and 2",
    hyperparameters={
        "predictor_hidden": PREDICTOR,
        "momentum_m": RISING_MOMENTUM,
    },
    build=build,
    train_metrics=("momentum", "embedding_std"),
)
