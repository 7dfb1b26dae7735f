"""Crop, resize and flip a batch, each image by its own box, with two matrix products per image.

``rows @ image @ columns^T``: an interpolation matrix ``(size, H)`` holds the weights of a box's pixel rows
for each output row; another one does the same for columns; a flip reverses the matrix of the columns. If a
box is larger than the output, the weights widen (antialiasing), as in torchvision with ``antialias=True``.

Shapes: B images, C channels, H x W stored pixels, S the output size.
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.packing import constant
from contrasweep.names import unknown

Interpolation = Literal["bilinear", "bicubic"]

_CROPPED_AT_ONCE, _FEWEST_AT_ONCE = 64, 16
_FLOATS_AT_ONCE = 2**26


def whole_image(
    images: Tensor, size: int, interpolation: Interpolation = "bilinear", centre: float = 1.0
) -> Tensor:
    """Resize whole images, uint8 ``(N, C, H, W)``, for evaluation, antialiased, to S = ``size`` pixels.

    ``centre`` is the share of each side that is kept: images are resized to ``round(size / centre)`` pixels,
    and the middle is cut out, as torchvision's Resize(256) and CenterCrop(224) do (0.875).

    Returns float32 ``(N, C, S, S)`` in 0..1 on the images' device.

    Raises:
        ValueError: the images are not uint8 ``(N, C, H, W)``, the size is below 1, the share is not above 0
            and at most 1, or the interpolation is unknown.
    """
    require_images(images)
    require_interpolation(interpolation)
    if size < 1:
        raise ValueError(f"size must be at least 1 pixel, got {size}")
    if not 0.0 < centre <= 1.0:
        raise ValueError(f"centre must be above 0 and at most 1, got {centre}")
    height, width = images.shape[2:]
    resized = round(size / centre)
    if height == width == size == resized:
        return images.float() / 255.0
    rows, columns = (
        constant(images.device, _whole_side, side, resized, size, interpolation) for side in (height, width)
    )
    return _resample_alike(images, rows, columns, interpolation)


def crop_axes(boxes: Tensor, flip: Tensor, size: int, shift: Tensor | None = None) -> Tensor:
    """Return what `crop` needs to know of its boxes along both axes, on the CPU.

    Args:
        boxes: int64 ``(B, 4)``: top, left, height, width in pixels, inside the image.
        flip: bool ``(B,)``: mirrored left to right.
        size: output height and width S in pixels.
        shift: int64 ``(B, 2)``: the offset of the view in the resized box, in output pixels down and right
            (negative: up and left); outside the box it is black. None shifts nothing.

    Returns:
        float32 ``(5, 2, B)``, or ``(6, 2, B)`` with a shift, of which `_weights` describes the rows.
    """
    axes = np.empty((5 if shift is None else 6, 2, len(boxes)), np.float32)
    mirror, start, end, scale, spread = axes[:5]
    mirror[0] = 0.0
    np.multiply(flip.numpy(), np.float32(size - 1), out=mirror[1])
    # The height and width, until they become the scale.
    start[:], scale[:] = boxes.numpy().T.reshape(2, 2, -1)
    np.add(start, scale, out=end)
    np.divide(scale, size, out=scale)
    np.maximum(scale, 1.0, out=spread)
    if shift is not None:
        axes[5] = shift.numpy().T
    return torch.from_numpy(axes)


def crop(images: Tensor, axes: Tensor, size: int, interpolation: Interpolation = "bilinear") -> Tensor:
    """Crop each image to its own box, resize the crop, shift and mirror it.

    Args:
        images: uint8 ``(B, C, H, W)``, any device.
        axes: the boxes, as `crop_axes` describes them, on the same device.
        size: output height and width S in pixels.
        interpolation: bilinear or bicubic, both antialiased.

    Returns:
        float32 ``(B, C, S, S)`` in 0..1 on the images' device.
    """
    count, channels, *source = images.shape
    views = torch.empty((count, channels, size, size), device=images.device)
    step = images_at_once(images.device, images.shape[1:], size, like=_CROPPED_AT_ONCE)
    for first in range(0, count, step):
        part = slice(first, first + step)
        if source[0] == source[1]:
            # One call for both axes.
            both = _weights(axes[..., part].flatten(1), size, source[0], interpolation)
            rows, columns = both.chunk(2)
        else:
            rows, columns = (
                _weights(axes[:, axis, part], size, side, interpolation) for axis, side in enumerate(source)
            )
        _resample(images[part], rows, columns, interpolation, out=views[part])
    return views


def images_at_once(device: torch.device, shape: Sequence[int], size: int, *, like: int) -> int:
    """Return how many images ``(C, H, W)`` to make into views of so many pixels a side at a time.

    On a CPU, as many as `like` images of 3 x 32 x 32 fill, so that intermediate results stay in its cache. An
    accelerator takes as many as fill a quarter of a gigabyte: several results of this size exist at a time.
    """
    channels, height, width = shape
    floats = max(1, channels * max(size * size, height * width))
    if device.type != "cpu":
        return max(1, _FLOATS_AT_ONCE // floats)
    return max(_FEWEST_AT_ONCE, like * 3 * 32 * 32 // floats)


def require_images(images: Tensor) -> None:
    """Raise a ValueError unless the images are uint8 ``(B, C, H, W)``."""
    if images.dtype != torch.uint8 or images.dim() != 4:
        raise ValueError(f"images must be uint8 (B, C, H, W), got {images.dtype} {tuple(images.shape)}")


def require_interpolation(interpolation: str) -> None:
    """Raise a ValueError with the nearest name unless the interpolation is known."""
    if interpolation not in get_args(Interpolation):
        raise ValueError(unknown("interpolation", interpolation, get_args(Interpolation)))


def _cubic(distance: Tensor) -> Tensor:
    """Return Keys' cubic (1981, Eq. 15, a = -1/2) of distances >= 0.

    One formula covers both pieces: with ``v = max(2 - x, 0)`` and ``u = max(1 - x, 0)`` it is
    ``v^2 (v - 1) / 2 + u^2 (1 - 2u)``; the second term is the difference of the pieces.
    """
    outer = (2.0 - distance).clamp_(min=0.0)
    inner = (1.0 - distance).clamp_(min=0.0)
    far = outer.square().mul_(0.5).mul_(outer.sub_(1.0))
    return far.add_(inner.square().mul_(inner.mul_(-2.0).add_(1.0)))


def _resample_alike(images: Tensor, rows: Tensor, columns: Tensor, interpolation: Interpolation) -> Tensor:
    """Resample all images by one pair of matrices, ``(1, S, H)`` and ``(1, S, W)``."""
    count, channels, size = len(images), images.shape[1], rows.shape[1]
    views = torch.empty((count, channels, size, size), device=images.device)
    matrices = rows.expand(count, -1, -1), columns.expand(count, -1, -1)
    _resample(images, *matrices, interpolation, out=views)
    return views


def _resample(
    images: Tensor, rows: Tensor, columns: Tensor, interpolation: Interpolation, *, out: Tensor
) -> None:
    """Write ``rows @ image @ columns^T / 255`` of each image and channel to `out`, ``(B, C, S, S)``.

    Bicubic weights overshoot, so their results are clamped to 0..1.
    """
    count, channels, height, width = images.shape
    size = rows.shape[1]
    wide = torch.bmm(images.float().reshape(count, channels * height, width), columns.transpose(1, 2) / 255.0)
    # Repeating the small matrices is five times faster on a CPU than a product that broadcasts over channels.
    repeated = rows.repeat_interleave(channels, dim=0)
    planes = wide.view(count * channels, height, size)
    torch.bmm(repeated, planes, out=out.view(count * channels, size, size))
    if interpolation == "bicubic":
        out.clamp_(0.0, 1.0)


def _whole_side(side: int, resized: int, size: int, interpolation: Interpolation) -> Tensor:
    """Return the weights ``(1, size, side)`` of the middle pixels of a whole side at ``resized`` pixels."""
    axes = crop_axes(torch.tensor([[0, 0, side, side]]), torch.zeros(1, dtype=torch.bool), resized)
    first = round((resized - size) / 2)
    return _weights(axes[:, 0], resized, side, interpolation)[:, first : first + size]


def _weights(axes: Tensor, size: int, source: int, interpolation: Interpolation) -> Tensor:
    """Return the weights ``(B, size, source)`` that resize a range of pixels to ``size``.

    The weights are a triangle, or Keys' cubic, around the centre of each output pixel, cut off at the border
    of the box and normalised to sum 1. For enlarging, this is the usual rule with a repeated border.

    ``axes``, float32 ``(5, B)`` or ``(6, B)``, has for each image: ``size - 1`` if the output is mirrored,
    else 0; the first pixel of the range among ``source`` stored ones; the pixel after its last one; stored
    pixels to an output pixel; the same, at least 1; and, if the output is shifted, the output pixels to skip.
    Pixels outside the range are 0.
    """
    mirror, first, end, scale, spread, *shift = axes[..., None].unbind(0)
    output = (constant(axes.device, torch.arange, size) - mirror).abs_()
    inside = None
    if shift:
        moved = output.add_(shift[0])
        # Pixels outside are computed like the border, so that no sum is 0, and set to 0 afterwards.
        output = moved.clamp(0, size - 1)
        inside = output == moved
    centre = output.add_(0.5).mul_(scale).add_(first)
    pixel = constant(axes.device, _centres, source)
    distance = (pixel - centre[..., None]).abs_().div_(spread[..., None])
    weights = (1.0 - distance).clamp_(min=0.0) if interpolation == "bilinear" else _cubic(distance)
    # No centre lies on a border, so only those in the range are left as they are.
    weights *= (pixel.clamp(first, end) == pixel)[:, None]
    weights.div_(weights.sum(dim=-1, keepdim=True))
    return weights if inside is None else weights.mul_(inside[..., None])


def _centres(pixels: int) -> Tensor:
    return torch.arange(pixels) + 0.5
