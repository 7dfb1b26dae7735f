"""Encoded images as rows of pixels: image files, and the decoding that all encoded sources share."""

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from contrasweep.data.decoding import CorruptImage, ImageHeader, OtherSize, decode_to, read_header
from contrasweep.data.decoding_pool import DecodingProcesses, decoding_threads
from contrasweep.data.decoding_tasks import DecodingTask, ImageRefused, perform
from contrasweep.data.image_files import image_bytes
from contrasweep.data.images import LabelledImages
from contrasweep.data.root import DatasetDamaged
from contrasweep.data.streaming import StreamedImages
from contrasweep.names import few

log = logging.getLogger(__name__)

MOST_NAMED = 5
"""The number of damaged images that a message names."""

_PART = 64
"""The number of images that one task checks for corruption."""


class EncodedImages(Protocol):
    """Encoded images by row, readable from several threads at once."""

    def __len__(self) -> int:
        """Return the number of images."""

    def prepare_random_access(self) -> None:
        """Prepare for rows in any order; before this call, rows are read in ascending order."""

    def read(self, rows: Sequence[int]) -> list[bytes]:
        """Return the encoded images of ``rows``; a missing image is empty bytes."""

    def name(self, row: int) -> str:
        """Return the place of an image, for messages."""


class FileImages:
    """Encoded images, one file for each."""

    def __init__(self, files: Sequence[Path]) -> None:
        self._files = files

    def __len__(self) -> int:
        return len(self._files)

    def prepare_random_access(self) -> None:
        """Do nothing: files are read in any order."""

    def read(self, rows: Sequence[int]) -> list[bytes]:
        """Return the contents of the files, see `image_bytes`; missing is a broken link, or what has gone."""
        return [b"" if _is_gone(file) else image_bytes(file) for file in self.files(rows)]

    def files(self, rows: Sequence[int]) -> list[Path]:
        """Return the paths of the files."""
        return [self._files[row] for row in rows]

    def name(self, row: int) -> str:
        """Return the file's path."""
        return str(self._files[row])


def _is_gone(file: Path) -> bool:
    """Whether a file is not there; a disk that fails says nothing of that."""
    try:
        os.stat(file)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


class DecodedImages:
    """Encoded images as pixels of one shape (channels, height, width): an `ImageRows`.

    `resize` says whether images of other sizes are resized (shorter side, then centre crop) or refused.
    """

    def __init__(self, encoded: EncodedImages, shape: tuple[int, int, int], *, resize: bool) -> None:
        self._encoded = encoded
        self._resize = resize
        self.shape = shape

    def __len__(self) -> int:
        return len(self._encoded)

    def name(self, row: int) -> str:
        """Return the place of an image, such as the path of its file."""
        return self._encoded.name(row)

    def prepare_random_access(self) -> None:
        """Prepare the encoded images for rows in any order."""
        self._encoded.prepare_random_access()

    def decode(self, rows: Sequence[int], out: Tensor) -> None:
        """Write the images of ``rows`` into ``out``, see `ImageRows`."""
        self._perform(perform, rows, out)

    def decode_in(self, processes: DecodingProcesses, rows: Sequence[int], out: Tensor) -> None:
        """Write the images of ``rows`` into ``out``, see `EncodedRows`."""
        self._perform(processes.perform, rows, out)

    def sound_rows(self) -> Tensor:
        """Return the rows of the images that can be decoded; a warning counts the others.

        This decodes every image once.

        Raises:
            DatasetDamaged: no image can be decoded.
        """
        corrupt = self.corrupt_rows(range(len(self)))
        if len(corrupt) == len(self):
            first = f", the first is {self._encoded.name(0)}" if corrupt else ""
            raise DatasetDamaged(f"none of {len(self)} images can be decoded{first}")
        if corrupt:
            names = few([self._encoded.name(row) for row in corrupt], MOST_NAMED)
            log.warning("%d corrupt images of %d are left out: %s", len(corrupt), len(self), names)
        keep = torch.ones(len(self), dtype=torch.bool)
        keep[corrupt] = False
        return keep.nonzero().flatten()

    def corrupt_rows(self, rows: Sequence[int]) -> list[int]:
        """Return those of some ascending rows whose images cannot be decoded; it decodes each once.

        Raises:
            DatasetDamaged: an image has another size than all must have, or its file cannot be read.
        """
        parts = [rows[start : start + _PART] for start in range(0, len(rows), _PART)]
        with decoding_threads(max(1, torch.get_num_threads())) as pool:
            return [row for found in pool.map(self._corrupt, parts) for row in found]

    def _corrupt(self, rows: Sequence[int]) -> list[int]:
        found = []
        for row, encoded in zip(rows, self._encoded.read(rows), strict=True):
            try:
                decode_to(encoded, self.shape, resize=self._resize)
            except CorruptImage:
                found.append(row)
            except OtherSize as error:
                raise self._damaged(row, error) from error
        return found

    def _perform(self, how: Callable[[DecodingTask, Tensor], None], rows: Sequence[int], out: Tensor) -> None:
        # Who decodes also reads the files: each file that is read here would wait for the interpreter's lock.
        encoded = self._encoded
        images = encoded.files(rows) if isinstance(encoded, FileImages) else encoded.read(rows)
        try:
            how(DecodingTask(tuple(images), self.shape, self._resize), out)
        except ImageRefused as refused:
            raise self._damaged(rows[refused.position], refused.reason) from refused.reason

    def _damaged(self, row: int, reason: CorruptImage | OtherSize) -> DatasetDamaged:
        name = self._encoded.name(row)
        if isinstance(reason, CorruptImage):
            return DatasetDamaged(
                f"corrupt image: {name} cannot be decoded ({reason}). "
                "Replace it, or leave such images out: corrupt=skip of a dataset, --skip-corrupt of embed."
            )
        return DatasetDamaged(
            f"{name} is {reason.height} x {reason.width} pixels, the first image "
            f"{self.shape[1]} x {self.shape[2]}: give size=S to resize all of them to S x S"
        )


def open_encoded(
    encoded: EncodedImages,
    shape: tuple[int, int, int],
    labels: Tensor,
    condition: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    resize: bool = True,
    skip: bool = False,
) -> LabelledImages:
    """Return encoded images that are decoded on access.

    Args:
        encoded: the images.
        shape: see `DecodedImages`.
        labels, condition, bias: see `LabelledImages`, a row for each image.
        resize: see `DecodedImages`.
        skip: decode every image once, and leave out the damaged ones.
    """
    source = DecodedImages(encoded, shape, resize=resize)
    images = LabelledImages(StreamedImages(source), labels, condition, bias)
    return images.subset(source.sound_rows()) if skip else images


def header_of(encoded: bytes, place: str) -> ImageHeader:
    """Return the header of an encoded image.

    Raises:
        DatasetDamaged: it is not an image; the message gives ``place``.
    """
    try:
        return read_header(encoded)
    except CorruptImage as error:
        raise DatasetDamaged(f"corrupt image: {place} cannot be decoded ({error})") from error


def check_labels(labels: Tensor, classes: int, place: str) -> None:
    """Check that every label is 0..classes-1.

    Raises:
        DatasetDamaged: a label is out of range; the message gives it, its row and ``place``.
    """
    wrong = ((labels < 0) | (labels >= classes)).nonzero().flatten()
    if len(wrong):
        row = int(wrong[0])
        raise DatasetDamaged(
            f"label {int(labels[row])} of row {row} of {place} is out of range: "
            f"{classes} classes are numbered 0 to {classes - 1} ({len(wrong)} such labels)"
        )
