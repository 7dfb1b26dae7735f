"""How figures look: colours, the numbers along an axis, one template for light pages, one for dark ones."""

import math
from html import escape
from typing import Final

import plotly.graph_objects as go

from contrasweep.tuning.results.numbers import number_text

# Okabe and Ito's colours, without black: it would vanish on a dark page.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")
# Readable on white and on black.
GREY = "#8C8C8C"

BREAKS: Final = "completed, breaks --keep"
"""What figures call trials that cannot be the best, because they break a condition of the search."""

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
SEQUENTIAL = "Cividis"
MOST_TICKS: Final = 6
MOST_LETTERS: Final = 24
"""A longer label in a figure is shortened: a phone has room for no more."""
_SUPERSCRIPTS: Final = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def template(*, dark: bool) -> go.layout.Template:
    """Return the template for a dark or a light page; its background is the page's."""
    ink, grid, page = ("#E8E8E8", "#3A3F46", "20,23,27") if dark else ("#1B1F24", "#DDE1E6", "255,255,255")
    axis = {"gridcolor": grid, "linecolor": GREY, "zeroline": False, "showline": True, "automargin": True}
    axis |= {"ticks": "outside", "tickcolor": GREY, "title": {"standoff": 8}}
    return go.layout.Template(
        layout={
            "font": {"family": FONT, "size": 13, "color": ink},
            # Words inside a plot stay readable over its lines.
            "annotationdefaults": {"bgcolor": f"rgba({page},0.75)", "borderpad": 0},
            # The title begins at the edge of the figure: on a phone, long labels leave no room over the plot.
            "title": {"font": {"size": 15}, "x": 0, "xref": "container", "xanchor": "left"},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "colorway": list(COLOURS),
            "colorscale": {"sequential": SEQUENTIAL},
            "xaxis": axis,
            "yaxis": axis,
            # The legend stands at the foot of the figure. Beside the plot, it would take half of a phone's
            # width; placed by a share of the plot's height, it would cover a tall axis.
            "legend": {"orientation": "h", "x": 0, "xanchor": "left"}
            | {"y": 0, "yref": "container", "yanchor": "bottom"},
            "margin": {"l": 48, "r": 20, "t": 44, "b": 40},
            "height": 420,
            "hoverlabel": {"align": "left"},
            "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": GREY, "activecolor": ink},
        },
        # A trace that is all colour takes its scale from here, not from the layout.
        data={kind: [{"colorscale": SEQUENTIAL}] for kind in ("heatmap", "contour", "histogram2d")},
    )


def log_ticks(low: float, high: float, most: int = MOST_TICKS) -> list[float]:
    """Return at most `most` numbers from `low` to `high`, both above 0, for a logarithmic axis.

    They are round; where fewer than two round ones lie there, they are both ends.
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        # Read as decimals: 2 * 10.0**-3 is not 0.002.
        ticks = [float(f"{factor}e{power}") for power in powers for factor in factors]
        # The ends of a range may come from their logarithms, and are inexact.
        inside = [tick for tick in ticks if low * 0.999 <= tick <= high * 1.001]
        if len(inside) <= most:
            break
    if len(inside) < 2:
        return list(dict.fromkeys((low, high)))
    return inside[:: -(-len(inside) // most)]


def linear_ticks(low: float, high: float) -> list[float]:
    """Return round numbers from `low` to `high` for a linear axis: at most six."""
    if high <= low:
        return [low]
    rough = (high - low) / (MOST_TICKS - 1)
    scale = 10.0 ** math.floor(math.log10(rough))
    step = next(s * scale for s in (1, 2, 5, 10) if s * scale >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [number * step for number in range(first, last + 1)]


def shortened(text: str) -> str:
    """Cut the middle out of a long label: similar names often differ at an end."""
    half = MOST_LETTERS // 2
    return text if len(text) <= MOST_LETTERS else f"{text[: half - 1]}…{text[-half:]}"


def as_written(text: str) -> str:
    """Return a text for a figure of plotly, which reads it as HTML: `<b>` would be a letter style."""
    return escape(text, quote=False)


def plain(value: object) -> str:
    """Return a tick as text: `0.01`, `1000`, `10⁵`, `3·10⁻⁴`; a value of another type as it is."""
    if not isinstance(value, float) or value == 0 or 1e-3 <= abs(value) < 1e4:
        return number_text(value) if isinstance(value, float) else str(value)
    power = math.floor(math.log10(abs(value)) + 1e-9)
    factor = f"{value / 10.0**power:.3g}"
    return ("" if factor == "1" else f"{factor}·") + f"10{str(power).translate(_SUPERSCRIPTS)}"
