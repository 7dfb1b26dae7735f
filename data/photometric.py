"""Greyscale, blur and normalisation of a batch of views, each with its own parameters.

The formulas are those of torchvision for float images, so equal parameters give equal views. What is drawn
lies on the device of the views; nothing here makes the host wait for it.

Shapes: B views, n views that change, C channels (1 or 3), S the height and width, K the span of the blur.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from contrasweep.data.packing import constant

# ITU-R 601 luma, as torchvision rounds it.
RED, GREEN, BLUE = 0.2989, 0.587, 0.114


def grey_(views: Tensor, rows: Tensor) -> None:
    """Turn the ``rows``, int64 ``(n,)``, of the views to grey in place: every channel becomes the luma.

    A single channel does not change.
    """
    if views.shape[1] == 3 and len(rows):
        views.index_copy_(0, rows, luma_of(views.index_select(0, rows)).expand(-1, 3, -1, -1))


def luma_of(views: Tensor) -> Tensor:
    """Return the luma ``(n, 1, S, S)`` of colour views ``(n, 3, S, S)``; no gradient flows."""
    red, green, blue = torch.split(views, 1, dim=1)
    return (red * RED).add_(green, alpha=GREEN).add_(blue, alpha=BLUE)


def blur_kernels(sigma: Tensor, size: int) -> Tensor:
    """Return the Gaussian weights ``(n, K)`` of standard deviations ``(n,)`` in pixels, above 0.

    The kernel spans ``K = 2 * (S // 20) + 1`` pixels, a tenth of the view (Chen et al. 2020, SimCLR, appendix
    A).
    """
    return torch.softmax(-0.5 * (_offsets(size).to(sigma.device) / sigma[:, None]).square(), dim=1)


def blur_(views: Tensor, rows: Tensor, kernels: Tensor) -> None:
    """Blur the ``rows``, int64 ``(n,)``, of the views in place by their `blur_kernels`; borders reflect."""
    if not len(rows):
        return
    blurred = views.index_select(0, rows)
    count, channels, size, _ = blurred.shape
    taps = constant(views.device, _taps, size)
    weights = (kernels @ taps.flatten(1)).view(count, size, size)
    wide = torch.bmm(blurred.view(count, channels * size, size), weights.transpose(1, 2))
    tall = torch.bmm(weights.repeat_interleave(channels, dim=0), wide.view(count * channels, size, size))
    views.index_copy_(0, rows, tall.view_as(blurred))


def normalise(views: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Subtract the mean of each channel, in the views' unit, and divide by its standard deviation, above 0.

    Raises:
        ValueError: there is not one mean and one deviation for each channel.
    """
    if not len(mean) == len(std) == views.shape[1]:
        raise ValueError(
            f"mean and std need one number for each channel, got {len(mean)} and {len(std)} "
            f"for {views.shape[1]} channels"
        )
    shift, scale = constant(views.device, _statistics, (*mean,), (*std,), views.dtype)
    return views.sub(shift).div_(scale)


def _offsets(size: int) -> Tensor:
    radius = size // 20
    return torch.arange(-radius, radius + 1)


def _taps(size: int) -> Tensor:
    """Return ``(K, S, S)``: 1 where a kernel's weight k at output pixel i falls on pixel j, else 0.

    Two weights can fall on one pixel, as pixels beyond a border are those before it (reflected).
    """
    pixel = (torch.arange(size) + _offsets(size)[:, None]).abs()
    reflected = (size - 1) - (size - 1 - pixel).abs()
    return torch.zeros(*reflected.shape, size).scatter_(2, reflected[..., None], 1.0)


def _statistics(mean: tuple[float, ...], std: tuple[float, ...], dtype: torch.dtype) -> Tensor:
    return torch.tensor([mean, std], dtype=dtype)[:, :, None, None]
