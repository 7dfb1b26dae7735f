"""Densities on a grid from counts, as PED-ANOVA takes them: Parzen windows by Scott's rule, and a prior."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from contrasweep.tuning.sensitivity.axes import Axis, Floats

STEPS = 50
"""Cells of a continuous axis."""

_SMALLEST_WIDTH = 0.5 / 1.64
_PRIOR = 1.0


def cells(axis: Axis, codes: Floats) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], int]:
    """Return the cell of each code, and how many cells there are."""
    if axis.is_category:
        return codes.astype(np.int64), len(axis.choices)
    if axis.integer and len(axis.grid) == axis.high - axis.low + 1:
        return np.abs(codes[:, None] - axis.grid).argmin(axis=1), len(axis.grid)
    # A value half-way between two cells belongs to the lower.
    return np.clip(np.ceil(codes * (STEPS - 1) - 0.5), 0, STEPS - 1).astype(np.int64), STEPS


def density(counts: Floats, width: float | None) -> Floats:
    """Return the probability of each cell.

    Args:
        counts: (weighted) trials in each; not all 0.
        width: of the windows, in cells; None for categories, which have no neighbours.
    """
    total = float(counts.sum())
    return _of_categories(counts, total) if width is None else _of_numbers(counts, total, width)


def bandwidth(counts: Floats) -> float:
    """Return the width of the windows over cells in a row: Scott's rule, by the smaller of the standard
    deviation and the quartiles' distance, and never so narrow that a window leaves its own cell.
    """
    cell, weight, total = np.flatnonzero(counts).astype(float), counts[counts > 0], float(counts.sum())
    mean = cell @ weight / total
    deviation = np.sqrt((cell - mean) ** 2 @ weight / max(1.0, total - 1))
    cumulated = np.cumsum(weight)
    lower = np.searchsorted(cumulated, total // 4, side="left")
    upper = min(len(cell) - 1, int(np.searchsorted(cumulated, total * 3 // 4, side="right")))
    scott = 1.059 * min((cell[upper] - cell[lower]) / 1.34, deviation) * total**-0.2
    return max(float(scott), _SMALLEST_WIDTH)


def _of_categories(counts: Floats, total: float) -> Floats:
    # Optuna 5.0 smooths by the number of *distinct* values seen, not of trials: of three categories, one that
    # decides everything then gets a tenth of its share.
    return np.asarray((counts + _PRIOR / len(counts)) / (total + _PRIOR))


def _of_numbers(counts: Floats, total: float, width: float) -> Floats:
    cell = np.flatnonzero(counts).astype(float)
    weight = counts[counts > 0]
    centre = np.append(cell, (len(counts) - 1) / 2)
    widths = np.append(np.full(len(cell), width), len(counts))
    edges = np.arange(len(counts) + 1) - 0.5
    below = ndtr((edges[:, None] - centre) / widths)
    mass = np.diff(below, axis=0) / (below[-1] - below[0])
    return np.asarray(mass @ np.append(weight, _PRIOR) / (total + _PRIOR))
