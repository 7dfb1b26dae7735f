"""The objective: it turns a batch into a loss and metrics, and owns all trained parts.

Shapes: V views, B images in the batch, C channels, S pixels a side, D width of the embedding.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from contrasweep.data import shard_lengths
from contrasweep.losses.terms import LossTerms
from contrasweep.models import Encoder
from contrasweep.tuning.errors import WrongReturn

Gather = Callable[[Tensor, int], Tensor]
"""Concatenates a tensor over ranks along a dimension, with gradient; on one process, the identity."""

Metrics = dict[str, Tensor]
"""Detached scalars of one step by name; `dropped_fraction` is always among them."""


def of_every_image(loss: Tensor, metrics: Metrics) -> tuple[Tensor, Metrics]:
    """Return a loss in which every image counts, and its metrics, detached, with `dropped_fraction` 0."""
    dropped = torch.zeros((), device=loss.device)
    detached = {name: one.detach() if isinstance(one, Tensor) else one for name, one in metrics.items()}
    return loss, {"dropped_fraction": dropped, **detached}


def with_shape(returned: object) -> str:
    """Return the name of a value's type, and of a tensor the shape too, for messages."""
    shape = f" of shape {tuple(returned.shape)}" if isinstance(returned, Tensor) else ""
    return f"{type(returned).__name__}{shape}"


def _kind(returned: object) -> str:
    if not isinstance(returned, tuple):
        return type(returned).__name__
    return f"a tuple of {', '.join(type(one).__name__ for one in returned) or 'nothing'}"


def averaged(result: LossTerms | Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss that is minimised and the dropped fraction; a scalar drops nothing."""
    if isinstance(result, LossTerms):
        return result.mean(), result.dropped_fraction().detach()
    return result, torch.zeros((), device=result.device)


def identity_gather(tensor: Tensor, dim: int) -> Tensor:
    """Return `tensor`: one process already holds the global batch."""
    return tensor


@dataclass(frozen=True)
class Batch:
    """One step's data; a field that the dataset or the method does not have is None.

    Attributes:
        views: `(V, B, C, S, S)` in [0, 1].
        labels: int64 `(B,)`.
        index: int64 `(B,)`, the images' rows in the training set.
        condition: float `(B, Z)`, the conditioning variable.
        bias: int64 `(B,)`, the bias label.
        clusters: int64 `(B,)`, the cluster of each image.
        local: `(L, B, C, S', S')` in [0, 1], the local crops of multi-crop.
        whole: what is known of the images of all ranks, in a batch of one of several ranks. Every rank knows
            it from the rows of the whole batch, so that none of it is exchanged. Its images are this rank's.
    """

    views: Tensor
    labels: Tensor
    index: Tensor
    condition: Tensor | None = None
    bias: Tensor | None = None
    clusters: Tensor | None = None
    local: Tensor | None = None
    whole: "Batch | None" = None

    def lengths(self, world: int) -> tuple[tuple[int, ...], ...]:
        """Return how many images each rank has, if that is known (`objectives.ranks.OfKnownLengths`)."""
        return () if self.whole is None else (shard_lengths(len(self.whole.labels), world),)

    def gathered(self, gather: Gather) -> "Batch":
        """Return the batch with all but its images concatenated over ranks."""
        if self.whole is not None:
            return self.whole
        images = ("views", "local", "whole")
        held = {name: rows for name, rows in vars(self).items() if name not in images and rows is not None}
        gathered: dict[str, Any] = {name: gather(rows, 0) for name, rows in held.items()}
        return replace(self, **gathered)


class Objective(nn.Module, ABC):
    """All learnable parts of a method, around an encoder, and the loss of a batch.

    A run calls `on_epoch_start` and `regroup`, then for every batch `step`, the optimizer and `after_step`.
    State that must survive a restart is a parameter or a buffer.

    `views_apart` says whether the views of a batch pass the networks one by one, see `of_views`; the run sets
    it from the experiment.
    """

    views_apart = False

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        # Convolutions on a CPU, and half-precision ones on a GPU, are faster with the channels last.
        self.encoder = encoder.to(memory_format=torch.channels_last)

    def step(self, batch: Any, gather: Gather = identity_gather) -> tuple[Tensor, Metrics]:
        """Return the loss (a scalar) and its metrics for one batch; by default, no anchor dropped out.

        Raises:
            WrongReturn: `compute` returns something else than a pair of a tensor and metrics by name.
        """
        returned: object = self.compute(batch, gather)
        match returned:
            case (Tensor() as loss, dict() as metrics):
                pass
            case _:
                raise WrongReturn(
                    f"compute of {type(self).__name__} must return the loss, a tensor, and a dict of "
                    f"metrics, returned {_kind(returned)}"
                )
        return (loss, metrics) if "dropped_fraction" in metrics else of_every_image(loss, metrics)

    @abstractmethod
    def compute(self, batch: Any, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the loss (a scalar) and its metrics for one batch; every method has its own."""

    def on_epoch_start(self, epoch: int, embed: Callable[[], Tensor]) -> dict[str, float]:
        """Prepare for an epoch (from 1) and return metrics of it.

        `embed()` gives `embed_images` of every training image, `(N, D)`.
        """
        return {}

    def regroup(self, feed: Any) -> Any:
        """Return the source of the batches of the epoch that `on_epoch_start` began.

        It is `feed`, the run's own, unless the state of the training decides which images share a batch.
        """
        return feed

    def after_step(self) -> None:
        """Update state after the optimizer's step; most methods do nothing."""

    @torch.no_grad()
    def features(self, images: Tensor) -> Tensor:
        """Return the encoder's features `(N, D)` of `images` `(N, C, S, S)` in evaluation mode."""
        return self._evaluated(lambda: self.encoder(channels_last(images)))

    def embed_images(self, images: Tensor) -> Tensor:
        """Return the vectors `(N, D)` of `images` `(N, C, S, S)` to be clustered: the encoder's features."""
        return self.features(images)

    @torch.no_grad()
    def predict(self, images: Any) -> Tensor:
        """Return the scores `(N, classes)` of the method's own classifier in evaluation mode.

        Raises:
            NotImplementedError: the method has no classifier.
        """
        raise NotImplementedError(f"{type(self).__name__} has no classifier of its own")

    def _evaluated(self, compute: Callable[[], Tensor]) -> Tensor:
        was_training = self.training
        self.eval()
        result = compute()
        self.train(was_training)
        return result

    def _encode(self, views: Tensor) -> Tensor:
        """Return the features `(V, B, D)` of `views` `(V, B, C, S, S)`."""
        return of_views(lambda images: self.encoder(channels_last(images)), views, apart=self.views_apart)


EmbeddingLoss = Callable[[Tensor, Batch], LossTerms | Tensor]
"""Takes the gathered embeddings `(V, B, D)` and batch; returns per-anchor terms, or a scalar."""


class SecondHead(nn.Module):
    """Another projection head on the same features, and the loss of its embeddings, which has a `weight`."""

    def __init__(self, head: nn.Module, loss: EmbeddingLoss, weight: float) -> None:
        super().__init__()
        self.head = head
        self.loss = loss
        self.weight = weight

    def forward(self, embeddings: Tensor, batch: Batch) -> Tensor:
        """Return the loss of the head's gathered `embeddings` `(V, B, D)`, before its weight."""
        return averaged(self.loss(embeddings, batch))[0]


class ContrastiveObjective(Objective):
    """An encoder, a projection head and a loss of the embeddings of all views.

    A `loss` that is a scalar counts no anchor as dropped. `measure`, where given, takes the same as the loss,
    with detached embeddings, and returns metrics. `second`, where given, adds its loss, which is also the
    metric `second_loss`.
    """

    def __init__(
        self,
        encoder: Encoder,
        head: nn.Module,
        loss: EmbeddingLoss,
        measure: Callable[[Tensor, Batch], Metrics] | None = None,
        second: SecondHead | None = None,
    ) -> None:
        super().__init__(encoder)
        self.head = head
        self.loss = loss
        self.measure = measure
        self.second = second

    def compute(self, batch: Batch, gather: Gather) -> tuple[Tensor, Metrics]:
        """Return the mean of the loss over its valid anchors, and metrics with the dropped fraction."""
        features, whole = self._encode(batch.views), batch.gathered(gather)
        embeddings = gather(self._projected(self.head, features), 1)
        loss, dropped = averaged(self.loss(embeddings, whole))
        measured = {} if self.measure is None else self.measure(embeddings.detach(), whole)
        if self.second is not None:
            other = self.second(gather(self._projected(self.second.head, features), 1), whole)
            loss, measured = loss + self.second.weight * other, {**measured, "second_loss": other.detach()}
        return loss, {"dropped_fraction": dropped, **measured}

    def embed(self, views: Tensor) -> Tensor:
        """Return the head's embeddings `(V, B, D)` of `views` `(V, B, C, S, S)`."""
        return self._projected(self.head, self._encode(views))

    def _projected(self, head: nn.Module, features: Tensor) -> Tensor:
        return of_views(head, features, apart=self.views_apart)


def of_views(network: Callable[[Tensor], Tensor], views: Tensor, *, apart: bool) -> Tensor:
    """Return a network's outputs `(V, B, D)` for `views` `(V, B, ...)`, all in one pass or one view in each.

    In training, batch norm normalises what passes together; its running statistics follow every pass.
    """
    if apart:
        return torch.stack([network(view) for view in views])
    return network(views.flatten(0, 1)).view(*views.shape[:2], -1)


def channels_last(images: Tensor) -> Tensor:
    """Return `images` `(N, C, S, S)` in the memory order that convolutions are fastest in."""
    return images.contiguous(memory_format=torch.channels_last)


def learning_beside(loss: Tensor, other: Tensor) -> Tensor:
    """Return the value of `loss` with the gradient of `loss + other`.

    The reported value, from which divergence is read, is then that of the method's loss alone.
    """
    return loss + (other - other.detach())
