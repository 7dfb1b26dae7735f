"""The drawn parameters of random views, and the plan by which a device makes the views.

Shapes: B images or views, C channels, H x W stored pixels, K the span of the blur.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from contrasweep.data.jitter import GroupedJitter, StagedJitter


@dataclass(frozen=True, eq=False)
class ViewParameters:
    """The drawn parameters of each image; those of operations that are off are drawn too, without effect.

    Attributes:
        boxes: int64 ``(B, 4)``: top, left, height, width in stored pixels.
        flip: bool ``(B,)``: mirrored left to right.
        shift: int64 ``(B, 2)``: the offset of the view in the resized crop, in its pixels down and right.
        source_size: the stored (height, width) for which the boxes were drawn.
        jitter: bool ``(B,)``: brightness, contrast, saturation and hue change.
        factors: float32 ``(B, 4)``: multipliers of brightness, contrast and saturation (1 changes nothing),
            and the shift of the hue in turns.
        order: int64 ``(B, 4)``: the four operations (0..3, as in `factors`) in their order.
        grayscale: bool ``(B,)``: colours removed.
        blur: bool ``(B,)``: blurred.
        sigma: float32 ``(B,)``: standard deviation of the blur in pixels.
    """

    boxes: Tensor
    flip: Tensor
    shift: Tensor
    source_size: tuple[int, int]
    jitter: Tensor
    factors: Tensor
    order: Tensor
    grayscale: Tensor
    blur: Tensor
    sigma: Tensor

    def __len__(self) -> int:
        return len(self.boxes)

    def __getitem__(self, index: slice | Tensor) -> "ViewParameters":
        """Return the parameters of some images: a slice, or those in the rows ``index``, int64 ``(n,)``."""
        if isinstance(index, slice):
            return self._mapped(lambda tensor: tensor[index])
        return self._mapped(lambda tensor: tensor.index_select(0, index))

    def to(self, device: torch.device | str) -> "ViewParameters":
        """Return the same parameters on ``device``."""
        return self._mapped(lambda tensor: tensor.to(device))

    def _mapped(self, change: Callable[[Tensor], Tensor]) -> "ViewParameters":
        tensors = {name: value for name, value in vars(self).items() if isinstance(value, Tensor)}
        changed: dict[str, Any] = {name: change(tensor) for name, tensor in tensors.items()}
        return replace(self, **changed)


@dataclass(frozen=True, eq=False)
class PlannedViews:
    """How to make some views together; an operation that is off is None.

    Attributes:
        shown: the rows of the images that the views show: a slice, or int64 ``(B,)`` in any order.
        axes: their crops, see `resample.crop_axes`.
        colours: the jitter.
        grey: int64, the views without colours.
        blurred: int64 ``(n,)``, the blurred views.
        kernels: float32 ``(n, K)``, see `photometric.blur_kernels`.
        back: int64 ``(B,)``, the place of each view among those made; None where they are in order.
    """

    shown: Tensor | slice
    axes: Tensor
    colours: GroupedJitter | StagedJitter | None
    grey: Tensor | None
    blurred: Tensor | None
    kernels: Tensor | None
    back: Tensor | None


@dataclass(frozen=True, eq=False)
class ViewPlan:
    """How to make all views of a batch, part by part, of images of the stored shape ``(C, H, W)``."""

    stored: tuple[int, int, int]
    parts: tuple[PlannedViews, ...]


def cut(
    parameters: ViewParameters, first: Sequence[int], step: int, *, in_order: bool
) -> list[tuple[Tensor | slice, ViewParameters]]:
    """Return parts of at most ``step`` views, each with the rows of its images and its parameters.

    There are the parameters of one view of the images after the other, and view v shows the images from row
    ``first[v]`` on. If ``in_order``, a part is of one view, and its rows are a slice: images need no copy,
    and no bit depends on the number of views. Else views share equal parts.
    """
    count = len(parameters) // len(first)
    if in_order:
        return [
            (
                slice(start + begin, start + min(begin + step, count)),
                parameters[view * count + begin : view * count + min(begin + step, count)],
            )
            for view, start in enumerate(first)
            for begin in range(0, max(1, count), step)
        ]
    rows = torch.from_numpy(np.add.outer(first, np.arange(count)).ravel())
    if len(rows) <= step:
        return [(rows, parameters)]
    size = -(-len(rows) // -(-len(rows) // step))
    starts = range(0, len(rows), size)
    return [(rows[begin : begin + size], parameters[begin : begin + size]) for begin in starts]
