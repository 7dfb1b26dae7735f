"""The objective of a predictor between two views, without negatives: BYOL and SimSiam differ in its targets.

Shapes: V = 2 views of a batch, B images, C channels, S pixels a side, D width of the embedding.
"""

from abc import abstractmethod

from torch import Tensor

from contrasweep.losses import Loss
from contrasweep.models import Encoder, direction_std, mlp_bn_head
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.heads import experiment_head, head_outputs
from contrasweep.tuning.objectives.objective import (
    Batch,
    Gather,
    Metrics,
    Objective,
    of_every_image,
    of_views,
)


class PredictedViews(Objective):
    """Of each view's embedding, a predictor makes the prediction of the other view's target.

    The experiment gives the projection head, and `predictor_hidden`, the hidden width of the predictor
    (Linear, batch norm, ReLU, Linear). The loss takes predictions and targets `(V, B, D)`. The metric
    `embedding_std` is `models.direction_std` of the targets: it falls to 0 when they collapse.
    """

    def __init__(self, experiment: Experiment, encoder: Encoder, loss: Loss) -> None:
        super().__init__(encoder)
        self.head = experiment_head(experiment, encoder)
        width = head_outputs(self.head, encoder.width)
        self.predictor = mlp_bn_head(width, int(experiment.hyperparameters["predictor_hidden"]), width)
        self.loss = loss

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss of both directions, in which every image counts, and the targets' deviation."""
        embeddings = of_views(self.head, self._encode(batch.views), apart=self.views_apart)
        predictions = gather(of_views(self.predictor, embeddings, apart=self.views_apart), 1)
        targets = gather(self.targets(batch.views, embeddings).detach(), 1)
        return of_every_image(
            self.loss(predictions, targets), {"embedding_std": direction_std(targets.float())}
        )

    @abstractmethod
    def targets(self, views: Tensor, embeddings: Tensor) -> Tensor:
        """Return the targets `(V, B, D)` of `views` `(V, B, C, S, S)`, which have these `embeddings`."""
