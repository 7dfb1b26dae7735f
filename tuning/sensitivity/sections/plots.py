"""What the figures of several sections share: bands, error bars, the untrained encoder's line."""

from __future__ import annotations

import math
from typing import Any

import plotly.graph_objects as go

from contrasweep.tuning.reports.style import GREY, log_ticks, plain
from contrasweep.tuning.sensitivity.axes import Floats


def add_band(figure: go.Figure, x: Any, low: Any, high: Any, colour: str) -> None:
    """Fill the area between two curves."""
    shape = {"mode": "lines", "line": {"width": 0, "color": colour}, "hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(x=x, y=low, **shape)
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_scatter(x=x, y=high, fill="tonexty", fillcolor=f"rgba({red},{green},{blue},0.18)", **shape)


def error_bars(up: Floats, down: Floats) -> dict[str, Any]:
    """Return the error bars of a trace from their lengths."""
    return {"type": "data", "array": up, "arrayminus": down, "color": GREY, "thickness": 1.5, "width": 4}


def add_untrained_line(figure: go.Figure, untrained: float) -> None:
    """Draw the untrained encoder's score, where it is known."""
    if math.isfinite(untrained):
        line = {"color": GREY, "dash": "dot"}
        figure.add_hline(y=untrained, line=line, annotation_text="untrained encoder")


def label_log_axis(figure: go.Figure, low: float, high: float) -> None:
    """Label a logarithmic x axis in plain numbers: plotly's own ticks leave a short axis without any."""
    ticks = log_ticks(low, high)
    figure.update_xaxes(tickvals=ticks, ticktext=[plain(t) for t in ticks], tickangle=0)


def short(value: object) -> str:
    """Return a value as text: a number with four significant digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
