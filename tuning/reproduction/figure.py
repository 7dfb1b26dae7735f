"""A table's figure: our scores over a swept parameter, with the printed points on it."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from search_spaces.tables import RowRun
from tuning.analysis.cluster_curve import draw_cluster_curve
from tuning.analysis.colours import COLOURS, GREY
from tuning.analysis.figures import check_figure
from tuning.errors import InputError
from tuning.reproduction.compare import UNTRAINED, Compared, compare
from tuning.reproduction.information import information_of
from tuning.reproduction.plan import column_name
from tuning.reproduction.results import TableResults
from tuning.reproduction.text import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_table(results: TableResults, path: Path) -> None:
    """Draw a table's figure into `path`: a panel a column.

    Raises:
        InputError: the table sweeps nothing, nothing was measured, the ending is none of a figure, or
            matplotlib is not installed.
    """
    check_figure(path)
    table = results.table
    if table.run.axis is None:
        raise InputError(f"table {table.id} sweeps no parameter: there is nothing to draw")
    if table.run.information is not None:
        draw_cluster_curve(information_of(results), title(results), path)
        return
    cells: dict[str, list[Compared]] = {}
    for cell in compare(results):
        cells.setdefault(cell.column, []).append(cell)
    shown = {column: own for column, own in cells.items() if any(cell.ours for cell in own)}
    if not shown:
        raise InputError(f"nothing of table {table.id} was measured yet: there is nothing to draw")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.6 * len(shown), 3.6), layout="constrained", dpi=110)
    for axes, (column, own) in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True
    ):
        draw = _draw_lines if table.run.axis.y is None else _draw_map
        draw(axes, results, column, own)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(_wrapped(title(results)), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _draw_lines(axes: "Axes", results: TableResults, column: str, cells: Sequence[Compared]) -> None:
    axis, rows = results.table.run.axis, results.table.run.rows
    assert axis is not None, "the caller has looked"
    series = dict.fromkeys(rows[c.row].series for c in cells if c.row in rows and rows[c.row].series)
    for colour, name in zip(COLOURS, series, strict=False):
        own = _points(rows, cells, str(name))
        _errorbars(
            axes, [(x, c.ours.mean, c.ours.std) for x, c in own if c.ours], colour, "o-", f"ours, {name}"
        )
        printed = [(x, c.published, c.published_std) for x, c in own if c.published is not None]
        _errorbars(axes, printed, colour, "D:", f"printed, {name}")
    control = next((c.ours for c in cells if c.row == UNTRAINED), None)
    if control is not None:
        axes.axhline(control.mean, color="black", linewidth=1, linestyle="--", label="untrained encoder")
    if axis.log:
        axes.set_xscale("log")
    runs = results.table.run.columns[column]
    where = f" ({next(iter(_datasets(results, column)))})" if runs.stands_in is not None else ""
    axes.set(xlabel=axis.x, ylabel=column_name(results.table, column) + where)
    axes.legend(frameon=False, fontsize=7)


def _errorbars(
    axes: "Axes", points: Sequence[tuple[float, float, float | None]], colour: str, style: str, label: str
) -> None:
    if not points:
        return
    xs, heights, spreads = zip(*points, strict=True)
    axes.errorbar(
        xs,
        heights,
        yerr=[0.0 if spread is None else spread for spread in spreads],
        fmt=style,
        color=colour,
        markerfacecolor="white" if style.startswith("D") else colour,
        markersize=4,
        linewidth=1.2,
        capsize=2,
        label=label,
    )


def _draw_map(axes: "Axes", results: TableResults, column: str, cells: Sequence[Compared]) -> None:
    axis, rows = results.table.run.axis, results.table.run.rows
    assert axis is not None, "the caller has looked"
    means = {(rows[c.row].x, rows[c.row].y): c.ours.mean for c in cells if c.ours and c.row in rows}
    xs, ys = (sorted({place[side] or 0.0 for place in means}) for side in (0, 1))
    heights = np.array([[means.get((x, y), np.nan) for x in xs] for y in ys])
    image = axes.imshow(heights, origin="lower", aspect="auto", cmap="viridis")
    for (row, place), height in np.ndenumerate(heights):
        if np.isfinite(height):
            axes.text(place, row, f"{height:.3f}", ha="center", va="center", color="white", fontsize=7)
    best_y, best_x = np.unravel_index(np.nanargmax(heights), heights.shape)
    axes.plot(best_x, best_y, "*", color=COLOURS[1], markersize=12, label="best of ours")
    axes.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
    axes.set_yticks(range(len(ys)), [f"{y:g}" for y in ys])
    axes.set(xlabel=axis.x, ylabel=axis.y, title=column_name(results.table, column))
    assert axes.figure is not None, "axes of a figure"
    axes.figure.colorbar(image, ax=axes)
    axes.legend(frameon=False, fontsize=7, loc="upper right", labelcolor=GREY)


def _points(
    rows: Mapping[str, RowRun], cells: Sequence[Compared], series: str
) -> list[tuple[float, Compared]]:
    found = []
    for cell in cells:
        how = rows.get(cell.row)
        if how is not None and how.series == series and how.x is not None:
            found.append((how.x, cell))
    return sorted(found, key=lambda point: point[0])


def _datasets(results: TableResults, column: str) -> set[str]:
    return {info.dataset for (_, key), info in results.cells.items() if key == column}


def _wrapped(text: str, width: int = 90) -> str:
    return "\n".join(textwrap.wrap(text, width))
