"""A few encoded images to decode: the same work in a thread of this process and in a process of its own."""

import math
import mmap
import os
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from contrasweep.data.decoding import CorruptImage, OtherSize, decode_to
from contrasweep.data.image_files import image_bytes

DONE, FAILED = b"1", b"0"
"""The answers of a process, one byte: each further read would wait for the interpreter's lock."""


@dataclass(frozen=True)
class DecodingTask:
    """Images to decode, and how.

    Attributes:
        images: the encoded images, or the files that hold them.
        shape: channels, height and width of each decoded image.
        resize: see `decode_to`.
    """

    images: tuple[bytes | Path, ...]
    shape: tuple[int, int, int]
    resize: bool


class ImageRefused(Exception):
    """An image of a task cannot be decoded as asked: its position in the task, and the reason."""

    def __init__(self, position: int, reason: CorruptImage | OtherSize) -> None:
        super().__init__(position, reason)
        self.position, self.reason = position, reason


def perform(task: DecodingTask, out: Tensor) -> None:
    """Write the images of a task into ``out``, uint8 ``(N, C, S, S)`` on the CPU.

    Raises:
        ImageRefused: the first image that cannot be decoded as asked.
        DatasetDamaged: a file cannot be read, see `image_bytes`.
    """
    images = [image_bytes(image) if isinstance(image, Path) else image for image in task.images]
    for position, encoded in enumerate(images):
        try:
            out[position] = decode_to(encoded, task.shape, resize=task.resize)
        except (CorruptImage, OtherSize) as reason:
            raise ImageRefused(position, reason) from reason


class SharedPixels:
    """Memory that two processes share: a file that exists in memory alone, with a map of it in each."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._map: mmap.mmap | None = None

    def close(self) -> None:
        """Give the memory up in this process, once its arrays are gone too."""
        self._file.close()
        self._map = None

    def view(self, *shape: int) -> NDArray[np.uint8]:
        """Return the first bytes as an array of this shape; the file grows if it is too small.

        Both processes must ask for the same shapes, one after the other.
        """
        size = math.prod(shape)
        if self._map is None or len(self._map) < size:
            if os.fstat(self._file.fileno()).st_size < size:
                os.ftruncate(self._file.fileno(), size)
            self._map = mmap.mmap(self._file.fileno(), 0)
        return np.frombuffer(self._map, dtype=np.uint8, count=size).reshape(shape)
