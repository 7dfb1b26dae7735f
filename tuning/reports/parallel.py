"""Parallel coordinates: a row for each of a few parameters, and a line through all rows for each trial.

The axes are horizontal rows, not the usual columns, so that names and values stay readable on a phone. The
lines are SVG, not WebGL, so that they print. Where a trial does not have a parameter, its line runs to the
margin. Only the parameters that best separate good from bad trials have a row; with all of them, the lines
would be hard to follow.
"""

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from contrasweep.names import counted
from contrasweep.search_spaces import Choice, Range
from contrasweep.tuning.reports.style import COLOURS, GREY, as_written, log_ticks, plain, shortened
from contrasweep.tuning.results.best import merit
from contrasweep.tuning.results.numbers import cell_text, interval_text, number_text
from contrasweep.tuning.results.study import StudyData, TrialResult

BLUE, ORANGE, _, _, SKY, _, _ = COLOURS

FEWEST = 5
"""With fewer scored trials, the figure is not drawn."""
MOST_ROWS = 5
"""How many parameters have a row."""
BAND_NAMES = ("worst fifth", "fourth", "middle", "second", "best fifth")
BANDS = len(BAND_NAMES)
# The best stand out on light and dark ground, by colour and by width.
BAND_COLOURS = (GREY, GREY, SKY, BLUE, ORANGE)
BAND_WIDTHS = (1.0, 1.0, 1.0, 1.4, 2.2)
MANY = 100
UNUSED_AT = -0.12
ROW_HEIGHT = 72
# Lines through the same choice are spread a little, so that a reader sees how many there are.
SPREAD = 0.03
# On a phone, values that are closer than this lie over each other; 1 is the length of a row.
APART = 0.19
ENDS = (UNUSED_AT - 0.06, 1.05)
"""Where the figure begins and ends."""
LETTER = 0.023
"""The width of a letter on a phone."""
MOST_LABELS = 20
LINE = 14
"""The height of a line of labels in pixels; below a row is room for two."""
PARTS = 4
_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Row:
    """The row of one parameter: the place of each trial from 0 to 1, and the values written under it.

    `tells` is the share of the variance of the trials' ranks that the parameter explains by itself.
    """

    name: str
    ticks: Mapping[float, str]
    places: Sequence[float]
    tells: float = 1.0


@dataclass(frozen=True)
class Parallel:
    """The figure, and the names of the searched parameters that have no row in it."""

    figure: go.Figure
    left_out: Sequence[str]


def draw_parallel(
    data: StudyData, trials: Sequence[TrialResult], drawn: Collection[int] | None = None
) -> Parallel | None:
    """Draw the searched values of trials with a score, best trials last; None if there are too few.

    Args:
        data: their study.
        trials: the trials, all of which decide which parameters have a row, and what is a fifth.
        drawn: the numbers of those that have a line; None for all.
    """
    scored = [(trial.last, trial) for trial in trials if trial.last is not None]
    searched = data.space.searched
    if len(scored) < FEWEST or not searched:
        return None
    scored.sort(key=lambda pair: (merit(data.cheap_metric, pair[0]), -pair[1].number))
    scores, trials = zip(*scored, strict=True)
    every = [_row(parameter, trials) for parameter in searched]
    shown = sorted(every, key=lambda row: -row.tells)[:MOST_ROWS]
    # In the order of the space: a parent stands above the parameters that depend on it.
    rows = [row for row in every if row in shown] + [_score_row(data.cheap_metric, scores)]
    heights = _heights(rows)
    figure = go.Figure()
    lines = [place for place, trial in enumerate(trials) if drawn is None or trial.number in drawn]
    few = len(lines) <= MANY
    for number, band in enumerate(np.array_split(np.arange(len(trials)), BANDS)):
        line = {"color": BAND_COLOURS[number], "width": BAND_WIDTHS[number]}
        # With many lines, those of worse trials are paler.
        opacity = 0.85 if few else 0.15 + 0.7 * number / (BANDS - 1)
        name = f"{BAND_NAMES[number]}: {interval_text((scores[band[0]], scores[band[-1]]))}"
        shown_lines = np.intersect1d(band, lines)
        _draw_band(figure, rows, heights, trials, shown_lines, line=line, opacity=opacity, name=name)
    _draw_words(figure, rows, heights)
    figure.update_layout(
        title="Searched values, by score",
        height=110 + round(ROW_HEIGHT * (heights[-1] + 1)),
        hovermode="closest",
        xaxis={"visible": False, "range": list(ENDS), "fixedrange": True},
        yaxis={
            "tickvals": heights,
            "showticklabels": False,
            "range": [heights[-1] + 0.5, -0.5],
            "showline": False,
            "ticks": "",
            "fixedrange": True,
        },
        margin={"l": 12, "r": 8},
        legend={"traceorder": "reversed"},
        meta={
            "alt": f"The values of {counted(len(rows) - 1, 'searched parameter')} in "
            f"{counted(len(trials), 'trial')}, coloured by "
            f"{data.cheap_metric} from {number_text(scores[0])} to {number_text(scores[-1])}"
            + ("; the best ones are also in a table." if data.ranked else ".")
        },
    )
    left_out = [one.name for one, row in zip(searched, every, strict=True) if row not in shown]
    return Parallel(figure, left_out)


def _row(parameter: Choice | Range, trials: Sequence[TrialResult]) -> Row:
    """Return the row of a parameter; the trials stand in the order of their scores."""
    values = [trial.values.get(parameter.name) for trial in trials]
    if isinstance(parameter, Choice):
        last = len(parameter.choices) - 1
        at = {choice: i / last if last else 0.5 for i, choice in enumerate(parameter.choices)}
        pairs = zip(values, trials, strict=True)
        places = [UNUSED_AT if v is None else at[v] + _spread(t.number) for v, t in pairs]
        step = -(-len(at) // MOST_LABELS)
        ticks = {at[choice]: shortened(cell_text(choice)) for choice in parameter.choices[::step]}
        return Row(parameter.name, ticks, places, _tells([str(value) for value in values]))
    scale = parameter.scale
    ticks = {scale.unit(value): plain(value) for value in _ticks(parameter)}
    places = [UNUSED_AT if value is None else scale.unit(float(value)) for value in values]
    parts = [
        -1 if value is None else min(PARTS - 1, int(PARTS * place))
        for value, place in zip(values, places, strict=True)
    ]
    name = f"{parameter.name} (log)" if parameter.is_log else parameter.name
    return Row(name, ticks, places, _tells(parts))


def _tells(groups: Sequence[object]) -> float:
    """Return the share of the variance of ranks that groups explain, less what as many random groups would.

    The trials stand in the order of their scores; a parameter that does not vary comes last. This only
    chooses the rows: with intervals, see `contrasweep.tuning.sensitivity`.
    """
    names, group, sizes = np.unique(np.array(groups), return_inverse=True, return_counts=True)
    n, k = len(groups), len(names)
    if k < 2:
        return -math.inf
    if n <= k:
        return 0.0
    ranks = np.arange(n) - (n - 1) / 2
    between = float((np.bincount(group, weights=ranks) ** 2 / sizes).sum())
    total = float((ranks**2).sum())
    return (between - (k - 1) * (total - between) / (n - k)) / total


def _ticks(parameter: Range) -> list[float]:
    """Return the ends of a range and round values between them, far enough apart to be read on a phone."""
    low, high, scale = float(parameter.low), float(parameter.high), parameter.scale
    ticks = [low, high]
    for value in log_ticks(low, high) if parameter.is_log else [(low + high) / 2]:
        if all(abs(scale.unit(value) - scale.unit(other)) >= APART for other in ticks):
            ticks.append(value)
    return sorted(ticks)


def _score_row(metric: str, scores: Sequence[float]) -> Row:
    low, high = scores[0], scores[-1]
    if low == high:
        return Row(metric, {0.5: cell_text(low)}, [0.5] * len(scores))
    ends = {0.0: cell_text(low), 1.0: cell_text(high)}
    return Row(metric, ends, [(score - low) / (high - low) for score in scores])


def _spread(number: int) -> float:
    """A shift that depends on the trial alone and fills the width evenly."""
    return SPREAD * (2 * ((number * _GOLDEN) % 1) - 1)


def _lines(labels: Mapping[float, str]) -> list[int]:
    """Return the line of each label below a row: the first one where it touches no other on a phone."""
    ends: list[float] = []
    lines = []
    for place, text in labels.items():
        width = LETTER * (len(text) + 1)
        start = min(max(place - width / 2, ENDS[0]), ENDS[1] - width)
        line = next((number for number, end in enumerate(ends) if end <= start), len(ends))
        ends[line : line + 1] = [start + width]
        lines.append(line)
    return lines


def _labels(row: Row) -> dict[float, str]:
    return {**({UNUSED_AT: "unused"} if UNUSED_AT in row.places else {}), **row.ticks}


def _heights(rows: Sequence[Row]) -> list[float]:
    """Return how far down each row stands, in usual heights of a row: labels in many lines need more room."""
    lines = [max(_lines(_labels(row)), default=0) for row in rows]
    room = [1 + max(0, last - 1) * LINE / ROW_HEIGHT for last in lines[:-1]]
    return [0.0, *itertools.accumulate(room)]


def _draw_band(
    figure: go.Figure,
    rows: Sequence[Row],
    heights: Sequence[float],
    trials: Sequence[TrialResult],
    band: NDArray[np.intp],
    **look: Any,
) -> None:
    x: list[float | None] = []
    y: list[float | None] = []
    numbers: list[int | None] = []
    for i in band:
        x += [*(round(row.places[i], 4) for row in rows), None]
        y += [*heights, None]
        numbers += [trials[i].number] * (len(rows) + 1)
    hover = "trial %{customdata}<extra></extra>"
    figure.add_scatter(x=x, y=y, customdata=numbers, mode="lines", hovertemplate=hover, **look)


def _draw_words(figure: go.Figure, rows: Sequence[Row], heights: Sequence[float]) -> None:
    """Write the name of each row above it, and its values below it."""
    for row, y in zip(rows, heights, strict=True):
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=y, yshift=14, text=f"<b>{row.name}</b>", showarrow=False
        )
        labels = _labels(row)
        for (place, text), line in zip(labels.items(), _lines(labels), strict=True):
            half = LETTER * len(text) / 2
            at: dict[str, Any] = {"x": place}
            if place + half > ENDS[1]:
                at = {"x": ENDS[1], "xanchor": "right"}
            elif place - half < ENDS[0]:
                at = {"x": ENDS[0], "xanchor": "left"}
            look = {"showarrow": False, "yshift": -12 - LINE * line, "font": {"size": 11}}
            figure.add_annotation(y=y, text=as_written(text), **at, **look)
    if any(UNUSED_AT in row.places for row in rows):
        figure.add_vline(x=UNUSED_AT / 2, line={"color": "rgba(140,140,140,0.5)", "width": 1, "dash": "dot"})
