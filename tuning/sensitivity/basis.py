"""Configurations as columns of a regression: a few for what each parameter alone can do to a score."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from contrasweep.tuning.search.axes import Axis
from contrasweep.tuning.statistics import Floats, Ints

STRENGTHS: Final = (0.0, 1.0, 4.0, 16.0, 64.0, 256.0)
"""The possible variances of all parameters' effects, in variances of the noise."""


@dataclass(frozen=True)
class Basis:
    """The columns of configurations; over a random search, each has mean 0 and about variance 1.

    A number has a line and a parabola over its unit, a category a column for each value. Where a parameter is
    inactive, its columns are 0.

    Attributes:
        columns: of each configuration, (trials, columns).
        owner: the index of the parameter that each column belongs to.
    """

    columns: Floats
    owner: Ints


def basis_of(axes: Sequence[Axis], codes: Floats) -> Basis:
    """Return the columns of configurations that are given in units, (trials, axes)."""
    columns: list[Floats] = []
    owner: list[int] = []
    for i, axis in enumerate(axes):
        code = codes[:, i]
        if axis.is_category:
            count = len(axis.choices)
            found = [((code == value) - 1 / count) * count**0.5 for value in range(count)]
        else:
            centred = 2 * code - 1
            found = [3**0.5 * centred, 5**0.5 * (3 * centred**2 - 1) / 2]
        columns += [np.where(np.isnan(code), 0.0, column) for column in found]
        owner += [i] * len(found)
    stacked = np.stack(columns, axis=1) if columns else np.zeros((len(codes), 0))
    return Basis(stacked, np.array(owner, dtype=np.int64))
