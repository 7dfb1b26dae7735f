"""Configurations to ask the surrogate about: the defaults, and what one change makes of a configuration."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from contrasweep.search_spaces import Scalar
from contrasweep.tuning.sensitivity.axes import Axis, Floats


def complete_row(axes: tuple[Axis, ...], held: Mapping[str, float]) -> Floats:
    """Return a configuration in units, (axes,): `held`, else the default, NaN where inactive."""
    by_name = {axis.name: axis for axis in axes}
    found: dict[str, float] = {}
    for axis in axes:
        parents = {parent: found.get(parent, np.nan) for parent in axis.when}
        active = all(
            np.isfinite(parents[parent]) and by_name[parent].value(parents[parent]) in allowed
            for parent, allowed in axis.when.items()
        )
        given = held.get(axis.name, np.nan)
        default = float(axis.codes([axis.default])[0])
        found[axis.name] = (given if np.isfinite(given) else default) if active else np.nan
    return np.array([found[axis.name] for axis in axes])


def default_row(axes: tuple[Axis, ...]) -> Floats:
    """Return the defaults in units, (axes,)."""
    return complete_row(axes, {})


def changes(axes: tuple[Axis, ...], row: Floats, index: int) -> Floats:
    """Return `row` with one axis set to each entry of its grid, (grid, axes).

    Parameters that a change of their parent makes active take their defaults.
    """
    held = {axis.name: float(code) for axis, code in zip(axes, row, strict=True)}
    name = axes[index].name
    return np.stack([complete_row(axes, {**held, name: float(code)}) for code in axes[index].grid])


def values_of(axes: tuple[Axis, ...], row: Floats) -> dict[str, Scalar]:
    """Return a configuration's active values, in their own scales."""
    return {a.name: a.value(float(code)) for a, code in zip(axes, row, strict=True) if np.isfinite(code)}
