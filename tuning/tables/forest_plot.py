"""The forest plot of a table: ours minus printed with its interval, and the untrained encoder as a band.

Where nothing is compared with print (a quick form, a column that stands in), the plot shows ours minus the
untrained encoder, seed by seed, and the band is the smallest difference that counts.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from contrasweep.tuning.reports.matplotlib_figures import check_figure
from contrasweep.tuning.reports.style import COLOURS
from contrasweep.tuning.statistics import difference_interval, mean_interval, summarise
from contrasweep.tuning.tables.compare import Compared, compare
from contrasweep.tuning.tables.results import TableResults
from contrasweep.tuning.tables.runs import smallest_difference
from contrasweep.tuning.tables.scoreboard import controls_of
from contrasweep.tuning.tables.text import MINUS, title

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 3
"""The number of panels side by side."""
BAND, OUTSIDE = "#D5DAE0", COLOURS[5]
Interval = tuple[float, float]


@dataclass(frozen=True)
class ForestLine:
    """A line of a forest plot, in printed units.

    Attributes:
        name: the row.
        mean: ours minus what the plot compares it with.
        interval: its 95 % interval; None for a single run.
        band: what the interval is seen against; None where nothing is known.
    """

    name: str
    mean: float
    interval: Interval | None
    band: Interval | None

    @property
    def apart(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.interval is not None and not self.interval[0] <= 0 <= self.interval[1]


@dataclass(frozen=True)
class Panel:
    """The lines of a column; `printed` says whether they are compared with print."""

    column: str
    printed: bool
    lines: tuple[ForestLine, ...]


def forest(results: TableResults) -> list[Panel]:
    """Return the panels of a table, one for each column that ran; none for facts of the data."""
    cells = compare(results)
    controls = controls_of(cells)
    panels = []
    for column in dict.fromkeys(cell.column for cell in cells):
        own = [cell for cell in cells if cell.column == column and cell.ours and not cell.control_of]
        printed = any(cell.difference is not None for cell in own)
        if printed:
            found = [_beside_print(cell, controls.get((cell.row, column))) for cell in own]
        else:
            found = [_beside_untrained(results, cell) for cell in own]
        lines = tuple(line for line in found if line is not None)
        if lines:
            panels.append(Panel(results.table.column_name(column), printed, lines))
    return panels


def draw_forest(results: TableResults, path: Path) -> None:
    """Draw the forest plot of a table that ran into `path`, one panel for each column.

    Raises:
        InputError: the ending of `path` is not that of a figure, or matplotlib is not installed.
    """
    check_figure(path)
    from matplotlib.figure import Figure

    panels = forest(results)
    wide = 2 if len(panels) == 4 else min(MOST_PANELS, len(panels))
    rows = [panels[start : start + wide] for start in range(0, len(panels), wide)]
    heights = [1.0 + 0.24 * max(len(panel.lines) for panel in row) for row in rows]
    figure = Figure(figsize=(1.6 + 3.1 * wide, 0.7 + sum(heights)), layout="constrained", dpi=110)
    grid = figure.subplots(len(rows), wide, squeeze=False, height_ratios=heights)
    for row, line in zip(rows, grid, strict=True):
        for place, axes in enumerate(line):
            if place >= len(row):
                axes.set_axis_off()
                continue
            same = place > 0 and _names(row[place]) == _names(row[place - 1])
            _draw_panel(axes, row[place], named=not same)
    words = [title(results), _legend(panels)]
    figure.suptitle("\n".join(line for text in words for line in textwrap.wrap(text, 60 * wide)), fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _beside_print(cell: Compared, control: Compared | None) -> ForestLine | None:
    gap = cell.difference
    if gap is None or cell.published is None:
        return None
    interval = None if gap.low is None or gap.high is None else (gap.low, gap.high)
    ends = None if control is None or control.ours is None else mean_interval(control.ours)
    band = None if ends is None else (ends[0] - cell.published, ends[1] - cell.published)
    return ForestLine(cell.row_name, gap.mean, interval, band)


def _beside_untrained(results: TableResults, cell: Compared) -> ForestLine | None:
    runs = results.of(cell.row, cell.column).values()
    gaps = summarise(run.value - run.untrained for run in runs if run.untrained is not None)
    if gaps is None:
        return None
    counts = smallest_difference(results.table, cell.column)
    return ForestLine(cell.row_name, gaps.mean, difference_interval(gaps), (-counts, counts))


def _names(panel: Panel) -> list[str]:
    return [line.name for line in panel.lines]


def _legend(panels: Sequence[Panel]) -> str:
    said = []
    if any(panel.printed for panel in panels):
        said.append(f"ours {MINUS} printed, band: the untrained encoder {MINUS} printed")
    if not all(panel.printed for panel in panels):
        said.append(f"ours {MINUS} untrained encoder, band: too small to count")
    return f"95 % intervals; orange: zero lies outside. {'; '.join(said)}."


def _draw_panel(axes: "Axes", panel: Panel, *, named: bool) -> None:
    places = range(len(panel.lines))
    # Bars would end the axis where they end.
    axes.use_sticky_edges = False
    for place, line in zip(places, panel.lines, strict=True):
        if line.band is not None:
            low, high = line.band
            # The edge shows a band without width: an untrained encoder whose score is the same for all seeds.
            axes.barh(place, high - low, left=low, height=0.8, color=BAND, edgecolor=BAND, lw=1.5, zorder=1)
        colour = OUTSIDE if line.apart else COLOURS[0]
        if line.interval is not None:
            axes.plot(line.interval, (place, place), color=colour, lw=1.6, zorder=3)
        axes.plot([line.mean], [place], "D" if line.apart else "o", color=colour, markersize=4, zorder=4)
    axes.axvline(0, color="black", lw=0.8, zorder=2)
    names = [textwrap.shorten(name, 34, placeholder=" ...") for name in _names(panel)]
    axes.set_yticks(list(places), names if named else [""] * len(names), fontsize=7)
    axes.set_ylim(len(panel.lines) - 0.4, -0.6)
    axes.tick_params(axis="x", labelsize=7)
    axes.tick_params(axis="y", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    against = "printed" if panel.printed else "untrained encoder"
    axes.set_title("\n".join(textwrap.wrap(panel.column, 40)), fontsize=8)
    axes.set_xlabel(f"ours {MINUS} {against}", fontsize=7)
