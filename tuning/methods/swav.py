"""SwAV: the prototype that a view is assigned to is predicted from other crops, with assignments balanced."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

from contrasweep.data import torch_generator
from contrasweep.losses import SwAV
from contrasweep.models import Encoder, KeyQueue
from contrasweep.rules import Number
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.methods.declaration import Hyperparameter
from contrasweep.tuning.methods.method import TEMPERATURE, Method, hyperparameters_of
from contrasweep.tuning.objectives.heads import experiment_head, head_outputs
from contrasweep.tuning.objectives.objective import Batch, Gather, Metrics, Objective, of_views
from contrasweep.tuning.objectives.prepared import PreparedData

ASSIGNED = 2
"""The views that are assigned to prototypes: the two large crops."""


class SwappedPrediction(Objective):
    """SwAV on the head's output; its prototypes learn after the first `freeze_epochs` epochs.

    Views and local crops pass the encoder apart, because their sizes differ, and the head together, as in the
    released code. After the first `queue_epochs` epochs, the `queue` collects the embeddings of both views
    side by side. Once it is full, its embeddings are assigned together with those of the batch.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        loss: SwAV,
        *,
        freeze_epochs: int,
        queue: KeyQueue | None,
        queue_epochs: int,
    ) -> None:
        super().__init__(encoder)
        self.head = head
        self.prototypes = loss
        self.freeze_epochs = freeze_epochs
        self.queue = queue
        self.queue_epochs = queue_epochs
        self._collects, self._collected = False, 0
        self._newest: Tensor | None = None

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Let the prototypes learn from epoch `freeze_epochs + 1` on, and the queue fill likewise."""
        self.prototypes.requires_grad_(epoch > self.freeze_epochs)
        self._collects = epoch > self.queue_epochs
        # Read once an epoch and counted from then on: reading it in every step would make a GPU wait.
        self._collected = 0 if self.queue is None else int(self.queue.filled)
        return {}

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the mean over all pairs of an assigned view and another crop; no anchor is dropped."""
        embeddings = gather(self.embed(batch.views, batch.local), 1)
        terms = self.prototypes.terms(embeddings[:ASSIGNED], embeddings[ASSIGNED:], self._queued())
        self._newest = embeddings[:ASSIGNED].detach()
        return terms.mean(), {"dropped_fraction": terms.dropped_fraction()}

    def embed(self, views: Tensor, local: Tensor | None = None) -> Tensor:
        """Return the head's embeddings `(V + L, B, D)` of `views` and `local` crops `(..., B, C, S, S)`."""
        features = [self._encode(crops) for crops in (views, local) if crops is not None]
        return of_views(self.head, torch.cat(features), apart=self.views_apart)

    def after_step(self) -> None:
        """Normalise the prototypes to length 1, and put the embeddings of the step into the queue.

        The released code normalises before every step.
        """
        self.prototypes.normalise_prototypes()
        if self._collects and self.queue is not None and self._newest is not None:
            # Each view has the length 1 before the queue gives it to the pair.
            self.queue.enqueue(functional.normalize(self._newest, dim=2).transpose(0, 1).flatten(1))
            self._collected += self._newest.shape[1]
        self._newest = None

    def _queued(self) -> Tensor | None:
        """Return the queued embeddings `(V, Q, D)`, of any length, once there are Q of each view."""
        if self.queue is None or not self._collects or self._collected < len(self.queue.keys):
            return None
        return torch.stack(self.queue.keys.chunk(ASSIGNED, dim=1))


def build(experiment: Experiment, encoder: Encoder, data: PreparedData) -> Objective:
    """Return SwAV on the projection head's output."""
    settings = experiment.hyperparameters
    head = experiment_head(experiment, encoder)
    width = head_outputs(head, encoder.width)
    loss = SwAV(
        width,
        int(settings["prototypes"]),
        float(settings["temperature"]),
        float(settings["epsilon"]),
        int(settings["iterations"]),
    )
    # Studies that are older than the queue had none.
    size, start = int(settings.get("queue", 0)), torch_generator(experiment.seed, "queue")
    return SwappedPrediction(
        encoder,
        head,
        loss,
        freeze_epochs=int(settings["freeze_epochs"]),
        queue=KeyQueue(size, ASSIGNED * width, start) if size else None,
        queue_epochs=int(settings.get("queue_epochs", 0)),
    )


METHOD = Method(
    name="swav",
    summary="the balanced assignment of a view to prototypes is predicted from other crops",
    paper="SwAV (Caron et al. 2020)",
    equation="Eq. 1-6",
    hyperparameters={
        **hyperparameters_of(
            SwAV,
            {
                "temperature": TEMPERATURE,
                "epsilon": "the softness of the assignments",
                "prototypes": "K, how many prototypes",
                "iterations": "rounds of Sinkhorn-Knopp",
            },
        ),
        "freeze_epochs": Hyperparameter(
            "first epochs in which the prototypes stay", Number(at_least=0, whole=True)
        ),
        "queue": Hyperparameter(
            "earlier embeddings of each view that are assigned with the batch", Number(at_least=0, whole=True)
        ),
        "queue_epochs": Hyperparameter("first epochs without the queue", Number(at_least=0, whole=True)),
    },
    build=build,
    local_crops=True,
)
