"""Colour jitter, greyscale, blur and normalisation of a batch of views, each with its own parameters.

The formulas are those of torchvision for float images, so equal parameters give equal views. Drawn
parameters stay on the CPU; only the views need to be on a device.

Shapes: B views, n views that change, C channels (1 or 3), S the height and width.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

OPERATIONS = ("brightness", "contrast", "saturation", "hue")

# ITU-R 601 luma, as torchvision rounds it.
_RED, _GREEN, _BLUE = 0.2989, 0.587, 0.114
# The places of red, green and blue on the hexagon of hues.
_CORNERS = (-2.0, 0.0, 2.0)
_TINY = 1e-20


def jitter(views: Tensor, chosen: Tensor, factors: Tensor, order: Tensor, names: Sequence[str]) -> Tensor:
    """Change the colours of some views; each view has its own factors and its own order of operations.

    Each of the four turns groups the views by their operation in this turn, so that an operation runs on all
    its views at once.

    Args:
        views: float32 ``(B, C, S, S)`` in 0..1, on any device; 1 channel has no saturation or hue.
        chosen: bool ``(B,)``, the views that change.
        factors: float32 ``(B, 4)``, columns as in `OPERATIONS`: multipliers >= 0 (1 changes nothing), and the
            shift of the hue in turns, -0.5..0.5.
        order: int64 ``(B, 4)``, the operation (index into `OPERATIONS`) of each turn.
        names: the operations that are on; the others are skipped.
    """
    active = [index for index, name in enumerate(OPERATIONS) if name in names]
    if views.shape[1] == 1:
        active = [index for index in active if OPERATIONS[index] in ("brightness", "contrast")]
    if not active:
        return views
    # A fifth group holds the views that keep their colours.
    order = order.where(chosen[:, None], len(OPERATIONS))
    rows = torch.arange(len(views))
    for turn in range(len(OPERATIONS)):
        by = order[:, turn].argsort(stable=True)
        order, factors, rows = order[by], factors[by], rows[by]
        views = views.index_select(0, by.to(views.device))
        sizes = torch.bincount(order[:, turn], minlength=len(OPERATIONS) + 1).tolist()
        values = factors.to(views.device)[:, :, None, None, None]
        groups = zip(torch.split(views, sizes), torch.split(values, sizes), strict=True)
        for index, (group, value) in enumerate(groups):
            if index in active and len(group):
                _ADJUST[index](group, value[:, index])
    return views.index_select(0, rows.argsort().to(views.device))


def grey_(views: Tensor, rows: Tensor) -> None:
    """Turn the ``rows``, int64 ``(n,)``, of the views to grey in place: every channel becomes the luma.

    A single channel does not change.
    """
    if views.shape[1] == 3 and len(rows):
        here = rows.to(views.device)
        views.index_copy_(0, here, luma_of(views.index_select(0, here)).expand(-1, 3, -1, -1))


def blur_(views: Tensor, rows: Tensor, sigma: Tensor) -> None:
    """Blur some views in place by a Gaussian, with reflected borders.

    The kernel spans ``2 * (S // 20) + 1`` pixels, a tenth of the view (Chen et al. 2020, SimCLR, appendix A).
    ``rows``, int64 ``(n,)``, are the views to change, ``sigma`` their standard deviations in pixels, above 0.
    """
    if not len(rows):
        return
    here = rows.to(views.device)
    weights = _blur_weights(sigma.to(views.device), views.shape[2])
    blurred = views.index_select(0, here)
    count, channels, size, _ = blurred.shape
    wide = torch.bmm(blurred.view(count, channels * size, size), weights.transpose(1, 2))
    tall = torch.bmm(weights.repeat_interleave(channels, dim=0), wide.view(count * channels, size, size))
    views.index_copy_(0, here, tall.view_as(blurred))


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
    shift, scale = views.new_tensor([list(mean), list(std)])[:, :, None, None]
    return views.sub(shift).div_(scale)


def _adjust_brightness_(views: Tensor, factor: Tensor) -> None:
    views.mul_(factor).clamp_(0.0, 1.0)


def _adjust_contrast_(views: Tensor, factor: Tensor) -> None:
    """Blend each view with the mean of its luma."""
    mean = views.mean(dim=(2, 3), keepdim=True)
    if views.shape[1] == 3:
        mean = luma_of(mean)
    views.mul_(factor).add_((1.0 - factor).mul_(mean)).clamp_(0.0, 1.0)


def _adjust_saturation_(views: Tensor, factor: Tensor) -> None:
    """Blend each view with its luma."""
    luma = luma_of(views).mul_(1.0 - factor)
    views.mul_(factor).add_(luma).clamp_(0.0, 1.0)


def _adjust_hue_(views: Tensor, shift: Tensor) -> None:
    """Turn the hue by `shift` at constant value (largest channel) and chroma (largest minus smallest).

    Hues lie on a hexagon of six unit sides, green at 0, blue at 2, red at -2. A channel is the smallest one
    plus the chroma times ``min(max(2 - distance, 0), 1)``, with the distance to its own corner. The hue is
    ``(largest - 2 smallest + red + blue - green) / chroma``, negative where red exceeds blue. This form does
    not need to know which channel is the largest.
    """
    red, green, blue = views.unbind(1)
    largest = torch.maximum(red, green)
    torch.maximum(largest, blue, out=largest)
    smallest = torch.minimum(red, green)
    torch.minimum(smallest, blue, out=smallest)
    hue = (largest + red).add_(blue).sub_(green).sub_(smallest, alpha=2.0)
    chroma = largest.sub_(smallest)
    # A grey pixel has no hue. Any finite value works, because its chroma of 0 removes it below.
    hue.div_(chroma + _TINY).copysign_(blue - red)
    # The difference to each channel's corner, in -6..6, becomes 3 - distance.
    turn = torch.remainder(6.0 * shift.view(-1, 1) - shift.new_tensor(_CORNERS) + 3.0, 6.0).sub_(3.0)
    closeness = (hue[:, None] + turn[:, :, None, None]).abs_().sub_(3.0).abs_().clamp_(1.0, 2.0)
    torch.addcmul(smallest.sub_(chroma)[:, None], closeness, chroma[:, None], out=views)


_ADJUST: tuple[Callable[[Tensor, Tensor], None], ...] = (
    _adjust_brightness_,
    _adjust_contrast_,
    _adjust_saturation_,
    _adjust_hue_,
)


def luma_of(views: Tensor) -> Tensor:
    """Return the luma ``(n, 1, S, S)`` of colour views ``(n, 3, S, S)``; no gradient flows."""
    red, green, blue = torch.split(views, 1, dim=1)
    return (red * _RED).add_(green, alpha=_GREEN).add_(blue, alpha=_BLUE)


def _blur_weights(sigma: Tensor, size: int) -> Tensor:
    """Return the matrices ``(n, size, size)`` that blur along one axis."""
    radius = size // 20
    offset = torch.arange(-radius, radius + 1, device=sigma.device)
    kernel = torch.softmax(-0.5 * (offset / sigma[:, None]).square(), dim=1)
    pixel = (torch.arange(size, device=sigma.device)[:, None] + offset).abs()
    reflected = (size - 1) - (size - 1 - pixel).abs()
    weights = kernel.new_zeros(len(sigma), size, size)
    index = reflected.expand(len(sigma), -1, -1)
    return weights.scatter_add_(2, index, kernel[:, None].expand_as(index))
