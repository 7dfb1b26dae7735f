"""The numbers of a table on several samples of its runs: all seeds, without each, rows shuffled.

Shapes: n seeds, R arrangements of the rows, B = R (n + 1) samples.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from contrasweep.tuning.statistics import Floats
from contrasweep.tuning.tables.evaluate import CheckOutcome, Numbers
from contrasweep.tuning.tables.evidence import leave_one_out
from contrasweep.tuning.tables.functions import Curve
from contrasweep.tuning.tables.results import Key
from contrasweep.tuning.tables.runs import Place, Runs

SHUFFLES = 200
"""How often the rows are shuffled within each seed, to see how often a claim holds by chance."""


class Samples:
    """Samples of the runs of one table: all seeds and without each, first as they are, then shuffled.

    A shuffle exchanges the rows that the claim reads within each seed, in all columns alike.
    """

    def __init__(self, seeds: Sequence[int], table: str, plain: CheckOutcome, claim: str) -> None:
        self.seeds = seeds
        self.rows = rows = tuple(dict.fromkeys(row for name, (row, _) in plain.read if name == table))
        # Seeded by words without `contrasweep.data`, whose import of torch takes longer than the verdicts.
        generator = np.random.default_rng(list(f"{table}: {claim}".encode()))
        ranks = generator.random((SHUFFLES + 1, len(rows), len(seeds)))
        ranks[0] = np.arange(len(rows))[:, None]
        self._ranks = {row: ranks[:, place] for place, row in enumerate(rows)}
        self._weights = leave_one_out(len(seeds))

    def means_and_deviations(self, column: Mapping[str, Sequence[float]]) -> dict[str, tuple[Any, Any]]:
        """Return means and sample deviations `((SHUFFLES + 1) (n + 1),)` by row, from values by seed."""
        # In the order of the ranks, so that the first arrangement is the runs as they are.
        rows = [row for row in self._ranks if row in column]
        order = np.stack([self._ranks[row] for row in rows], axis=1).argsort(axis=1)
        values = np.take_along_axis(np.array([column[row] for row in rows])[None], order, axis=1)
        means = values @ self._weights.T
        # From the mean, because squares of large values would leave little of a small spread.
        rest = values - values.mean(axis=-1, keepdims=True)
        squares = rest**2 @ self._weights.T - (rest @ self._weights.T) ** 2
        counts = (self._weights > 0).sum(axis=1)
        deviations = np.sqrt(np.maximum(squares, 0) * counts / np.maximum(counts - 1, 1))
        return {
            row: (means[:, place].ravel(), deviations[:, place].ravel()) for place, row in enumerate(rows)
        }


def numbers(runs: Runs, samples: Samples | None = None) -> Numbers:
    """Return the means and deviations of a table's cells: on `samples`, else once over all their runs."""
    means: dict[Key, Floats] = {}
    stds: dict[Key, Floats] = {}
    drawn: dict[str, dict[str, list[float]]] = {}
    for (row, column), own in runs.values.items():
        # A cell that lacks one of the seeds is not read, but curves keep its place and `[:]` its column.
        if samples is not None and row in samples.rows and own.keys() >= set(samples.seeds):
            drawn.setdefault(column, {})[row] = [own[seed].value for seed in samples.seeds]
            continue
        values = np.array([run.value for run in own.values()])
        means[row, column] = values.mean(keepdims=True)
        if None not in own:
            stds[row, column] = values.std(ddof=1, keepdims=True) if len(own) > 1 else np.array([np.nan])
    if samples is not None:
        for column, rows in drawn.items():
            for row, (mean, std) in samples.means_and_deviations(rows).items():
                means[row, column], stds[row, column] = mean, std
    curves = {name: _curve(name, places, runs, means) for name, places in runs.curves.items()}
    return Numbers(runs.rows, runs.columns, means, stds, curves, runs.margins)


def _curve(name: str, places: Sequence[Place], runs: Runs, means: Mapping[Key, Floats]) -> Curve:
    """Return a curve over the places that have a mean; `missing` are those that were not measured at all."""
    missing = tuple(place.key for place in places if place.key not in runs.values)
    there = [place for place in places if place.key in means]
    if not there:
        return Curve(name, (), np.empty((1, 0)), missing=missing)
    # Numbers rise; words stay in the order of the table.
    there.sort(key=lambda p: (0.0 if isinstance(p.x, str) else p.x, -np.inf if p.y is None else p.y))
    keys = tuple(place.key for place in there)
    heights = np.stack(np.broadcast_arrays(*(means[key] for key in keys)), axis=1)
    ys = tuple(place.y for place in there if place.y is not None)
    curve = Curve(name, tuple(place.x for place in there), heights, keys=keys, missing=missing)
    margins = [runs.margins[column] for _, column in keys if column in runs.margins]
    return replace(curve, ys=ys if len(ys) == len(there) else None, margin=max(margins, default=None))
