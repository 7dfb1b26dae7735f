"""Compare our results with the printed ones: means, sample deviations, differences with intervals."""

import math
import statistics
from dataclasses import dataclass
from typing import Literal

from contrasweep.search_spaces.tables import Cell
from contrasweep.tuning.results.best import beats, not_beaten_in_words
from contrasweep.tuning.results.final_runs import UNTRAINED, same_network
from contrasweep.tuning.statistics import Summary, difference_interval, summarise, welch_interval
from contrasweep.tuning.tables.results import TableResults

Method = Literal["Welch", "ours alone", ""]


@dataclass(frozen=True)
class Difference:
    """Ours minus the printed mean, in printed units, with the ends of its 95 % interval.

    `method` is `Welch` where the deviation and the number of the printed runs are known, `ours alone` where
    the printed mean is taken as exact, and empty where a single run, or runs without any spread, give no
    interval.
    """

    mean: float
    low: float | None
    high: float | None
    method: Method

    @property
    def apart(self) -> bool:
        """Whether there is an interval, and 0 lies outside it."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True, kw_only=True)
class Compared:
    """One cell: the printed value, ours, their difference, and why something is missing.

    A control is the encoder before training, on the same seeds. Its `row` is `untrained`, and `control_of`
    names the rows that begin with it. Where rows have different networks, `row` is `untrained:KEY+KEY`.
    """

    column: str
    column_name: str
    row: str
    row_name: str
    printed: str = ""
    published: float | None = None
    published_std: float | None = None
    cited: bool = False
    ours: Summary | None
    difference: Difference | None = None
    gap: str = ""
    digits: int
    control_of: tuple[str, ...] = ()


def compare(results: TableResults) -> list[Compared]:
    """Return every cell of a table, column by column; the untrained controls end each column."""
    table = results.table
    printed = [column.key for column in table.columns]
    ours = [key for key in table.run.columns if key not in printed]
    found = [v.column for v in results.values if v.column not in (*printed, *ours)]
    rows = dict.fromkeys([*table.row_names, *(value.row for value in results.values)])
    compared: list[Compared] = []
    for column in dict.fromkeys([*printed, *ours, *found]):
        own = [_cell(results, row, column) for row in rows]
        compared += [cell for cell in own if cell is not None]
        compared += _controls(results, column)
    return compared


def not_beaten(results: TableResults) -> str:
    """Say in which columns and rows training did not beat the untrained encoder; empty if it did in all."""
    cells: dict[str, list[Compared]] = {}
    for cell in compare(results):
        # A column that a saved file has and the table no longer runs has no metric to compare by.
        if cell.ours is not None and cell.column in results.table.run.columns:
            cells.setdefault(cell.column, []).append(cell)
    where = []
    for column, own in cells.items():
        controls = {row: cell.ours.mean for cell in own if cell.ours for row in cell.control_of}
        trained = {cell.row: cell.ours.mean for cell in own if cell.ours and cell.row in controls}
        metric = f"test.{results.table.run.columns[column].metric}" if trained else ""
        worse = [row for row, mean in trained.items() if not beats(metric, mean, controls[row])]
        if worse:
            names = (results.table.row_names.get(row, row) for row in worse)
            rows = "all rows" if len(worse) == len(trained) > 1 else ", ".join(names)
            where.append(f"{own[0].column_name} ({rows})")
    return not_beaten_in_words(", ".join(where)) if where else ""


def difference(
    ours: Summary, published: float, published_std: float | None, published_runs: int | None
) -> Difference:
    """Return ours minus the printed mean; the interval is Welch's where the paper states enough for it."""
    gap = ours.mean - published
    printed = Summary(published, published_std, published_runs or 1)
    if ours.std is not None and printed.std is not None and printed.n > 1:
        low, high = welch_interval(ours, printed)
        return Difference(gap, low, high, "Welch")
    interval = difference_interval(Summary(gap, ours.std, ours.n))
    if interval is None:
        return Difference(gap, None, None, "")
    return Difference(gap, *interval, "ours alone")


def _cell(results: TableResults, row: str, column: str) -> Compared | None:
    table = results.table
    printed = table.cell(row, column) or Cell(column=column)
    ours = summarise(value.value for value in results.of(row, column).values())
    why = results.gaps.get((row, column), "")
    if printed.mean is None and ours is None and not why:
        return None
    runs = table.run.columns.get(column)
    elsewhere = runs is not None and runs.stands_in is not None
    found = None
    if printed.mean is not None and ours is not None and not elsewhere and results.compared:
        found = difference(ours, printed.mean, printed.std, table.run.published_runs)
    source = printed.source or next((r.source for r in table.rows if r.key == row), "run")
    return Compared(
        column=column,
        column_name=table.column_name(column),
        row=row,
        row_name=table.row_names.get(row, row),
        printed=printed.printed or "",
        published=printed.mean,
        published_std=printed.std,
        cited=printed.mean is not None and source == "cited",
        ours=ours,
        difference=found,
        gap=why,
        digits=_digits(results, column),
    )


def _controls(results: TableResults, column: str) -> list[Compared]:
    """Return the untrained encoders of a column: one, unless rows have different networks."""
    groups = _untrained(results, column)
    names, found = results.table.row_names, []
    for rows, scores in groups:
        key, name = UNTRAINED, "untrained encoder (control)"
        if len(groups) > 1:
            told = ", ".join(names.get(row, row) for row in rows)
            key, name = f"{key}:{'+'.join(rows)}", f"{name} of {told}"
        found.append(
            Compared(
                column=column,
                column_name=results.table.column_name(column),
                row=key,
                row_name=name,
                ours=summarise(scores.values()),
                digits=_digits(results, column),
                control_of=tuple(rows),
            )
        )
    return found


def _untrained(results: TableResults, column: str) -> list[tuple[list[str], dict[int | None, float]]]:
    """Return groups of rows with their untrained scores by seed; rows with the same network form a group."""
    groups: list[tuple[list[str], dict[int | None, float]]] = []
    for row in results.table.row_names:
        own = {s: v.untrained for s, v in results.of(row, column).items() if v.untrained is not None}
        if not own:
            continue
        for rows, scores in groups:
            if same_network(scores, own):
                rows.append(row)
                scores.update(own)
                break
        else:
            groups.append(([row], own))
    return groups


def _digits(results: TableResults, column: str) -> int:
    """Return the number of decimals: as printed, else two significant digits of our median deviation."""
    cells = (cell for row in results.table.rows for cell in row.cells if cell.column == column)
    printed = [cell.digits for cell in cells if cell.digits is not None]
    if printed:
        return max(printed)
    how = results.table.run.columns.get(column)
    if how is not None and how.scale == 100:
        return 1
    own = (results.of(row, column).values() for row in results.table.row_names)
    summaries = (summarise(run.value for run in runs) for runs in own)
    spreads = [summary.std for summary in summaries if summary is not None and summary.std]
    return 3 if not spreads else min(3, max(0, 1 - math.floor(math.log10(statistics.median(spreads)))))
