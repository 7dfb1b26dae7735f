"""Draw the figure of a table: our scores over a swept parameter, with the printed points."""

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contrasweep.search_spaces.tables import Run, Table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.reports.matplotlib_figures import check_figure, draw_cluster_curve
from contrasweep.tuning.reports.style import COLOURS
from contrasweep.tuning.results.columns import score_in_words
from contrasweep.tuning.tables.collect import information_of
from contrasweep.tuning.tables.compare import Compared, compare
from contrasweep.tuning.tables.results import TableResults
from contrasweep.tuning.tables.text import title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, PRINTED = "ours", "printed"
STYLES = ("--", ":", "-.")
_WIDTH, _LETTERS = 4.6, 66
"""The width of a panel in inches, and how many letters of the title fit on it."""
MOST_TICKS = 8
"""With more swept values than this, matplotlib chooses the ticks."""


def has_figure(results: TableResults) -> bool:
    """Return whether a table sweeps a parameter and something was measured at a value of it."""
    run = results.table.run
    if run.axis is None or not results.values:
        return False
    return run.information is not None or bool(_panels(results))


def draw_table(results: TableResults, path: Path) -> None:
    """Draw a table's figure into `path`, one panel for each column.

    Raises:
        InputError: the table sweeps no parameter, nothing was measured at a value of it, the ending is not
            that of a figure, or matplotlib is not installed.
    """
    check_figure(path)
    table = results.table
    if table.run.axis is None:
        raise InputError(f"table {table.id} sweeps no parameter: there is nothing to draw")
    if table.run.information is not None:
        draw_cluster_curve(information_of(results), title(results), path)
        return
    panels = _panels(results)
    if not panels:
        swept = table.run.axis.x
        raise InputError(
            f"nothing of table {table.id} was measured at a value of {swept}: there is nothing to draw"
        )
    from matplotlib.figure import Figure

    rows = _rows(results, panels)
    figure = Figure(figsize=(_WIDTH * len(panels), 4.0 * len(rows)), layout="constrained", dpi=110)
    grid = figure.subplots(len(rows), len(panels), squeeze=False)
    for shown, line in zip(rows, grid, strict=True):
        for axes, (name, cells) in zip(line, panels.items(), strict=True):
            if OURS not in shown and all(cell.published is None for cell in cells):
                axes.set_axis_off()
            elif table.run.axis.y is None:
                _draw_lines(axes, results, name, cells, shown)
            else:
                _draw_map(axes, results, name, cells)
            axes.spines[["top", "right"]].set_visible(False)
    spread = any(cell.ours and cell.ours.std is not None for cells in panels.values() for cell in cells)
    bars = " Bars: ± sample standard deviation over seeds." if spread and table.run.axis.y is None else ""
    width = min(90, _LETTERS * len(panels))
    figure.suptitle(textwrap.fill(f"{title(results)}.{bars}", width), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _rows(results: TableResults, panels: Mapping[str, Sequence[Compared]]) -> list[tuple[str, ...]]:
    """Return what each row of panels shows: ours and the print together, or the print in a row below.

    A quick form's scores are far below the printed ones; on one axis both curves would look flat.
    """
    axis = results.table.run.axis
    if results.compared or (axis is not None and axis.y is not None):
        return [(OURS, PRINTED)]
    printed = any(cell.published is not None for cells in panels.values() for cell in cells)
    return [(OURS,), (PRINTED,)] if printed else [(OURS,)]


def _panels(results: TableResults) -> dict[str, list[Compared]]:
    """Return the cells by panel: a panel for each column, or one where columns are places.

    A panel in which nothing was measured at a value of the swept parameter is left out.
    """
    columns, place = results.table.run.columns, results.table.run.place
    cells: dict[str, list[Compared]] = {}
    for cell in compare(results):
        run = columns.get(cell.column)
        if run is not None:
            panel = _panel(results, cell) if run.x is None else score_in_words(run.metric)
            cells.setdefault(panel, []).append(cell)
    return {
        name: own
        for name, own in cells.items()
        if any(cell.ours and place(cell.row, cell.column) is not None for cell in own)
    }


def _panel(results: TableResults, cell: Compared) -> str:
    """Return the name of a column, with the data it was measured on where these stand in for the paper's."""
    stands_in = results.table.run.columns[cell.column].stands_in is not None
    data = [info.dataset for (_, column), info in results.cells.items() if column == cell.column]
    return f"{cell.column_name} ({data[0]})" if stands_in and data else cell.column_name


def _draw_lines(
    axes: "Axes", results: TableResults, name: str, cells: Sequence[Compared], shown: Sequence[str]
) -> None:
    axis, run = results.table.run.axis, results.table.run
    assert axis is not None, "the caller has looked"
    series = dict.fromkeys(run.rows[c.row].series for c in cells if c.row in run.rows)
    points = {one: _points(run, cells, one) for one in series if one is not None}
    for colour, (one, own) in zip(COLOURS, points.items(), strict=False):
        if OURS in shown:
            ours = [(x, c.ours.mean, c.ours.std) for x, c in own if c.ours]
            _errorbars(axes, ours, colour, "o-", f"ours, {one}")
        if PRINTED in shown:
            printed = [(x, c.published, c.published_std) for x, c in own if c.published is not None]
            _errorbars(axes, printed, colour, "D:", f"printed, {one}")
    if OURS in shown:
        _draw_controls(axes, results.table, [cell for cell in cells if cell.control_of])
    if axis.log:
        axes.set_xscale("log")
    xs = sorted({x for own in points.values() for x, _ in own})
    if len(xs) <= MOST_TICKS:
        axes.set_xticks(xs, [f"{x:g}" for x in xs], fontsize=8)
        axes.minorticks_off()
    axes.set(xlabel=axis.x, ylabel=name if OURS in shown else f"{name}, as printed")
    # Below the axes: curves leave no corner free.
    if axes.get_legend_handles_labels()[1]:
        axes.legend(frameon=False, fontsize=7, ncols=2, loc="upper center", bbox_to_anchor=(0.5, -0.16))


def _draw_controls(axes: "Axes", table: Table, cells: Sequence[Compared]) -> None:
    """Draw the untrained encoders: a horizontal line, or a curve where each place has its own control.

    Controls of different places belong to one curve if they share a row.
    """
    curves: list[tuple[dict[str, None], list[tuple[float | None, float]]]] = []
    for cell in cells:
        if cell.ours is not None:
            rows, heights = next((one for one in curves if one[0].keys() & cell.control_of), ({}, []))
            if not rows:
                curves.append((rows, heights))
            rows.update(dict.fromkeys(cell.control_of))
            heights.append((table.run.columns[cell.column].x, cell.ours.mean))
    names = table.row_names
    for place, (rows, heights) in enumerate(curves):
        of = f" of {', '.join(names[row] for row in rows)}" if len(curves) > 1 else ""
        how: dict[str, Any] = {"color": "black", "lw": 1, "ls": STYLES[place % len(STYLES)]}
        how["label"] = f"untrained encoder{of}"
        if heights[0][0] is None:
            axes.axhline(heights[0][1], **how)
        else:
            axes.plot(*zip(*heights, strict=True), marker=".", **how)


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


def _draw_map(axes: "Axes", results: TableResults, name: str, cells: Sequence[Compared]) -> None:
    from matplotlib.patches import Rectangle

    axis, rows = results.table.run.axis, results.table.run.rows
    assert axis is not None, "the caller has looked"
    means = {(rows[c.row].x, rows[c.row].y): c.ours.mean for c in cells if c.ours and c.row in rows}
    xs, ys = (sorted({place[side] or 0.0 for place in means}) for side in (0, 1))
    heights = np.array([[means.get((x, y), np.nan) for x in xs] for y in ys])
    low, high = np.nanmin(heights), np.nanmax(heights)
    image = axes.imshow(heights, origin="lower", aspect="auto", cmap="viridis")
    for (row, place), height in np.ndenumerate(heights):
        if np.isfinite(height):
            # The upper part of viridis is too bright for white letters.
            ink = "white" if (height - low) < 0.6 * (high - low) else "black"
            axes.text(place, row, f"{height:.3f}", ha="center", va="center", color=ink, fontsize=7)
    best_y, best_x = np.unravel_index(np.nanargmax(heights), heights.shape)
    axes.add_patch(
        Rectangle((best_x - 0.5, best_y - 0.5), 1, 1, fill=False, edgecolor="black", linewidth=2.5)
    )
    axes.set_xticks(range(len(xs)), [f"{x:g}" for x in xs])
    axes.set_yticks(range(len(ys)), [f"{y:g}" for y in ys])
    axes.set(xlabel=axis.x, ylabel=axis.y, title=f"{name}, ours; the best is framed")
    assert axes.figure is not None, "axes of a figure"
    axes.figure.colorbar(image, ax=axes)


def _points(run: Run, cells: Sequence[Compared], series: str) -> list[tuple[float, Compared]]:
    own = [cell for cell in cells if cell.row in run.rows and run.rows[cell.row].series == series]
    found = [(run.place(cell.row, cell.column), cell) for cell in own]
    return sorted([(x, cell) for x, cell in found if x is not None], key=lambda point: point[0])
