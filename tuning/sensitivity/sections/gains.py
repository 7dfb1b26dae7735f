"""The sections on tunability (gains over the defaults) and on the robust region (room around the best)."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import plotly.graph_objects as go

from contrasweep.tuning.reports.style import COLOURS, GREY, plain
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.sections.part import (
    Part,
    Record,
    TidyTable,
    interval_bars,
    interval_figure,
    short,
)
from contrasweep.tuning.sensitivity.tunability import Gain, Robustness, Tunability


def _tell_tunability(found: Tunability, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    measured = found.measured_default
    text = (
        f"{_gain_line(found.jointly)} Half of the trials choose the values and the other half judges them, "
        "so that a lucky trial does not count as a gain; a gain below 0 means that the choice did not hold. "
        f"The defaults are predicted to score {number_text(found.default_score)}"
        + (f"; trial 0, which ran them, scored {number_text(measured)}." if measured is not None else ".")
    )
    return text, [_tunability_figure(found)]


def _gain_line(gain: Gain) -> str:
    interval = f"{gain.gain:+.3g} (95 %: {gain.low:+.3g} to {gain.high:+.3g})"
    if gain.low > 0:
        return f"Tuning all parameters gains {interval} over the defaults."
    if gain.high < 0:
        return f"Tuning loses against the defaults: {interval}."
    return f"The data do not tell whether tuning gains anything over the defaults: {interval}."


def _gain_rows(found: Tunability, one: StudySensitivity) -> Iterator[Record]:
    for g in (found.jointly, *found.parameters):
        yield {**asdict(g), "parameter": g.parameter or "all"}


def _tunability_figure(found: Tunability) -> go.Figure:
    """Draw the gains over the defaults with their intervals."""
    gains = [found.jointly, *found.parameters][::-1]
    names, value = [g.parameter or "all together" for g in gains], [g.gain for g in gains]
    colours = [COLOURS[0] if g.low > 0 else GREY for g in gains]
    arms = interval_bars(value, gains)
    title = "Gain over the defaults (95 %)"
    figure = interval_figure(title, names, value, arms, height=30, name="gain", marker_color=colours)
    figure.add_vline(x=0, line={"color": GREY, "dash": "dot"})
    return figure.update_layout(xaxis_title="gain in score")


def _tell_robustness(found: Robustness, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    values = ", ".join(f"{name} {short(value)}" for name, value in found.best.items())
    text = (
        "How far each parameter can move, with the others at their best, while the predicted score stays "
        f"within one standard error ({found.error:.2g}) of the best prediction ({number_text(found.score)}). "
        f"Best configuration among the trials: {values}. A wide range means that the parameter need not be "
        "tuned finely, or that there are too few trials to tell."
    )
    return text, [_robust_figure(found)]


def _region_rows(found: Robustness, one: StudySensitivity) -> Iterator[Record]:
    for r in found.regions:
        room = {"low": r.low, "high": r.high, "choices": ", ".join(map(str, r.choices))}
        yield {"parameter": r.axis.name, "best": r.best, **room, "share of range": r.share}


def _robust_figure(found: Robustness) -> go.Figure:
    """Draw the whole range of each numeric parameter, and in it the range that is as good as the best."""
    regions = [r for r in found.regions if not r.axis.is_category][::-1]
    figure = go.Figure()
    for r in regions:
        text = f"{r.axis.name}: {short(r.low)} to {short(r.high)}"
        common = {"y": [r.axis.name] * 2, "mode": "lines", "showlegend": False}
        hover = {"hovertext": text, "hoverinfo": "text"}
        figure.add_scatter(x=[0, 1], line={"color": GREY, "width": 1}, **common, **hover)
        ends = r.axis.codes([r.low, r.high])
        figure.add_scatter(x=ends, line={"color": COLOURS[4], "width": 12}, **common, **hover)
        for x, end, anchor in ((0.0, r.axis.low, "left"), (1.0, r.axis.high, "right")):
            place = {"x": x, "y": r.axis.name, "yshift": -14, "xanchor": anchor}
            figure.add_annotation(text=plain(end), showarrow=False, **place)
    colour = COLOURS[5]
    for name, codes, symbol in (
        ("best", [float(r.axis.codes([r.best])[0]) for r in regions], "circle"),
        ("default", [float(r.axis.codes([r.axis.default])[0]) for r in regions], "line-ns"),
    ):
        marker = {"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2, "color": colour}}
        names = [r.axis.name for r in regions]
        figure.add_scatter(x=codes, y=names, mode="markers", marker=marker, name=name)
    figure.update_layout(
        title="As good as the best", xaxis_title="range of the search", height=170 + 44 * len(regions)
    )
    return figure.update_xaxes(showticklabels=False, range=[-0.04, 1.04])


PARTS: tuple[Part[Any], ...] = (
    Part[Tunability](
        title="Tunability",
        name="tunability",
        result=lambda one: one.tunability,
        tell=_tell_tunability,
        tables=(TidyTable("tunability", "Gain over the defaults", _gain_rows),),
    ),
    Part[Robustness](
        title="Robust region",
        name="robust region",
        result=lambda one: one.robustness,
        tell=_tell_robustness,
        tables=(TidyTable("robustness", "As good as the best", _region_rows),),
    ),
)
