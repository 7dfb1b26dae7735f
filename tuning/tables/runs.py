"""The runs that a verdict reads, of a paper's table or of a user's own."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from contrasweep.search_spaces.tables import Table
from contrasweep.tuning.tables.results import Key, RunValue, TableResults

POINTS = 0.5
"""The smallest difference that counts where a column is printed in per cent and declares none."""


@dataclass(frozen=True)
class Place:
    """A point of a curve: its cell, its x (a number or a word), its y on a map over two axes."""

    key: Key
    x: float | str
    y: float | None = None


@dataclass(frozen=True)
class Runs:
    """The runs of a table.

    Attributes:
        name: the id by which checks of other tables call it.
        rows, columns: all keys, in their order; cells without values count as not measured.
        values: the runs of each cell, by seed; a fact of the data has the seed None.
        margins: the smallest difference that counts, by column.
        curves: the places of each curve, those without values included.
        small: whether the runs are smaller than the paper's, so that they decide no `absolute` claim.
    """

    name: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: Mapping[Key, Mapping[int | None, RunValue]]
    margins: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, tuple[Place, ...]] = field(default_factory=dict)
    small: bool = False


def by_cell(values: tuple[RunValue, ...]) -> dict[Key, dict[int | None, RunValue]]:
    """Return values by cell, then seed."""
    found: dict[Key, dict[int | None, RunValue]] = {}
    for value in values:
        found.setdefault((value.row, value.column), {})[value.seed] = value
    return found


def runs_of(results: TableResults) -> Runs:
    """Return the runs of one of the papers' tables."""
    table, values = results.table, by_cell(results.values)
    rows = tuple(row.key for row in table.rows) or tuple(dict.fromkeys(row for row, _ in values))
    columns = tuple(column.key for column in table.columns)
    margins = {column: smallest_difference(table, column) for _, column in values}
    curves = _curves(results, values)
    return Runs(table.id, rows, columns, values, margins, curves, small=results.scale == "quick")


def smallest_difference(table: Table, column: str) -> float:
    """Return the smallest difference that counts in a column, in printed units.

    It is the one that the table declares, else half a point where the column is printed in per cent, else
    half a unit of the last digit that the column prints.
    """
    run = table.run.columns.get(column)
    if run is not None and run.margin is not None:
        return run.margin
    if run is not None and run.scale == 100:
        return POINTS
    cells = (cell for row in table.rows for cell in row.cells if cell.column == column)
    return 0.5 * 10.0 ** -min((cell.digits for cell in cells if cell.digits is not None), default=15)


def _curves(
    results: TableResults, values: Mapping[Key, Mapping[int | None, RunValue]]
) -> dict[str, tuple[Place, ...]]:
    """Return a figure's curves: one for each series of its rows, or one for each column of clusterings.

    The x of a point is its row's, else its column's, else the key of the column. Planned points count too,
    except those that never run here.
    """
    table = results.table
    if table.rows:
        return {}
    found: dict[str, list[Place]] = {}
    for row, column in dict.fromkeys([*values, *results.gaps]):
        how, key = table.run.rows.get(row), (row, column)
        if how is None and key in values:
            found.setdefault(column, []).append(Place(key, float(row.removeprefix("k"))))
        elif how is not None and how.series is not None and (key in values or how.never is None):
            x = table.run.place(row, column)
            found.setdefault(how.series, []).append(Place(key, column if x is None else x, how.y))
    return {name: tuple(places) for name, places in found.items()}
