"""What is trained: a batch goes in, a loss and its metrics come out.

Shapes: V views, B images in the batch, C channels, S pixels a side, D width of the embedding.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from losses.terms import LossTerms
from models import Encoder

Gather = Callable[[Tensor, int], Tensor]
"""Concatenates a tensor over ranks along a dimension, with gradient; on one process, the identity."""


def identity_gather(tensor: Tensor, dim: int) -> Tensor:
    """Return `tensor`: one process already holds the global batch."""
    return tensor


@dataclass(frozen=True)
class Batch:
    """One step's data: `views (V, B, C, S, S)` in [0, 1], `labels (B,)`, `condition (B, Z)`, `index (B,)`."""

    views: Tensor
    labels: Tensor
    condition: Tensor | None
    index: Tensor


class Objective(nn.Module):
    """Everything learnable of a method: an encoder, a projection head, and the loss of their embeddings.

    `loss` is called with the gathered embeddings `(V, B, D)` and condition and returns per-anchor terms.
    """

    def __init__(
        self, encoder: Encoder, head: nn.Module, loss: Callable[[Tensor, Tensor | None], LossTerms]
    ) -> None:
        super().__init__()
        # Convolutions on a CPU, and half-precision ones on a GPU, are faster with the channels last.
        self.encoder = encoder.to(memory_format=torch.channels_last)
        self.head = head
        self.loss = loss

    def step(self, batch: Batch, gather: Gather = identity_gather) -> tuple[Tensor, dict[str, Tensor]]:
        """Return the loss (a scalar) and its metrics (detached scalars) for one batch."""
        views, images = batch.views.shape[:2]
        embeddings = self.head(self.encoder(_channels_last(batch.views.flatten(0, 1))))
        embeddings = gather(embeddings.view(views, images, -1), 1)
        condition = None if batch.condition is None else gather(batch.condition, 0)
        terms = self.loss(embeddings, condition)
        return terms.mean(), {"dropped_fraction": terms.dropped_fraction().detach()}

    @torch.no_grad()
    def features(self, images: Tensor) -> Tensor:
        """Return the encoder's features `(N, D)` of `images` `(N, C, S, S)` in evaluation mode."""
        was_training = self.training
        self.eval()
        features: Tensor = self.encoder(_channels_last(images))
        self.train(was_training)
        return features


def _channels_last(images: Tensor) -> Tensor:
    return images.contiguous(memory_format=torch.channels_last)
