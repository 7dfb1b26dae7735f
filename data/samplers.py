"""Batches of images: exact epochs that depend only on the seed and the number of the epoch.

A sampler has no state, so a run that resumes at step S of epoch E goes on with ``epoch(E)[S:]`` and draws
the same batches as without the break. Batches are global; each of many ranks takes its `shard`.
"""

from dataclasses import dataclass
from typing import overload

import torch
from torch import Tensor

from contrasweep.data.seeds import torch_generator


@dataclass(frozen=True, eq=False)
class SemiSupervisedRows:
    """One batch of `SemiSupervisedBatches`: rows of two sets, int64 ``(B1,)`` and ``(B2,)``."""

    labelled: Tensor
    unlabelled: Tensor


@overload
def shard(batch: Tensor, rank: int, world: int) -> Tensor: ...


@overload
def shard(batch: SemiSupervisedRows, rank: int, world: int) -> SemiSupervisedRows: ...


def shard(batch: Tensor | SemiSupervisedRows, rank: int, world: int) -> Tensor | SemiSupervisedRows:
    """Return one rank's part of a global batch; the parts keep the order and cover the batch once.

    If the batch does not divide by ``world``, the number of ranks, the first ranks take one image more each.
    A batch is row numbers ``(B,)``, or ``(V, B)`` with views that stay together, or a `SemiSupervisedRows`.

    Raises:
        ValueError: there is no such rank, or fewer images than ranks.
    """
    if not 0 <= rank < world:
        raise ValueError(f"rank must be 0..world-1, got rank {rank} of world {world}")
    if isinstance(batch, SemiSupervisedRows):
        return SemiSupervisedRows(shard(batch.labelled, rank, world), shard(batch.unlabelled, rank, world))
    if batch.shape[-1] < world:
        raise ValueError(f"a batch of {batch.shape[-1]} images leaves some of {world} ranks without any")
    return batch.tensor_split(world, dim=-1)[rank]


def shard_lengths(count: int, world: int) -> tuple[int, ...]:
    """Return how many of ``count`` images each of ``world`` ranks has, see `shard`."""
    return tuple(len(part) for part in torch.arange(count).tensor_split(world))


class UniformBatches:
    """Batches of images drawn without regard to their condition; each image at most once per epoch.

    The remainder that does not fill a batch is left out for that epoch, another one in each epoch. A set
    smaller than a batch is one batch.

    Raises:
        ValueError: there are no images, or the batch size is below 1.
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
        """The number of batches in an epoch."""
        return self.size // self.batch_size

    def epoch(self, epoch: int) -> list[Tensor]:
        """Return the epoch's batches, each int64 ``(batch_size,)`` row numbers."""
        generator = torch_generator("uniform batches", self.seed, epoch)
        order = torch.randperm(self.size, generator=generator)
        return list(torch.split(order[: self.steps_per_epoch * self.batch_size], self.batch_size))


class OneClusterBatches:
    """Batches of images from one cluster of the condition each (Fair-InfoNCE, CCL-K Eq. 4).

    The images of a cluster are dealt to near-equal batches of at most ``batch_size``. So every image of a
    cluster of two or more occurs once per epoch, never alone. The only image of a cluster has no other image
    to contrast with and is left out; ``dropped`` counts these images.

    ``clusters`` int64 ``(N,)`` has the cluster of each image. ``batch_size`` is at least 3; with 2, an odd
    cluster would leave an image alone.

    Raises:
        ValueError: the batch size is below 3, the clusters are not int64 ``(N,)``, or no cluster has two
            images.
    """

    def __init__(self, clusters: Tensor, batch_size: int, seed: int) -> None:
        if batch_size < 3:
            raise ValueError(f"batch_size of one-cluster batches must be at least 3, got {batch_size}")
        members = _members(clusters)
        self.members = [images for images in members if len(images) >= 2]
        if not self.members:
            raise ValueError(f"no cluster has two images: {len(clusters)} images in {len(members)} clusters")
        self.dropped = len(members) - len(self.members)
        self.batch_size = batch_size
        self.seed = seed

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in an epoch."""
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


class PairedBatches(UniformBatches):
    """Uniform batches in which each image has a partner from its cluster (Cl-InfoNCE, Definition 3.1).

    The partner is any other image of the cluster, with equal chances. The only image of a cluster is its own
    partner; ``alone`` counts these images. With one cluster per image, this is SimCLR. An epoch has each
    image at most once as itself, and any number of times as a partner. ``clusters`` int64 ``(N,)`` has the
    cluster of each image, ``batch_size`` counts pairs.

    Raises:
        ValueError: the batch size is below 1, or the clusters are not int64 ``(N,)`` with at least one image.
    """

    def __init__(self, clusters: Tensor, batch_size: int, seed: int) -> None:
        members = _members(clusters)
        super().__init__(len(clusters), batch_size, seed)
        sizes = torch.tensor([len(images) for images in members])
        self.alone = int((sizes == 1).sum())
        # Images in the order of their clusters; for each image, its place, and the first place and size of
        # its cluster.
        self._in_order = torch.cat(members)
        self._place = torch.empty_like(self._in_order)
        self._place[self._in_order] = torch.arange(len(self._in_order))
        self._first = (sizes.cumsum(0) - sizes).repeat_interleave(sizes)[self._place]
        self._size = sizes.repeat_interleave(sizes)[self._place]

    def epoch(self, epoch: int) -> list[Tensor]:
        """Return the epoch's batches, int64 ``(2, batch_size)``: the images above their partners."""
        generator = torch_generator("partners", self.seed, epoch)
        chance = torch.rand(self.size, generator=generator, dtype=torch.float64)
        # A step of 1..size-1 around the cluster never returns to the image itself.
        step = 1 + (chance * (self._size - 1)).long()
        partner = self._in_order[self._first + (self._place - self._first + step) % self._size]
        return [torch.stack([rows, partner[rows]]) for rows in super().epoch(epoch)]


class SemiSupervisedBatches:
    """Batches of labelled and unlabelled images: an epoch of the unlabelled images, the labelled ones cycled.

    Unlabelled images are drawn as in `UniformBatches`. Labelled images go round: over an epoch, their counts
    differ by at most one, and no image is twice in a batch. A set that is smaller than its part of a batch is
    taken whole. ``labelled`` and ``unlabelled`` count the images of each set, the sizes those in a batch.

    Raises:
        ValueError: a number is below 1.
    """

    def __init__(
        self, labelled: int, unlabelled: int, labelled_size: int, unlabelled_size: int, seed: int
    ) -> None:
        for name, number in (("labelled", labelled), ("labelled_size", labelled_size)):
            if number < 1:
                raise ValueError(f"{name} must be at least 1, got {number}")
        self.labelled = labelled
        self.labelled_size = min(labelled_size, labelled)
        self.uniform = UniformBatches(unlabelled, unlabelled_size, seed)

    @property
    def steps_per_epoch(self) -> int:
        """The number of batches in an epoch."""
        return self.uniform.steps_per_epoch

    def epoch(self, epoch: int) -> list[SemiSupervisedRows]:
        """Return the epoch's batches."""
        generator = torch_generator("labelled rows", self.uniform.seed, epoch)
        labelled = _cycled(torch.arange(self.labelled), self.labelled_size, self.steps_per_epoch, generator)
        return [SemiSupervisedRows(*both) for both in zip(labelled, self.uniform.epoch(epoch), strict=True)]


def _members(clusters: Tensor) -> list[Tensor]:
    """Return the rows of each cluster, ascending, for clusters int64 ``(N,)``."""
    if clusters.dtype != torch.int64 or clusters.dim() != 1:
        raise ValueError(f"clusters must be int64 (N,), got {clusters.dtype} {tuple(clusters.shape)}")
    if not len(clusters):
        raise ValueError("clusters must hold at least one image")
    rows = clusters.cpu()
    _, counts = torch.unique(rows, return_counts=True)
    return list(torch.split(rows.argsort(stable=True), counts.tolist()))


def _cycled(rows: Tensor, size: int, steps: int, generator: torch.Generator) -> list[Tensor]:
    """Return ``steps`` parts of ``size`` rows; all rows have their turn before any row comes again.

    No part has a row twice, unless there are fewer rows than its size.
    """
    parts: list[Tensor] = []
    waiting = rows[:0]
    for _ in range(steps):
        part = waiting[:size]
        waiting = waiting[size:]
        while len(part) < size:
            fresh = rows[torch.randperm(len(rows), generator=generator)]
            # Rows that the part has already go to the end, for the next parts.
            seen = torch.isin(fresh, part)
            fresh = torch.cat([fresh[~seen], fresh[seen]])
            missing = size - len(part)
            part, waiting = torch.cat([part, fresh[:missing]]), fresh[missing:]
        parts.append(part)
    return parts
