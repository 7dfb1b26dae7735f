"""Weights of images, from the losses of two networks on them so far (LfF, Nam et al. 2020).

Shapes: B images in the batch, over all ranks, C classes, N training images.
"""

import torch
from torch import Tensor, nn

from contrasweep.losses import relative_difficulty

UNSEEN = -1.0


class RelativeDifficulty(nn.Module):
    """LfF's weight of every image, from moving averages of two networks' losses on it.

    An image's average starts with its first loss. Before two averages are compared, each is divided by the
    largest average that its network has among the training images of the class. Every rank must be given the
    whole batch, so that all of them keep the same averages.

    Attributes:
        averages: float32 `(2, N)`, the averages of the biased network and of the other; -1 for an image that
            neither has seen. It is a buffer: checkpoints keep it.
        momentum: the share that an average keeps of itself.

    Source: train.py and util.py of LfF's released code (momentum 0.7). The paper's Algorithm 1 compares the
    losses of the step: `methods.lff.difficulty_of_step`.
    """

    averages: Tensor
    labels: Tensor

    def __init__(self, labels: Tensor, classes: int, momentum: float) -> None:
        super().__init__()
        self.register_buffer("averages", torch.full((2, len(labels)), UNSEEN, device=labels.device))
        self.register_buffer("labels", labels, persistent=False)
        self.classes = classes
        self.momentum = momentum

    @torch.no_grad()
    def forward(self, biased: Tensor, debiased: Tensor, index: Tensor) -> Tensor:
        """Take in the losses `(B,)` of both networks and return the weights `(B,)`, without gradient.

        `index` int64 `(B,)` gives the images' rows in the training set, each at most once.
        """
        losses, before = torch.stack([biased, debiased]).to(self.averages), self.averages[:, index]
        moved = self.momentum * before + (1 - self.momentum) * losses
        self.averages[:, index] = torch.where(before == UNSEEN, losses, moved)
        largest = losses.new_zeros(2, self.classes)
        largest.scatter_reduce_(1, self.labels.expand(2, -1), self.averages, "amax")
        own = largest[:, self.labels[index]].clamp_min(torch.finfo(losses.dtype).tiny)
        return relative_difficulty(*(self.averages[:, index] / own))
