"""Which images form a batch: exact epochs that depend on the seed and the epoch's number alone.

A sampler holds no position, so a run resumed at epoch E draws what it would have drawn without the break.
"""

import torch
from torch import Tensor

from data.seeds import torch_generator

_SMALLEST_BATCH = 3


class UniformBatches:
    """Batches of images drawn without regard to their condition; each image at most once an epoch.

    What does not fill a batch is left out for that epoch, a different remainder each time. A set smaller than
    a batch is one batch.

    Raises:
        ValueError: there is no image, or the batch size is below 1.
    """

    def __init__(self, size: int, batch_size: int, seed: int) -> None:
        if size < 1:
            raise ValueError(f"at least one image is needed to draw batches, got {size}")
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, got {batch_size}")
        self.size = size
        self.batch_size = min(batch_size, size)
        self.seed = seed

    @property
    def steps_per_epoch(self) -> int:
        """Batches in every epoch."""
        return self.size // self.batch_size

    def epoch(self, epoch: int) -> list[Tensor]:
        """Return the epoch's batches, each int64 ``(batch_size,)`` row numbers."""
        generator = torch_generator("uniform batches", self.seed, epoch)
        order = torch.randperm(self.size, generator=generator)
        return list(torch.split(order[: self.steps_per_epoch * self.batch_size], self.batch_size))


class OneClusterBatches:
    """Batches whose images all belong to one cluster of the condition (Fair-InfoNCE, CCL-K Eq. 4).

    A cluster's images are dealt to near-equal batches of at most ``batch_size``, so every image of a cluster
    of two or more is seen once an epoch and always has company. The only image of a cluster has nothing to
    be contrasted with and is left out; ``dropped`` counts those.

    Args:
        clusters: int64 ``(N,)``, the cluster of each image.
        batch_size: at least 3; with 2, an odd cluster would leave an image alone.
        seed: which stream of batches.

    Raises:
        ValueError: the batch size is below 3, the clusters are not int64 ``(N,)``, or none has two images.
    """

    def __init__(self, clusters: Tensor, batch_size: int, seed: int) -> None:
        if batch_size < _SMALLEST_BATCH:
            raise ValueError(
                f"batch_size of one-cluster batches must be at least {_SMALLEST_BATCH}, got {batch_size}"
            )
        if clusters.dtype != torch.int64 or clusters.dim() != 1:
            raise ValueError(f"clusters must be int64 (N,), got {clusters.dtype} {tuple(clusters.shape)}")
        rows = clusters.cpu()
        members = [(rows == cluster).nonzero().flatten() for cluster in torch.unique(rows)]
        self.members = [images for images in members if len(images) >= 2]
        if not self.members:
            raise ValueError(f"no cluster has two images: {len(rows)} images in {len(members)} clusters")
        self.dropped = len(members) - len(self.members)
        self.batch_size = batch_size
        self.seed = seed

    @property
    def steps_per_epoch(self) -> int:
        """Batches in every epoch."""
        return sum(self._batches_of(images) for images in self.members)

    def epoch(self, epoch: int) -> list[Tensor]:
        """Return the epoch's batches in random order, each int64 row numbers of one cluster."""
        generator = torch_generator("one-cluster batches", self.seed, epoch)
        batches: list[Tensor] = []
        for images in self.members:
            shuffled = images[torch.randperm(len(images), generator=generator)]
            batches.extend(shuffled.tensor_split(self._batches_of(images)))
        return [batches[position] for position in torch.randperm(len(batches), generator=generator).tolist()]

    def _batches_of(self, images: Tensor) -> int:
        return -(-len(images) // self.batch_size)
