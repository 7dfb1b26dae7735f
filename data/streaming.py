"""Images that stay on disk and are decoded batch by batch, ahead of the training that needs them.

A split that fits is a uint8 tensor on the device; one that does not is a `StreamedImages`, which stands in
the tensor's place: the same shape, indexing and pixels. `image_batches` draws from either.

Shapes: N images, C channels, S x S stored pixels; rows are int64 of any shape, ``(B,)`` or ``(V, B)``.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Literal, Protocol, get_args

import torch
from torch import Tensor

Placement = Literal["auto", "resident", "stream"]

RESIDENT_LIMIT = 4 * 2**30
"""Bytes of decoded pixels up to which a split is held in memory, unless it is said otherwise."""

BATCHES_AHEAD = 2
"""Batches that are decoded while another is used: bounds memory, does not change the result."""

_IMAGES_A_TASK = 16
_CHUNK = 1024


class ImageRows(Protocol):
    """Images on disk that can be read by row, from several threads at once."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of every image."""

    def __len__(self) -> int:
        """Return how many images there are."""

    def prepare_random_access(self) -> None:
        """Make ready for rows in any order; until then, rows are asked for in ascending order."""

    def decode(self, rows: Sequence[int], out: Tensor) -> None:
        """Write the images of ``rows`` into ``out``, uint8 ``(len(rows), C, S, S)`` on the CPU.

        Raises:
            DatasetDamaged: an image cannot be decoded, or has another size; the message names it.
        """


class StreamedImages:
    """Images on disk in the place of a uint8 tensor ``(N, C, S, S)`` on ``device``.

    Args:
        source: where the images come from.
        rows: int64 ``(N,)``, the rows of the source that belong to it; None for all.
        device: where batches are put.
    """

    dtype = torch.uint8

    def __init__(
        self, source: ImageRows, rows: Tensor | None = None, device: torch.device | str = "cpu"
    ) -> None:
        self.source = source
        self.rows = torch.arange(len(source)) if rows is None else rows
        # With its index, as tensors have it: "cuda" is not the device of a tensor that was put there.
        self.device = torch.empty(0, device=device).device

    @property
    def shape(self) -> torch.Size:
        """N, C, S, S."""
        return torch.Size((len(self.rows), *self.source.shape))

    @property
    def nbytes(self) -> int:
        """Bytes of all its pixels, decoded."""
        return self.shape.numel()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Return the images of ``rows``, decoded now."""
        return next(self.batches([rows]))

    def subset(self, rows: Tensor) -> "StreamedImages":
        """Return the images of ``rows``, int64 ``(M,)``, still on disk."""
        return StreamedImages(self.source, self.rows[rows.cpu()], self.device)

    def to(self, device: torch.device | str) -> "StreamedImages":
        """Return the same images with their batches put on ``device``."""
        return StreamedImages(self.source, self.rows, device)

    def resident(self) -> Tensor:
        """Return all images decoded, in memory on the device."""
        pixels = torch.empty(self.shape, dtype=torch.uint8)
        chunks = torch.split(torch.arange(len(self)), _CHUNK)
        for rows, images in zip(chunks, StreamedImages(self.source, self.rows).batches(chunks), strict=True):
            pixels[rows[0] : rows[-1] + 1] = images
        return pixels.to(self.device)

    def batches(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """Yield the images of each of ``batches``, see `image_batches`."""
        wanted = [self.rows[rows.cpu()] for rows in batches]
        if wanted and not _ascending(torch.cat([rows.flatten() for rows in wanted])):
            self.source.prepare_random_access()
        for rows, images in zip(wanted, _decoded_ahead(self.source, wanted), strict=True):
            yield images.view(*rows.shape, *self.source.shape).to(self.device)


Images = Tensor | StreamedImages


def image_batches(images: Images, batches: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield the images of each batch of rows, in order, on the images' device.

    Of a tensor they are indexed; of streamed images the next batches are decoded in threads while one is
    used. There are as many threads as torch computes with (`torch.get_num_threads`).

    Args:
        images: uint8 ``(N, C, S, S)``, in memory or on disk.
        batches: int64 row numbers of any shape.

    Yields:
        uint8, of the rows' shape and ``(C, S, S)``.

    Raises:
        DatasetDamaged: an image cannot be decoded.
    """
    if isinstance(images, StreamedImages):
        yield from images.batches(batches)
        return
    for rows in batches:
        yield images[rows.to(images.device)]


def image_chunks(images: Images, size: int) -> Iterator[Tensor]:
    """Yield all images in their order, ``size`` at a time, see `image_batches`."""
    if isinstance(images, StreamedImages):
        yield from images.batches(torch.split(torch.arange(len(images)), size))
    else:
        yield from torch.split(images, size)


def place(images: Images, placement: Placement = "auto") -> Images:
    """Return the images decoded into memory, or left on disk.

    Args:
        images: what a source gave; a tensor is resident already, and stays so.
        placement: "auto" decodes what takes up to `RESIDENT_LIMIT` bytes; the others force it.

    Raises:
        ValueError: an unknown placement.
        DatasetDamaged: an image cannot be decoded.
    """
    if placement not in get_args(Placement):
        allowed = ", ".join(get_args(Placement))
        raise ValueError(f"placement must be one of {allowed}, given {placement!r}")
    if isinstance(images, Tensor) or placement == "stream":
        return images
    if placement == "auto" and images.nbytes > RESIDENT_LIMIT:
        return images
    return images.resident()


def _ascending(rows: Tensor) -> bool:
    return bool((rows[1:] > rows[:-1]).all())


def _decoded_ahead(source: ImageRows, batches: Sequence[Tensor]) -> Iterator[Tensor]:
    """Yield each batch, flat, while the next ones are being decoded."""
    waiting: deque[tuple[Tensor, list[Future[None]]]] = deque()
    pool = ThreadPoolExecutor(max(1, torch.get_num_threads()), thread_name_prefix="decode")
    try:
        for rows in batches:
            waiting.append(_submit(pool, source, rows.flatten().tolist()))
            if len(waiting) > BATCHES_AHEAD:
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())
    finally:
        # Also where the reader stops in mid-epoch: nothing is decoded for no one.
        pool.shutdown(cancel_futures=True)


def _submit(
    pool: ThreadPoolExecutor, source: ImageRows, rows: list[int]
) -> tuple[Tensor, list[Future[None]]]:
    images = torch.empty((len(rows), *source.shape), dtype=torch.uint8)
    starts = range(0, len(rows), _IMAGES_A_TASK)
    parts = [slice(start, start + _IMAGES_A_TASK) for start in starts]
    return images, [pool.submit(source.decode, rows[part], images[part]) for part in parts]


def _finished(images: Tensor, tasks: list[Future[None]]) -> Tensor:
    for task in tasks:
        task.result()
    return images
