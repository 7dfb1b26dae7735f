"""Vectors of all images of a set, `CHUNK` at a time; the ranks of a run share the work.

A rank has whole chunks, the same ones as one process, so that on the same hardware the bits are the same.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from contrasweep.data import Images, RandomViews, StreamedImages, image_chunks, shard_lengths
from contrasweep.tuning.objectives import prepared
from contrasweep.tuning.objectives.prepared import image_inputs
from contrasweep.tuning.objectives.ranks import ONE, Ranks

Compute = Callable[[Tensor], Tensor]
"""Takes images `(B, C, S, S)` as floats; returns vectors `(B, D)`."""


def embed_whole(
    compute: Compute, images: Images, size: int, centre: float = 1.0, ranks: Ranks = ONE
) -> Tensor:
    """Return the vectors `(N, D)` of whole `images` (uint8 `(N, C, H, W)`), see `image_inputs`."""
    share = _Share.of(len(images), ranks)
    own = joined(compute, image_inputs(share.rows_of(images), size, centre))
    return share.gathered(own, 0)


def embed_views(
    compute: Compute,
    images: Images,
    views: RandomViews,
    generators: Sequence[torch.Generator],
    ranks: Ranks = ONE,
) -> Tensor:
    """Return the vectors `(V, N, D)` of a random view of each of the `images` by each generator.

    All ranks draw all views: the draws of a chunk depend on those of the chunks before.
    """
    share = _Share.of(len(images), ranks)
    drawn = [
        [views.draw(count, (*images.shape[2:],), generator) for generator in generators]
        for count in share.of_chunks
    ]
    chunks = zip(share.chunks_of(images), drawn[share.first : share.last], strict=True)
    parts = [
        torch.stack([compute(views.apply(chunk, one[: len(chunk)])) for one in of_chunk])
        for chunk, of_chunk in chunks
    ]
    return share.gathered(torch.cat(parts, dim=1), 1)


def joined(compute: Callable[[Any], Tensor], inputs: Iterable[Any]) -> Tensor:
    """Return `compute` of all parts of the inputs, one after the other."""
    return torch.cat([compute(part) for part in inputs])


@dataclass(frozen=True)
class _Share:
    """The part of N images that a rank embeds: the chunks from `first` to before `last`.

    `of_chunks` has the number of images in every chunk. With fewer chunks than ranks, some ranks have no
    image. They embed the first image of the set, because they must know how wide a vector is, and leave it
    out.
    """

    ranks: Ranks
    of_chunks: tuple[int, ...]
    first: int
    last: int
    lengths: tuple[int, ...]

    @staticmethod
    def of(count: int, ranks: Ranks) -> "_Share":
        chunk = prepared.CHUNK
        of_chunks = tuple(min(chunk, count - start) for start in range(0, count, chunk))
        ends = [0]
        for number in shard_lengths(len(of_chunks), ranks.world):
            ends.append(ends[-1] + number)
        lengths = tuple(sum(of_chunks[a:b]) for a, b in pairwise(ends))
        first, last = ends[ranks.rank], ends[ranks.rank + 1]
        return _Share(ranks, of_chunks, *((0, 1) if first == last else (first, last)), lengths)

    def rows_of(self, images: Images) -> Images:
        """Return the images of this rank."""
        if self.ranks.world == 1:
            return images
        start, own = sum(self.of_chunks[: self.first]), self.lengths[self.ranks.rank]
        stop = start + max(own, 1)
        if isinstance(images, StreamedImages):
            return images.subset(torch.arange(start, stop))
        return images[start:stop]

    def chunks_of(self, images: Images) -> Iterator[Tensor]:
        """Yield the images of this rank, a chunk at a time."""
        return image_chunks(self.rows_of(images), prepared.CHUNK)

    def gathered(self, own: Tensor, dim: int) -> Tensor:
        """Return the vectors of all ranks, whose rows are along `dim`, from this rank's."""
        if self.ranks.world == 1:
            return own
        rows = own.narrow(dim, 0, self.lengths[self.ranks.rank])
        return self.ranks.gather(rows, dim, self.lengths)
