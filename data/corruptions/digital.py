"""Contrast, elastic deformation, JPEG, pixelation and saturation, after ImageNet-C for small images."""

import io

import numpy as np
from PIL import Image

from contrasweep.data.corruptions.corruption import Corruption, Pixels
from contrasweep.data.corruptions.filters import Array, gaussian, sampled, to_hsv, to_rgb

CONTRAST = (0.75, 0.5, 0.4, 0.3, 0.15)
"""By level: the share of the distance to the mean colour that stays."""

ELASTIC = ((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05), (0.1, 0.03, 0.03))
"""By level, in image sizes: how far pixels move, the deviation that smooths their movement, and how far the
three points that define the affine map move."""

JPEG = (80, 65, 58, 50, 40)
"""By level: the quality."""

PIXELATE = (0.95, 0.9, 0.85, 0.75, 0.65)
"""By level: the share of the pixels in a line that are left."""

SATURATE = ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2))
"""By level: what the saturation is multiplied by, and what is added to it."""

_FRACTIONS = 32
"""OpenCV's maps of images go to this part of a pixel."""


def _contrast(pixels: Pixels, level: int) -> Array:
    images = pixels / 255.0
    means = images.mean(axis=(1, 2), keepdims=True)
    levels: Array = ((images - means) * CONTRAST[level] + means).clip(0, 1) * 255
    return levels


def _elastic(pixels: Pixels, level: int, corners: Array, right: Array, down: Array) -> Array:
    """Map an image by a random affine map, then move each pixel; the draws are uniform in -1..1."""
    size = pixels.shape[1]
    distance, sigma, spread = (size * part for part in ELASTIC[level])
    images = _affine(pixels.astype(np.float32) / np.float32(255), corners * spread)
    moves = [
        (gaussian(field, sigma, truncate=3, mode="reflect") * distance).astype(np.float32)
        for field in (down, right)
    ]
    row, column = np.mgrid[:size, :size]
    moved = sampled(images.astype(float), row + moves[0], column + moves[1], "reflect").astype(np.float32)
    return moved.clip(0, 1) * np.float32(255)


def _affine(images: Array, shift: Array) -> Array:
    """Map images by the affine map that moves three fixed points by ``shift``, ``(N, 3, 2)`` pixels."""
    size = images.shape[1]
    middle, reach = size // 2, size // 3
    fixed = np.array([(1, 1), (1, -1), (-1, -1)], dtype=np.float32) * reach + middle
    moved = fixed + shift.astype(np.float32)
    ones = np.ones((*moved.shape[:-1], 1))
    # From the new image back to the old one: places (x, y, 1) times this (N, 3, 2).
    back = np.linalg.solve(np.concatenate([moved.astype(float), ones], axis=-1), fixed.astype(float))
    pixel = np.arange(size)
    x, y, start = (part[:, None, None, :] for part in np.moveaxis(back, 1, 0))
    along = np.rint(1024 * x * pixel[None, None, :, None])
    across = np.rint(1024 * (y * pixel[None, :, None, None] + start))
    places = ((along + across).astype(int) + 512 // _FRACTIONS) // (1024 // _FRACTIONS) / _FRACTIONS
    return sampled(images, places[..., 1], places[..., 0], "mirror")


def _draw_elastic(generator: np.random.Generator, size: int) -> tuple[Array, ...]:
    corners = generator.uniform(-1, 1, (3, 2))
    right, down = (generator.uniform(-1, 1, (size, size)) for _ in range(2))
    return corners, right, down


def _jpeg(pixels: Pixels, level: int) -> Pixels:
    return np.stack([_stored_as_jpeg(image, JPEG[level]) for image in pixels])


def _stored_as_jpeg(pixels: Pixels, quality: int) -> Pixels:
    stored = io.BytesIO()
    Image.fromarray(pixels).save(stored, "JPEG", quality=quality)
    return np.asarray(Image.open(stored))


def _pixelate(pixels: Pixels, level: int) -> Pixels:
    size, box = pixels.shape[1], Image.Resampling.BOX
    fewer = int(size * PIXELATE[level])
    return np.stack(
        [
            np.asarray(Image.fromarray(image).resize((fewer, fewer), box).resize((size, size), box))
            for image in pixels
        ]
    )


def _saturate(pixels: Pixels, level: int) -> Array:
    factor, more = SATURATE[level]
    hsv = to_hsv(pixels / 255.0)
    hsv[..., 1] = (hsv[..., 1] * factor + more).clip(0, 1)
    return to_rgb(hsv).clip(0, 1) * 255


DIGITAL = (
    Corruption("Contrast", _contrast),
    Corruption("Elastic", _elastic, _draw_elastic),
    Corruption("JPEG", _jpeg),
    Corruption("Pixelate", _pixelate),
    Corruption("Saturate", _saturate),
)
