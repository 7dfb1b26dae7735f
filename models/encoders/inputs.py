"""What an encoder takes, and a check of what it is given: of wrong images it would give features too."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

_SLACK = 0.01
"""How far beyond 0..1 values may be: a resized image can overshoot a little."""


@dataclass(frozen=True)
class ImageInput:
    """Images as an encoder was trained on them: floats `(B, channels, size, size)` in 0..1."""

    channels: int
    size: int

    def check(self, images: object) -> None:
        """Check images before the encoder sees them; the values take one pass over them.

        Raises:
            TypeError: they are no tensor.
            ValueError: their shape is another one, they are no floats, or their values are outside 0..1.
        """
        shape = (self.channels, self.size, self.size)
        given = checked_floats(images, shape, "divide by 255, as contrasweep.data.whole_image does")
        if given.is_meta or not given.numel() or torch.compiler.is_compiling():
            return
        low, high = (float(end) for end in given.aminmax())
        # NaN compares as false, so the question is whether they are inside.
        if not (low >= -_SLACK and high <= 1 + _SLACK):
            raise ValueError(
                f"the encoder takes images with values in 0..1, given values from {low:.4g} to {high:.4g}: "
                "divide 8-bit values by 255, and do not normalise by a mean (the encoder does it where it "
                "was trained so)"
            )


@dataclass(frozen=True)
class ViewsInput:
    """Several views of objects: floats `(B, *shape)` for each of the `shapes`."""

    shapes: tuple[tuple[int, ...], ...]

    def check(self, views: object) -> None:
        """Check the views of some objects.

        Raises:
            TypeError: one of them is no tensor.
            ValueError: their number, the shape of one, or its type is another one.
        """
        if isinstance(views, Tensor) or not isinstance(views, Sequence) or len(views) != len(self.shapes):
            given = f"{len(views)}" if isinstance(views, Sequence) else f"one {type(views).__name__}"
            raise ValueError(f"the encoder takes a sequence of {len(self.shapes)} views, given {given}")
        for view, shape in zip(views, self.shapes, strict=True):
            checked_floats(view, shape, "call .float()")


def checked_floats(given: object, shape: Sequence[int], mend: str) -> Tensor:
    """Return `given` if it is a tensor of floats `(B, *shape)`; `mend` says what to do with whole numbers.

    Raises:
        TypeError: it is no tensor.
        ValueError: it is a tensor of another type or shape.
    """
    wanted = f"floats (B, {', '.join(map(str, shape))})"
    if not isinstance(given, Tensor):
        raise TypeError(f"the encoder takes a tensor of {wanted}, given {type(given).__name__}")
    if not given.is_floating_point():
        raise ValueError(f"the encoder takes {wanted}, given {given.dtype}: {mend}")
    if given.ndim != len(shape) + 1 or tuple(given.shape[1:]) != tuple(shape):
        raise ValueError(f"the encoder takes {wanted}, given {tuple(given.shape)}")
    return given
