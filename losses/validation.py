"""Checks of arguments and inputs; each raises ValueError with the value given and what is allowed."""

import difflib
import math
from collections.abc import Sequence

from torch import Tensor


def require_positive(name: str, value: float) -> float:
    """`value` if it is finite and greater than zero."""
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}")
    return float(value)


def require_at_least(name: str, value: float, low: float) -> float:
    """`value` if it is finite and not below `low`."""
    if not (math.isfinite(value) and value >= low):
        raise ValueError(f"{name} must be a finite number >= {low:g}, got {value!r}")
    return float(value)


def require_fraction(name: str, value: float) -> float:
    """`value` if it lies in [0, 1)."""
    if not 0 <= value < 1:
        raise ValueError(f"{name} must lie in [0, 1), got {value!r}")
    return float(value)


def require_choice(name: str, value: str, allowed: Sequence[str]) -> str:
    """`value` if it is one of `allowed`; the error suggests the nearest one."""
    if value in allowed:
        return value
    nearest = difflib.get_close_matches(str(value), allowed, n=1, cutoff=0.5)
    hint = f"; did you mean {nearest[0]!r}?" if nearest else ""
    raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}{hint}")


def require_views(views: Tensor, at_least: int = 1, exactly: int | None = None) -> None:
    """Views are floating point of shape (V, B, D) with enough views and at least one image."""
    if views.dim() != 3 or not views.is_floating_point() or views.shape[1] == 0 or views.shape[2] == 0:
        raise ValueError(
            "views must be a floating point tensor of shape (V views, B images, D features), none of them 0, "
            f"got {views.dtype} of shape {tuple(views.shape)}"
        )
    if exactly is not None and views.shape[0] != exactly:
        raise ValueError(
            f"this loss takes exactly {exactly} views, got {views.shape[0]} (shape {tuple(views.shape)})"
        )
    if views.shape[0] < at_least:
        raise ValueError(f"this loss needs at least {at_least} views, got shape {tuple(views.shape)}")


def require_per_image(name: str, values: Tensor, images: int) -> None:
    """One value an image: shape (B,)."""
    if values.shape != (images,):
        raise ValueError(f"{name} must have shape ({images},), one value an image, got {tuple(values.shape)}")
