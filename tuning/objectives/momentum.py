"""Objectives with a momentum encoder and a queue of its keys, as in MoCo (He et al. 2020).

Queries come from the encoder and its head, which learn. Keys come from copies of both, which follow slowly.
Queries and keys each pass their own network at once, in training mode. So batch norm normalises keys by the
keys of the batch, and the copies keep running statistics of their own. MoCo shuffles the keys over GPUs.
Here a batch is normalised as a whole, so shuffling would change nothing and is left out.

Shapes: V views of a batch, B images, C channels, S pixels a side, D width, Q keys in the queue.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from contrasweep.data import torch_generator
from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder, KeyQueue, MomentumCopy
from contrasweep.tuning.experiment import Experiment
from contrasweep.tuning.objectives.heads import experiment_head, head_outputs
from contrasweep.tuning.objectives.objective import (
    Batch,
    Gather,
    Metrics,
    Objective,
    averaged,
    channels_last,
    of_views,
)


@dataclass(frozen=True)
class Contrast:
    """The arguments of a loss with momentum, gathered over ranks.

    Attributes:
        queries: `(Vq, B, D)`, with gradient.
        keys: `(Vk, B, D)` of the momentum encoder, without gradient.
        queue: `(Q, D)`, keys of earlier batches; it changes in place after the step.
        batch: the batch; all of it but its views is gathered.
    """

    queries: Tensor
    keys: Tensor
    queue: Tensor
    batch: Batch


MomentumLoss = Callable[[Contrast], tuple[LossTerms | Tensor, Metrics]]
"""Per-anchor terms of a step, or a scalar, and metrics beside `dropped_fraction` (detached)."""

EVERY_VIEW = slice(None)


class MomentumObjective(Objective):
    """Queries of an encoder and its head against keys of their momentum copies and a queue of older keys.

    The experiment gives the projection head, the share `momentum_m` that the copies keep of themselves in a
    step, and the number of keys in the `queue`, whose random start depends on the seed alone.
    `queried` says which views of a batch are queries and `keyed` which are keys; `enqueued` says which keys
    join the queue. After the optimizer's step, `after_step` moves the copies towards their originals and puts
    the step's keys into the queue. A checkpoint keeps the copies and the queue.
    """

    def __init__(
        self,
        experiment: Experiment,
        encoder: Encoder,
        loss: MomentumLoss,
        *,
        queried: slice = EVERY_VIEW,
        keyed: slice = EVERY_VIEW,
        enqueued: slice = EVERY_VIEW,
    ) -> None:
        super().__init__(encoder)
        settings = experiment.hyperparameters
        momentum, keys = float(settings["momentum_m"]), int(settings["queue"])
        self.head = experiment_head(experiment, encoder)
        self.loss = loss
        self.key_encoder = MomentumCopy(self.encoder, momentum)
        self.key_head = MomentumCopy(self.head, momentum)
        width, start = head_outputs(self.head, encoder.width), torch_generator(experiment.seed, "queue")
        self.queue = KeyQueue(keys, width, start)
        self.queried, self.keyed, self.enqueued = queried, keyed, enqueued
        self._newest: Tensor | None = None

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the mean of the loss over its valid anchors, its metrics, and the fraction dropped."""
        apart = self.views_apart
        queries = gather(embed(self.encoder, self.head, batch.views[self.queried], apart=apart), 1)
        keys = gather(embed(self.key_encoder, self.key_head, batch.views[self.keyed], apart=apart), 1)
        result, metrics = self.loss(Contrast(queries, keys, self.queue.keys, batch.gathered(gather)))
        loss, dropped = averaged(result)
        self._newest = keys[self.enqueued].flatten(0, 1)
        return loss, {"dropped_fraction": dropped, **metrics}

    def after_step(self) -> None:
        """Move the copies towards their originals and replace the oldest keys of the queue by the step's."""
        assert self._newest is not None, "a step has been taken"
        self.key_encoder.follow(self.encoder)
        self.key_head.follow(self.head)
        self.queue.enqueue(self._newest)
        self._newest = None

    @torch.no_grad()
    def embed_images(self, images: Tensor) -> Tensor:
        """Return the momentum encoder's embeddings `(N, D)` of `images` `(N, C, S, S)` in evaluation mode."""
        return self._evaluated(lambda: embed(self.key_encoder, self.key_head, images[None])[0])


def embed(encoder: nn.Module, head: nn.Module, views: Tensor, *, apart: bool = False) -> Tensor:
    """Return the embeddings `(V, B, D)` of `views` `(V, B, C, S, S)`; `apart` is as in `of_views`."""
    return of_views(lambda images: head(encoder(channels_last(images))), views, apart=apart)
