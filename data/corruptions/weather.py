"""Snow, frost, fog and brightness, after ImageNet-C's formulas for small images."""

import numpy as np

from contrasweep.data.corruptions.corruption import Corruption, Pixels
from contrasweep.data.corruptions.filters import Array, luma, motion_blur, to_hsv, to_rgb, zoomed
from contrasweep.data.corruptions.frost_pictures import frost_pictures

SNOW = (
    (0.1, 0.2, 1, 0.6, 8, 3, 0.95),
    (0.1, 0.2, 1, 0.5, 10, 4, 0.9),
    (0.15, 0.3, 1.75, 0.55, 10, 4, 0.9),
    (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85),
    (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
)
"""By level: mean and deviation of the flakes, their size, the smallest that is seen, radius and deviation of
their motion, and the share of the image that stays."""

FROST = ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45))
"""By level: the weights of the image and of the frost."""

FOG = ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75))
"""By level: the density of the fog, and how fast its detail falls."""

BRIGHTNESS = (0.05, 0.1, 0.15, 0.2, 0.3)
"""By level: what is added to the value of a colour."""


def _snow(pixels: Pixels, level: int, flakes: Array, turn: Array) -> Array:
    """Lay snowflakes and their mirror image over a whitened image; `turn` in 0..1 is their direction."""
    mean, deviation, size, smallest, radius, sigma, kept = SNOW[level]
    images = pixels.astype(np.float32) / np.float32(255)
    layer = zoomed(mean + deviation * flakes, size)
    layer = np.floor(np.where(layer < smallest, 0.0, layer).clip(0.0, 1.0) * 255)
    layer = motion_blur(layer, int(radius), sigma, -135 + 90 * turn[:, 0])[..., None] / 255
    white = np.maximum(images, luma(images) * np.float32(1.5) + np.float32(0.5))
    images = np.float32(kept) * images + np.float32(1 - kept) * white
    levels: Array = (images + layer + np.rot90(layer, 2, axes=(1, 2))).clip(0, 1) * 255
    return levels


def _draw_snow(generator: np.random.Generator, size: int) -> tuple[Array, ...]:
    return generator.standard_normal((size, size)), generator.random(1)


def _frost(pixels: Pixels, level: int, place: Array) -> Array:
    """Blend a part of a picture of frost; `place` in 0..1 says of which picture, its row and its column."""
    image, frost = FROST[level]
    size = pixels.shape[1]
    pictures = frost_pictures()
    crops = np.empty(pixels.shape)
    for row, (which, top, left) in enumerate(place):
        picture = pictures[int(which * len(pictures))]
        y, x = (int(at * (side - size)) for at, side in zip((top, left), picture.shape, strict=False))
        crops[row] = picture[y : y + size, x : x + size]
    return (image * pixels.astype(float) + frost * crops).clip(0, 255)


def _fog(pixels: Pixels, level: int, roughness: Array) -> Array:
    """Add a cloud, and scale the brightest pixel back to what it was."""
    density, decay = FOG[level]
    images = pixels / 255.0
    brightest = images.max(axis=(1, 2, 3), keepdims=True)
    images = images + density * plasma(roughness, pixels.shape[1], decay)[..., None]
    levels: Array = (images * brightest / (brightest + density)).clip(0, 1) * 255
    return levels


def plasma(roughness: Array, size: int, decay: float) -> Array:
    """Return clouds ``(N, S, S)`` in 0..1 by the diamond-square algorithm, whose edges fit together.

    Args:
        roughness: uniform in -1..1, ``(N, S * S - 1)``.
        size: S, a power of two.
        decay: what the displacement is divided by at each finer step.
    """
    height = np.zeros((len(roughness), size, size))
    step, wibble, used = size, 100.0, 0
    while step >= 2:
        half, cells = step // 2, (size // step) ** 2
        shape = (len(roughness), size // step, size // step)
        noise = wibble**2 * roughness[:, used : used + 3 * cells]
        centre_noise, above_noise, left_noise = (part.reshape(shape) for part in np.split(noise, 3, axis=1))
        corners = height[:, ::step, ::step]
        pairs = corners + np.roll(corners, -1, axis=1)
        centres = (pairs + np.roll(pairs, -1, axis=2)) / 4 + centre_noise
        above = centres + np.roll(centres, 1, axis=1) + corners + np.roll(corners, -1, axis=2)
        left = centres + np.roll(centres, 1, axis=2) + corners + np.roll(corners, -1, axis=1)
        height[:, half::step, half::step] = centres
        height[:, ::step, half::step] = above / 4 + above_noise
        height[:, half::step, ::step] = left / 4 + left_noise
        used += 3 * cells
        step, wibble = half, wibble / decay
    height -= height.min(axis=(1, 2), keepdims=True)
    clouds: Array = height / height.max(axis=(1, 2), keepdims=True)
    return clouds


def _brightness(pixels: Pixels, level: int) -> Array:
    hsv = to_hsv(pixels / 255.0)
    hsv[..., 2] = (hsv[..., 2] + BRIGHTNESS[level]).clip(0, 1)
    return to_rgb(hsv).clip(0, 1) * 255


WEATHER = (
    Corruption("Snow", _snow, _draw_snow),
    Corruption("Frost", _frost, lambda generator, size: (generator.random(3),)),
    Corruption("Fog", _fog, lambda generator, size: (generator.uniform(-1, 1, size * size - 1),)),
    Corruption("Brightness", _brightness),
)
