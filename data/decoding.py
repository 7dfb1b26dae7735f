"""Decode images to pixels. Resident and streamed images use the same code, so they agree.

torchvision decodes JPEG: it is several times faster than Pillow on small images and releases the
interpreter's lock (a later torchvision without a decoder: Pillow). Pillow decodes everything else:
torchvision's PNG reader crashes the process on a file with a wrong checksum.

Shapes: C channels (1 or 3), H x W stored pixels, S the requested size.
"""

import io
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

_JPEG = b"\xff\xd8\xff"
# Errors of Pillow's readers besides OSError; torchvision raises RuntimeError.
_DECODING_ERRORS = (OSError, RuntimeError, SyntaxError, ValueError, EOFError, LookupError, struct.error)
_GREY_MODES = ("1", "L", "LA", "I", "I;16", "F")


class CorruptImage(ValueError):
    """An image cannot be decoded; the message gives the reason, the caller adds the name of the image."""


@dataclass(frozen=True)
class ImageHeader:
    """The header of an image, known before decoding: height and width in pixels, channels."""

    height: int
    width: int
    channels: int


def read_header(encoded: bytes) -> ImageHeader:
    """Return the header of an encoded image; a greyscale image has 1 channel, any other counts as 3.

    Raises:
        CorruptImage: it is not an image.
    """
    try:
        with _opened(encoded) as image:
            return ImageHeader(image.height, image.width, 1 if image.mode in _GREY_MODES else 3)
    except _DECODING_ERRORS as error:
        raise CorruptImage(_reason(error, encoded)) from error


def decode_image(encoded: bytes, channels: int) -> Tensor:
    """Decode an image to uint8 ``(C, H, W)``; colours and greys are converted to ``channels`` (3 or 1).

    Raises:
        CorruptImage: it is truncated, damaged or not an image.
    """
    try:
        decode_jpeg = _torchvision_decoder() if encoded.startswith(_JPEG) else None
        return (decode_jpeg or _decode)(encoded, channels)
    except _DECODING_ERRORS as error:
        raise CorruptImage(_reason(error, encoded)) from error


def fit_square(image: Tensor, size: int) -> Tensor:
    """Resize the shorter side to ``size`` (bilinear, antialiased) and cut out the centre: ``(C, S, S)``."""
    from torchvision.transforms.v2 import functional

    height, width = image.shape[1:]
    scale = size / min(height, width)
    shape = [max(size, round(height * scale)), max(size, round(width * scale))]
    resized = image if shape == [height, width] else functional.resize(image, shape, antialias=True)
    fitted: Tensor = functional.center_crop(resized, [size, size])
    return fitted


@cache
def _torchvision_decoder() -> Callable[[bytes, int], Tensor] | None:
    try:
        from torchvision.io import ImageReadMode, decode_jpeg
    except ImportError:
        return None

    def decode(encoded: bytes, channels: int) -> Tensor:
        mode = ImageReadMode.GRAY if channels == 1 else ImageReadMode.RGB
        # A copy, because torch needs a writable buffer.
        image: Tensor = decode_jpeg(torch.frombuffer(bytearray(encoded), dtype=torch.uint8), mode=mode)
        return image

    return decode


def _decode(encoded: bytes, channels: int) -> Tensor:
    import numpy as np

    with _opened(encoded) as image:
        if image.mode.startswith("I;16"):
            # Pillow would cut off levels above 255 instead of scaling 16 bits to 8.
            grey = torch.from_numpy(np.asarray(image).astype(np.int32) // 257).to(torch.uint8)
            return grey.expand(channels, -1, -1).clone()
        pixels = torch.from_numpy(np.array(image.convert("L" if channels == 1 else "RGB")))
    return pixels.unsqueeze(0) if channels == 1 else pixels.permute(2, 0, 1)


def _opened(encoded: bytes) -> "Image":
    from PIL import Image

    try:
        return Image.open(io.BytesIO(encoded))
    except Image.DecompressionBombError as error:
        # Usually a damaged header; a ValueError like the others.
        raise ValueError(str(error)) from error


def _reason(error: Exception, encoded: bytes) -> str:
    if not encoded:
        return "it has 0 bytes"
    # torchvision's message begins with a source file; Pillow's contains the address of an object.
    said = (str(error) or type(error).__name__).splitlines()[0].split(" <_io.")[0]
    said = re.sub(r"^decode_\w+, \S+, ", "", said)
    return f"{len(encoded):,} bytes, {said}"
