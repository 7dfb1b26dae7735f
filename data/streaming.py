"""Images that stay on disk and are decoded batch by batch, ahead of the training.

A split that fits into memory is a uint8 tensor on the device. A larger one is a `StreamedImages`, with the
shape, indexing and pixels of the tensor. `image_batches` draws from either.

Shapes: N images, C channels, S x S stored pixels; rows are int64 of any shape, ``(B,)`` or ``(V, B)``.
"""

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Literal, Protocol, get_args, runtime_checkable

import torch
from torch import Tensor

from contrasweep.data.decoding_pool import DecodingProcesses, decoding_threads, shared_processes
from contrasweep.data.machine_share import decoders, decodes_in_processes, resident_limit
from contrasweep.data.packing import host_bytes

Placement = Literal["auto", "resident", "stream"]

BATCHES_AHEAD = 2
"""The number of batches decoded ahead: it bounds memory and does not change results."""

IMAGES_A_TASK = 16
"""How many images a thread or a process decodes in one go."""

_CHUNK = 1024


class ImageRows(Protocol):
    """Images on disk, readable by row from several threads at once."""

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height and width of every image."""

    def __len__(self) -> int:
        """Return the number of images."""

    def prepare_random_access(self) -> None:
        """Prepare for rows in any order; before this call, rows are read in ascending order."""

    def decode(self, rows: Sequence[int], out: Tensor) -> None:
        """Write the images of ``rows`` into ``out``, uint8 ``(len(rows), C, S, S)`` on the CPU.

        Raises:
            DatasetDamaged: an image cannot be decoded, or has another size; the message names it.
        """


@runtime_checkable
class EncodedRows(ImageRows, Protocol):
    """Images on disk that processes can decode."""

    def decode_in(self, processes: DecodingProcesses, rows: Sequence[int], out: Tensor) -> None:
        """Write the images of ``rows`` into ``out`` as `decode` does, decoded in one of the processes."""


class StreamedImages:
    """Images on disk that replace a uint8 tensor ``(N, C, S, S)`` on ``device``.

    Args:
        source: the images on disk.
        rows: int64 ``(N,)``, the rows of the source to use; None for all.
        device: the device for batches.
    """

    dtype = torch.uint8

    def __init__(
        self, source: ImageRows, rows: Tensor | None = None, device: torch.device | str = "cpu"
    ) -> None:
        self.source = source
        self.rows = torch.arange(len(source)) if rows is None else rows
        # With its index, as in tensors: "cuda" differs from the device of a tensor on it.
        self.device = torch.empty(0, device=device).device

    @property
    def shape(self) -> torch.Size:
        """N, C, S, S."""
        return torch.Size((len(self.rows), *self.source.shape))

    @property
    def nbytes(self) -> int:
        """The number of bytes of all pixels, decoded."""
        return self.shape.numel()

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Tensor) -> Tensor:
        """Decode and return the images of ``rows``."""
        return next(self.batches([rows]))

    def subset(self, rows: Tensor) -> "StreamedImages":
        """Return the images of ``rows``, int64 ``(M,)``, still on disk."""
        return StreamedImages(self.source, self.rows[rows.cpu()], self.device)

    def to(self, device: torch.device | str) -> "StreamedImages":
        """Return the same images, with batches on ``device``."""
        return StreamedImages(self.source, self.rows, device)

    def resident(self) -> Tensor:
        """Decode all images into memory on the device, and return them."""
        # Filled there part by part: the host need not hold what the memory of a GPU does.
        pixels = torch.empty(self.shape, dtype=torch.uint8, device=self.device)
        chunks = torch.split(torch.arange(len(self)), _CHUNK)
        for rows, images in zip(chunks, self.batches(chunks), strict=True):
            pixels[rows[0] : rows[-1] + 1] = images
        return pixels

    def batches(self, batches: Iterable[Tensor]) -> Iterator[Tensor]:
        """Yield the images of each of ``batches``, see `image_batches`."""
        wanted = [self.rows[rows.cpu()] for rows in batches]
        order = torch.cat([rows.flatten() for rows in wanted]) if wanted else self.rows[:0]
        if not bool((order[1:] > order[:-1]).all()):
            self.source.prepare_random_access()
        for rows, images in zip(wanted, _decoded_ahead(self.source, wanted, self.device), strict=True):
            yield images.view(*rows.shape, *self.source.shape).to(self.device, non_blocking=True)


Images = Tensor | StreamedImages

_Decode = Callable[[Sequence[int], Tensor], None]


def image_batches(images: Images, batches: Iterable[Tensor]) -> Iterator[Tensor]:
    """Yield the images of each batch of rows, in order, on the images' device.

    A tensor is indexed. For streamed images, threads or processes decode the next batches while one is used;
    `data.machine_share` says which, and how many. Each result has the shape of its rows and then
    ``(C, S, S)``.

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
    """Return the images decoded into memory, or left on disk; a tensor is returned as it is.

    "auto" decodes images that need no more bytes than `data.machine_share.resident_limit` allows on their
    device; the other placements force a choice.

    Raises:
        ValueError: an unknown placement.
        DatasetDamaged: an image cannot be decoded.
    """
    if placement not in get_args(Placement):
        allowed = ", ".join(get_args(Placement))
        raise ValueError(f"placement must be one of {allowed}, given {placement!r}")
    if isinstance(images, Tensor) or placement == "stream":
        return images
    if placement == "auto" and images.nbytes > resident_limit(images.device):
        return images
    return images.resident()


def _decoded_ahead(source: ImageRows, batches: Sequence[Tensor], device: torch.device) -> Iterator[Tensor]:
    """Yield each batch, flat, while the next ones are being decoded."""
    waiting: deque[tuple[Tensor, list[Future[None]]]] = deque()
    decode = _decoder(source, batches, device)
    pool = decoding_threads(decoders(device))
    try:
        for rows in batches:
            images = host_bytes(device, rows.numel(), *source.shape)
            waiting.append((images, _submit(pool, decode, rows.flatten().tolist(), images)))
            if len(waiting) > BATCHES_AHEAD:
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())
    finally:
        # If the reader stops in mid-epoch, no further batch is decoded.
        pool.shutdown(cancel_futures=True)


def _decoder(source: ImageRows, batches: Sequence[Tensor], device: torch.device) -> _Decode:
    """Return what decodes rows of these batches in a thread: itself, or a process that it waits for."""
    size = sum(rows.numel() for rows in batches) * math.prod(source.shape)
    if isinstance(source, EncodedRows) and decodes_in_processes(device, size):
        return partial(source.decode_in, shared_processes())
    return source.decode


def _submit(pool: ThreadPoolExecutor, decode: _Decode, rows: list[int], images: Tensor) -> list[Future[None]]:
    starts = range(0, len(rows), IMAGES_A_TASK)
    parts = [slice(start, start + IMAGES_A_TASK) for start in starts]
    return [pool.submit(decode, rows[part], images[part]) for part in parts]


def _finished(images: Tensor, tasks: list[Future[None]]) -> Tensor:
    for task in tasks:
        task.result()
    return images
