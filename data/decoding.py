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
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS = 2**26
"""The most pixels of an image, as stored and as resized: 8,192 x 8,192, or as many in another shape."""

LARGEST_SIDE = 8192
"""The largest square, in pixels a side, that images are resized to."""

MOST_ELONGATED = 100
"""How many times longer than the other a side of an image may be."""

_JPEG = b"\xff\xd8\xff"
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""The markers of a JPEG file after which its height and width stand."""
# Errors of Pillow's readers besides OSError; torchvision raises RuntimeError.
_DECODING_ERRORS = (OSError, RuntimeError, SyntaxError, ValueError, EOFError, LookupError, struct.error)
_GREY_MODES = ("1", "L", "LA")
_WHOLE_NUMBERS = "I"
"""The beginning of Pillow's modes of more than 8 bits, which are all of greys: I, I;16, I;16B and others."""


class CorruptImage(ValueError):
    """An image cannot be decoded, or has too many pixels; the message gives the reason, the caller adds the
    name of the image."""


class OtherSize(ValueError):
    """An image has another size than it must have: its height and width in pixels."""

    def __init__(self, height: int, width: int) -> None:
        super().__init__(height, width)
        self.height, self.width = height, width


@dataclass(frozen=True)
class ImageHeader:
    """The header of an image, known before decoding: height and width in pixels, channels."""

    height: int
    width: int
    channels: int


def read_header(encoded: bytes) -> ImageHeader:
    """Return the header of an encoded image; a greyscale image has 1 channel, any other counts as 3.

    Raises:
        CorruptImage: it is not an image, or one of more than `MOST_PIXELS` or `MOST_ELONGATED`.
    """
    try:
        with _opened(encoded) as image:
            _check_shape(image.height, image.width)
            _check_depth(image)
            return ImageHeader(image.height, image.width, 1 if _is_grey(image.mode) else 3)
    except _DECODING_ERRORS as error:
        raise CorruptImage(_reason(error, encoded)) from error


def decode_image(encoded: bytes, channels: int) -> Tensor:
    """Decode an image to uint8 ``(C, H, W)``; colours and greys are converted to ``channels`` (3 or 1).

    Raises:
        CorruptImage: it is truncated, damaged or not an image, or one of more than `MOST_PIXELS` or
            `MOST_ELONGATED`; the header tells before it is decoded.
    """
    try:
        decode_jpeg = _torchvision_decoder() if encoded.startswith(_JPEG) else None
        if decode_jpeg is not None:
            _check_shape(*_jpeg_shape(encoded))
        return (decode_jpeg or _decode)(encoded, channels)
    except _DECODING_ERRORS as error:
        raise CorruptImage(_reason(error, encoded)) from error


def decode_to(encoded: bytes, shape: tuple[int, int, int], *, resize: bool) -> Tensor:
    """Decode an image to uint8 of a shape (channels, height, width); ``resize`` squares with `fit_square`.

    Raises:
        CorruptImage: see `decode_image` and `fit_square`.
        OtherSize: without ``resize``, the image has another size.
    """
    image = decode_image(encoded, shape[0])
    if resize:
        return fit_square(image, shape[1])
    if tuple(image.shape) != shape:
        raise OtherSize(*image.shape[1:])
    return image


def read_image(file: str | Path, size: int, channels: int = 3) -> Tensor:
    """Read an image as a dataset of files with ``size=`` holds it: uint8 ``(C, S, S)``, for `whole_image`.

    Raises:
        FileNotFoundError: there is no such file.
        CorruptImage: see `decode_to`.
    """
    return decode_to(Path(file).read_bytes(), (channels, size, size), resize=True)


def fit_square(image: Tensor, size: int) -> Tensor:
    """Resize the shorter side to ``size`` (bilinear, antialiased) and cut out the centre: ``(C, S, S)``.

    Raises:
        CorruptImage: resized, it would have more than `MOST_PIXELS`.
    """
    from torchvision.transforms.v2 import functional

    height, width = image.shape[1:]
    # Rounded down, as torchvision's Resize does.
    shape = [size * side // min(height, width) for side in (height, width)]
    if shape[0] * shape[1] > MOST_PIXELS:
        raise CorruptImage(f"resized to {shape[0]:,} x {shape[1]:,} pixels; allowed: at most {MOST_PIXELS:,}")
    resized = image if shape == [height, width] else functional.resize(image, shape, antialias=True)
    fitted: Tensor = functional.center_crop(resized, [size, size])
    return fitted


def load_decoders() -> None:
    """Import what decoding needs, so that the first image does not wait for it."""
    from PIL import Image  # noqa: F401
    from torchvision.transforms.v2 import functional  # noqa: F401

    _torchvision_decoder()


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
        _check_shape(image.height, image.width)
        _check_depth(image)
        if image.mode.startswith(_WHOLE_NUMBERS):
            # Pillow would cut off levels above 255 instead of scaling 16 bits to 8.
            grey = torch.from_numpy(np.asarray(image).astype(np.int32) // 257).to(torch.uint8)
            return grey.expand(channels, -1, -1).clone()
        # Transparency is dropped; of some palettes, Pillow would warn that it is.
        image.info.pop("transparency", None)
        pixels = torch.from_numpy(np.array(image.convert("L" if channels == 1 else "RGB")))
    return pixels.unsqueeze(0) if channels == 1 else pixels.permute(2, 0, 1)


def _opened(encoded: bytes) -> "Image":
    from PIL import Image

    try:
        return Image.open(io.BytesIO(encoded))
    except Image.DecompressionBombError as error:
        # Usually a damaged header; a ValueError like the others.
        raise ValueError(str(error)) from error


def _check_shape(height: int, width: int) -> None:
    shape = f"{height:,} x {width:,} pixels"
    if height * width > MOST_PIXELS:
        raise ValueError(f"{shape}; allowed: at most {MOST_PIXELS:,}")
    if max(height, width) > MOST_ELONGATED * min(height, width):
        raise ValueError(f"{shape}; allowed: one side up to {MOST_ELONGATED} times as long as the other")


def _check_depth(image: "Image") -> None:
    # Their range is unknown; Pillow would cut off what is not in 0..255. PNG and PGM files have 16 bits at
    # most, and Pillow opens them in the mode of 32.
    if image.mode == "F" or (image.mode == "I" and image.format not in ("PNG", "PPM")):
        raise ValueError("its pixels have 32 bits; allowed: 8 or 16, so save it as one of these")


def _is_grey(mode: str) -> bool:
    return mode in _GREY_MODES or mode.startswith(_WHOLE_NUMBERS)


def _jpeg_shape(encoded: bytes) -> tuple[int, int]:
    """Return height and width from the header of a JPEG file, several times faster than Pillow does."""
    place = 2
    while place + 9 <= len(encoded) and encoded[place] == 0xFF:
        marker = encoded[place + 1]
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack(">HH", encoded[place + 5 : place + 9])
            return height, width
        # Any number of 0xFF may stand before a marker.
        place += 1 if marker == 0xFF else 2 + int.from_bytes(encoded[place + 2 : place + 4])
    with _opened(encoded) as image:
        return image.height, image.width


def _reason(error: Exception, encoded: bytes) -> str:
    if not encoded:
        return "it has 0 bytes"
    # torchvision's message begins with a source file; Pillow's contains the address of an object.
    said = (str(error) or type(error).__name__).splitlines()[0].split(" <_io.")[0]
    said = re.sub(r"^decode_\w+, \S+, ", "", said)
    return f"{len(encoded):,} bytes, {said}"
