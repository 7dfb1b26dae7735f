"""CMC with attributes: an image and an embedding of its own condition attract, those of others repel."""

import torch
from torch import Tensor, nn

from contrasweep.losses import InfoNCE
from contrasweep.models import Encoder, projection_head
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.objectives.batches import single_view
from contrasweep.tuning.objectives.heads import experiment_head, head_outputs
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective
from contrasweep.tuning.objectives.prepared import PreparedData


class ConditionEmbedding(nn.Module):
    """A projection of the condition `(N, Z)`, each of its numbers standardised first, to `(N, D)`.

    Args:
        condition: `(M, Z)`, that of all training images, which says what is standard; a number that never
            changes is only shifted to 0.
        hidden: width inside.
        outputs: D.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, condition: Tensor, hidden: int, outputs: int) -> None:
        super().__init__()
        spread = condition.std(dim=0, correction=0)
        self.register_buffer("mean", condition.mean(dim=0))
        self.register_buffer("scale", torch.where(spread > 0, spread, 1.0))
        self.projection = projection_head(condition.shape[1], hidden, outputs)

    def forward(self, condition: Tensor) -> Tensor:
        """Return the embeddings `(N, D)` of `condition` `(N, Z)`."""
        embeddings: Tensor = self.projection((condition - self.mean) / self.scale)
        return embeddings


class AttributeContrast(Objective):
    """InfoNCE, in both directions, between the head's embeddings of images and those of their conditions."""

    def __init__(
        self, encoder: Encoder, head: nn.Module, attributes: ConditionEmbedding, loss: InfoNCE
    ) -> None:
        super().__init__(encoder)
        self.head = head
        self.attributes = attributes
        self.loss = loss

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the mean over images and directions, and the fraction of anchors dropped."""
        assert batch.condition is not None, "checked when the experiment was resolved"
        of_images = self.head(self._encode(batch.views)[0])
        pairs = torch.stack([of_images, self.attributes(batch.condition)])
        terms = self.loss.terms(gather(pairs, 1))
        return terms.mean(), {"dropped_fraction": terms.dropped_fraction()}


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return the contrast of images and conditions, which are embedded as wide as images are."""
    condition = data.train.condition
    assert condition is not None, "checked when the experiment was resolved"
    head = experiment_head(experiment, encoder)
    hidden, width = experiment.head.hidden or encoder.width, head_outputs(head, encoder.width)
    return AttributeContrast(
        encoder,
        head,
        ConditionEmbedding(condition, hidden, width),
        InfoNCE(float(experiment.hyperparameters["temperature"]), negatives="cross"),
    )


METHOD = Method(
    name="cmc-attributes",
    summary="an image and its condition attract, the conditions of other images repel",
    paper="CMC (Tian et al. 2020), a baseline of Cl-InfoNCE (Tsai et al. 2022)",
    equation="Eq. 4 of CMC",
    hyperparameters=hyperparameters_of(InfoNCE, {"temperature": TEMPERATURE}),
    build=build,
    feed=single_view,  # the condition is the other view
    needs=frozenset({"condition"}),
)
