"""Parallel coordinates: a row for each searched parameter, and a line through all rows for each trial.

The axes are horizontal rows, not the usual columns, so that names and values stay readable on a phone. The
lines are SVG, not WebGL, so that they print. Where a trial does not have a parameter, its line runs to the
margin.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray
from plotly.colors import sample_colorscale

from contrasweep.search_spaces import Choice, Range
from contrasweep.tuning.reports.page import cell_text
from contrasweep.tuning.reports.style import SEQUENTIAL, plain
from contrasweep.tuning.results.study import StudyData, TrialResult

FEWEST = 5
"""With fewer scored trials, the figure is not drawn."""
BAND_NAMES = ("worst fifth", "fourth", "middle", "second", "best fifth")
BANDS = len(BAND_NAMES)
MANY = 100
UNUSED_AT = -0.12
ROW_HEIGHT = 64
# Lines through the same choice are spread a little, so that a reader sees how many there are.
SPREAD = 0.03
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Row:
    """The row of one parameter: the place of each trial from 0 to 1, and the values written under it."""

    name: str
    ticks: Mapping[float, str]
    places: Sequence[float]


def draw_parallel(data: StudyData, drawn: Sequence[TrialResult]) -> go.Figure | None:
    """Draw the searched values of trials with a score, best trials last; None if there are too few."""
    scored = [(trial.last, trial) for trial in drawn if trial.last is not None]
    searched = data.space.searched
    if len(scored) < FEWEST or not searched:
        return None
    scored.sort(key=lambda pair: (pair[0], -pair[1].number))
    scores, trials = zip(*scored, strict=True)
    rows = [_row(parameter, trials) for parameter in searched] + [_score_row(data.rung_metric, scores)]
    figure = go.Figure()
    bands = np.array_split(np.arange(len(trials)), BANDS)
    colours = sample_colorscale(SEQUENTIAL, np.linspace(0.15, 0.9, BANDS))
    for number, (band, colour) in enumerate(zip(bands, colours, strict=True)):
        few = len(trials) <= MANY
        line = {"color": colour, "width": 1.6 if few else 1}
        # With many lines, those of worse trials are paler.
        opacity = 0.85 if few else 0.2 + 0.65 * number / (BANDS - 1)
        name = f"{BAND_NAMES[number]}: {scores[band[0]]:.3g} to {scores[band[-1]]:.3g}"
        _draw_band(figure, rows, trials, band, line=line, opacity=opacity, name=name)
    _draw_ticks(figure, rows)
    figure.update_layout(
        title="Searched values, by score",
        height=110 + ROW_HEIGHT * len(rows),
        hovermode="closest",
        xaxis={"visible": False, "range": [UNUSED_AT - 0.06, 1.05], "fixedrange": True},
        yaxis={
            "tickvals": list(range(len(rows))),
            "ticktext": [row.name for row in rows],
            "range": [len(rows) - 0.4, -0.4],
            "showline": False,
            "ticks": "",
            "fixedrange": True,
        },
        legend={"traceorder": "reversed"},
        meta={
            "alt": f"The values of {len(searched)} searched parameters in {len(trials)} trials, coloured by "
            f"{data.rung_metric} from {scores[0]:.4g} to {scores[-1]:.4g}; best trials are also in a table."
        },
    )
    return figure


def _row(parameter: Choice | Range, trials: Sequence[TrialResult]) -> Row:
    values = [trial.values.get(parameter.name) for trial in trials]
    if isinstance(parameter, Choice):
        last = len(parameter.choices) - 1
        at = {choice: i / last if last else 0.5 for i, choice in enumerate(parameter.choices)}
        pairs = zip(values, trials, strict=True)
        places = [UNUSED_AT if v is None else at[v] + _spread(t.number) for v, t in pairs]
        return Row(parameter.name, {place: cell_text(value) for value, place in at.items()}, places)
    low, high, scale = float(parameter.low), float(parameter.high), parameter.scale
    ticks = {scale.unit(value): plain(value) for value in (low, _middle(low, high, parameter.is_log), high)}
    places = [UNUSED_AT if value is None else scale.unit(float(value)) for value in values]
    return Row(parameter.name, ticks, places)


def _middle(low: float, high: float, log: bool) -> float:
    """Return a value between the ends: on a logarithmic row, the power of ten nearest to the middle."""
    if not log:
        return (low + high) / 2
    power = 10.0 ** round((math.log10(low) + math.log10(high)) / 2)
    # Close to an end, its text would lie over the end's.
    return float(power) if low * 1.5 < power < high / 1.5 else math.sqrt(low * high)


def _score_row(metric: str, scores: Sequence[float]) -> Row:
    low, high = scores[0], scores[-1]
    if low == high:
        return Row(metric, {0.5: cell_text(low)}, [0.5] * len(scores))
    ends = {0.0: cell_text(low), 1.0: cell_text(high)}
    return Row(metric, ends, [(score - low) / (high - low) for score in scores])


def _spread(number: int) -> float:
    """A shift that depends on the trial alone and fills the width evenly."""
    return SPREAD * (2 * ((number * _GOLDEN) % 1) - 1)


def _draw_band(
    figure: go.Figure,
    rows: Sequence[Row],
    trials: Sequence[TrialResult],
    band: NDArray[np.intp],
    **look: Any,
) -> None:
    x: list[float | None] = []
    y: list[float | None] = []
    numbers: list[int | None] = []
    for i in band:
        x += [*(round(row.places[i], 4) for row in rows), None]
        y += [*range(len(rows)), None]
        numbers += [trials[i].number] * (len(rows) + 1)
    hover = "trial %{customdata}<extra></extra>"
    figure.add_scatter(x=x, y=y, customdata=numbers, mode="lines", hovertemplate=hover, **look)


def _draw_ticks(figure: go.Figure, rows: Sequence[Row]) -> None:
    for i, row in enumerate(rows):
        ticks = {**({UNUSED_AT: "unused"} if UNUSED_AT in row.places else {}), **row.ticks}
        for number, (place, text) in enumerate(ticks.items()):
            # Many words side by side would touch on a phone, so every second one stands above the row.
            above = len(ticks) > 3 and number % 2 == 1
            look = {"showarrow": False, "yshift": 12 if above else -12, "font": {"size": 11}}
            figure.add_annotation(x=place, y=i, text=text, **look)
    if any(UNUSED_AT in row.places for row in rows):
        figure.add_vline(x=UNUSED_AT / 2, line={"color": "rgba(140,140,140,0.5)", "width": 1, "dash": "dot"})
