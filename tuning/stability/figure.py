"""The figure: claims by number of trials, coloured by the probability that they hold."""

from pathlib import Path
from typing import Any, Final

import plotly.graph_objects as go

from contrasweep.tuning.reports.matplotlib_figures import check_figure
from contrasweep.tuning.stability.analysis import Stability
from contrasweep.tuning.stability.table import percent

# Okabe and Ito's vermilion and blue, with a light grey where nothing is decided.
HOLDS: Final = "#0072B2"
CONTRARY: Final = "#D55E00"
UNDECIDED: Final = "#EDEFF1"
TITLE: Final = "Probability that a claim holds after so many trials, %"
ROW_PIXELS: Final = 34


def claims_figure(found: Stability) -> go.Figure:
    """Return a map of the claims (rows) by budget (columns) for a page."""
    chances = [100 * one.here.above.value for one in found.claims]
    figure = go.Figure(
        go.Heatmap(
            x=_columns(found),
            y=[one.claim.text for one in found.claims],
            z=chances,
            zmin=0,
            zmax=100,
            text=[[percent(value / 100) for value in row] for row in chances],
            texttemplate="%{text}",
            colorscale=[[0, CONTRARY], [0.5, UNDECIDED], [1, HOLDS]],
            hovertemplate="%{y}<br>%{x} trials: %{text} %<extra></extra>",
            showscale=False,
        )
    )
    figure.update_layout(title=TITLE, height=130 + ROW_PIXELS * len(chances))
    figure.update_xaxes(type="category", title="trials of each method")
    figure.update_yaxes(type="category", autorange="reversed")
    return figure


def draw_claims(found: Stability, path: Path) -> None:
    """Draw the same map into a file.

    Raises:
        InputError: the ending of `path` is not that of a figure, or matplotlib is not installed.
    """
    check_figure(path)
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    columns, rows = _columns(found), [one.claim.text for one in found.claims]
    chances = [100 * one.here.above.value for one in found.claims]
    size = (1.6 + 0.085 * max(map(len, rows)) + 0.62 * len(columns), 1.1 + 0.34 * len(rows))
    figure = Figure(figsize=size, layout="constrained", dpi=130)
    axes: Any = figure.subplots()
    colours = LinearSegmentedColormap.from_list("claims", [CONTRARY, UNDECIDED, HOLDS])
    axes.imshow(chances, cmap=colours, vmin=0, vmax=100, aspect="auto")
    axes.set_xticks(range(len(columns)), columns)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xlabel("trials of each method")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    for place, row in enumerate(chances):
        for column, value in enumerate(row):
            text = percent(value / 100)
            axes.text(column, place, text, ha="center", va="center", color=ink_on(value))
    figure.suptitle(TITLE, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def ink_on(chance: float) -> str:
    """Return the colour of a number on the ground of a chance in percent, from 0 to 100.

    White is easier to read than black only on the darkest blue, and on no orange.
    """
    return "white" if chance > 96 else "black"


def _columns(found: Stability) -> list[str]:
    return [str(budget) for budget in found.budgets]
