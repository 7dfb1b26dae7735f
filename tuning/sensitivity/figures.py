"""The figures of the sensitivity page: each a function of one analysis, drawn with plotly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from contrasweep.tuning.reports.style import COLOURS, GREY, MOST_TICKS, linear_ticks, log_ticks, plain
from contrasweep.tuning.sensitivity.axes import Axis, Floats
from contrasweep.tuning.sensitivity.budget import BudgetCurve
from contrasweep.tuning.sensitivity.comparison import EqualBudget, MeanRanks
from contrasweep.tuning.sensitivity.decomposition import Share
from contrasweep.tuning.sensitivity.fidelity import Fidelity
from contrasweep.tuning.sensitivity.importance import Importance
from contrasweep.tuning.sensitivity.marginals import Marginal, PairMap
from contrasweep.tuning.sensitivity.tunability import Robustness, Tunability
from contrasweep.tuning.statistics import Z

MOST_POINTS = 400
"""More trials than this are drawn as a sample: the page stays small and the curve visible."""


def marginal_figure(curves: Sequence[Marginal], metric: str) -> go.Figure:
    """Draw one parameter's marginal curve, or one a stratum, with 95 % bands and the trials behind it."""
    axis = curves[0].axis
    figure = go.Figure()
    for i, curve in enumerate(curves):
        colour = COLOURS[i % len(COLOURS)]
        name = ", ".join(map(str, curve.condition.values())) or "mean over the other parameters"
        add = _add_categories if axis.is_category else _add_curve
        add(figure, curve, colour, name)
    parents = ", ".join(curves[0].condition)
    title = f"{axis.name}" + (f", by {parents}" if parents else "")
    several = len(curves) > 1
    figure.update_layout(title=title, yaxis_title=metric, showlegend=several, height=360 + 40 * several)
    figure.update_layout(meta={"alt": f"{metric} as a function of {title}"})
    _parameter_axis(figure, axis)
    default = axis.choices.index(axis.default) if axis.is_category else axis.default
    figure.add_vline(x=default, line={"color": GREY, "dash": "dot", "width": 1})
    return figure


def pair_figure(pair: PairMap, share: Share, metric: str) -> go.Figure:
    """Draw the map of two parameters: mean score over both, the others averaged."""
    rows, columns = _known(pair)
    figure = go.Figure(
        go.Heatmap(
            x=[pair.second.label(c) for c in pair.second.grid[columns]],
            y=[pair.first.label(c) for c in pair.first.grid[rows]],
            z=pair.mean[np.ix_(rows, columns)],
            customdata=Z * pair.error[np.ix_(rows, columns)],
            hovertemplate=f"{pair.second.name} %{{x}}<br>{pair.first.name} %{{y}}"
            f"<br>{metric} %{{z:.4f}} ± %{{customdata:.4f}}<extra></extra>",
            # Above the map: beside it, it takes a quarter of a phone's width.
            colorbar={
                "title": {"text": metric, "side": "top"},
                "thickness": 10,
                "orientation": "h",
                "y": 1.0,
                "yanchor": "bottom",
                "nticks": 6,
            },
        )
    )
    title = f"{pair.first.name} x {pair.second.name}: {100 * share.share:.1f} %"
    figure.update_layout(title=title, xaxis_title=pair.second.name, yaxis_title=pair.first.name, height=480)
    figure.update_xaxes(type="category", title_standoff=16, **_cell_ticks(pair.second, columns))
    figure.update_yaxes(type="category", **_cell_ticks(pair.first, rows))
    return figure


def importance_figure(importances: Sequence[Importance]) -> go.Figure:
    """Draw PED-ANOVA's shares with bootstrap intervals, and what chance would give."""
    ordered = sorted(importances, key=lambda i: i.share)
    share = np.array([i.share for i in ordered])
    # The estimate can lie outside of its bootstrap interval: then that arm has no length.
    up = np.maximum(np.array([i.high for i in ordered]) - share, 0)
    down = np.maximum(share - np.array([i.low for i in ordered]), 0)
    figure = _share_bars(ordered, COLOURS[0], error_x=_arms(up, down))
    figure.update_layout(title="Importance (PED-ANOVA)", xaxis_title="share explained")
    return figure


def variance_figure(shares: Sequence[Share]) -> go.Figure:
    """Draw the shares of the surrogate's variance, and what chance would give."""
    figure = _share_bars(sorted(shares, key=lambda s: s.share), COLOURS[2])
    figure.update_layout(title="Variance explained (fANOVA)", xaxis_title="share explained")
    return figure


def fidelity_figure(found: Fidelity) -> go.Figure:
    """Draw the rank correlation of each epoch's score with the final one."""
    epochs = [e.epoch for e in found.epochs]
    figure = go.Figure()
    _band(figure, epochs, [e.low for e in found.epochs], [e.high for e in found.epochs], COLOURS[0])
    spearman = [e.spearman for e in found.epochs]
    mode = "lines+markers"
    figure.add_scatter(x=epochs, y=spearman, mode=mode, line_color=COLOURS[0], name="Spearman, 95 %")
    kendall = [e.kendall for e in found.epochs]
    dashed = {"color": COLOURS[1], "dash": "dash"}
    figure.add_scatter(x=epochs, y=kendall, mode=mode, line=dashed, name="Kendall")
    corrected = [e.corrected for e in found.epochs]
    if any(value is not None for value in corrected):
        marker = {"symbol": "diamond-open", "size": 9, "color": COLOURS[3]}
        name = "Spearman, selection undone"
        figure.add_scatter(x=epochs, y=corrected, mode="markers", marker=marker, name=name)
    for rung in found.rungs:
        figure.add_vline(
            x=rung,
            line={"color": GREY, "dash": "dot"},
            annotation_text="stops",
            annotation_position="bottom right",
        )
    figure.update_layout(
        title="Early scores against final ones",
        xaxis_title="epoch",
        yaxis_title="rank correlation",
        yaxis_range=[min(-0.05, *(e.low for e in found.epochs)), 1.05],
        xaxis_dtick=max(1, len(epochs) // 10),
    )
    return figure


def tunability_figure(found: Tunability) -> go.Figure:
    """Draw the gains over the defaults with their intervals."""
    gains = [found.jointly, *found.parameters][::-1]
    names = [g.parameter or "all together" for g in gains]
    value = np.array([g.gain for g in gains])
    up, down = np.array([g.high for g in gains]) - value, value - np.array([g.low for g in gains])
    colours = [COLOURS[0] if g.low > 0 else GREY for g in gains]
    marker = {"color": colours, "size": 9}
    figure = go.Figure(
        go.Scatter(x=value, y=names, mode="markers", marker=marker, error_x=_arms(up, down), name="gain")
    )
    figure.add_vline(x=0, line={"color": GREY, "dash": "dot"})
    figure.update_layout(
        title="Gain over the defaults (95 %)",
        xaxis_title="gain in score",
        height=150 + 30 * len(names),
        showlegend=False,
    )
    return figure


def robust_figure(found: Robustness) -> go.Figure:
    """Draw, for each number, the range that is as good as the best within the whole range of the search."""
    regions = [r for r in found.regions if not r.axis.is_category][::-1]
    figure = go.Figure()
    for r in regions:
        ends = r.axis.codes([r.low, r.high])
        text = f"{r.axis.name}: {short(r.low)} to {short(r.high)}"
        wide = {"color": COLOURS[4], "width": 12}
        common = {"hovertext": text, "hoverinfo": "text", "showlegend": False}
        figure.add_scatter(
            x=[0, 1], y=[r.axis.name] * 2, mode="lines", line={"color": GREY, "width": 1}, **common
        )
        figure.add_scatter(x=ends, y=[r.axis.name] * 2, mode="lines", line=wide, **common)
        for x, end, anchor in ((0.0, r.axis.low, "left"), (1.0, r.axis.high, "right")):
            figure.add_annotation(
                x=x, y=r.axis.name, text=plain(end), showarrow=False, yshift=-14, xanchor=anchor
            )
    names = [r.axis.name for r in regions]
    for label, codes, symbol in (
        ("best", [float(r.axis.codes([r.best])[0]) for r in regions], "circle"),
        ("default", [float(r.axis.codes([r.axis.default])[0]) for r in regions], "line-ns"),
    ):
        marker: dict[str, Any] = {"symbol": symbol, "size": 11, "color": COLOURS[5]}
        marker["line"] = {"width": 2, "color": COLOURS[5]}
        figure.add_scatter(x=codes, y=names, mode="markers", marker=marker, name=label)
    figure.update_layout(
        title="As good as the best",
        xaxis_title="range of the search",
        height=170 + 44 * len(regions),
    )
    figure.update_xaxes(showticklabels=False, range=[-0.04, 1.04])
    return figure


def budget_figure(found: BudgetCurve, metric: str, untrained: float) -> go.Figure:
    """Draw the expected best score of so many trials, and how the search really went."""
    figure = go.Figure()
    _band(figure, found.trials, found.low, found.high, COLOURS[0])
    name = "expected best of so many, 95 %"
    figure.add_scatter(x=found.trials, y=found.expected, mode="lines", line_color=COLOURS[0], name=name)
    steps = {"color": COLOURS[5], "shape": "hv", "dash": "dash"}
    x, y = _until(found.progress_trials, found.progress_score, found.ended)
    figure.add_scatter(x=x, y=y, mode="lines", line=steps, name="best so far, as it happened")
    _untrained_line(figure, untrained)
    figure.update_layout(
        title="What a budget buys", xaxis_title="trials", yaxis_title=f"best {metric}", xaxis_type="log"
    )
    _plain_log_ticks(figure, 1, found.ended)
    return figure


def cost_figure(found: BudgetCurve, metric: str, untrained: float) -> go.Figure:
    """Draw the same against time: one trial after the other, and as it happened."""
    figure = go.Figure()
    scale, unit = _time_unit(max(found.seconds_a_trial * found.ended / 2, found.seconds))
    x = found.trials * found.seconds_a_trial / scale
    _band(figure, x, found.low, found.high, COLOURS[0])
    name = "expected, one trial after the other, 95 %"
    figure.add_scatter(x=x, y=found.expected, mode="lines", line_color=COLOURS[0], name=name)
    steps = {"color": COLOURS[5], "shape": "hv", "dash": "dash"}
    moments, best = _until(found.progress_seconds, found.progress_score, found.seconds)
    moments = moments / scale
    figure.add_scatter(x=moments, y=best, mode="lines+markers", line=steps, name="best so far, wall-clock")
    _untrained_line(figure, untrained)
    figure.update_layout(title="What time buys", xaxis_title=unit, yaxis_title=f"best {metric}")
    return figure


def equal_budget_figure(found: EqualBudget) -> go.Figure:
    """Draw what each study is expected to find with the common budget."""
    studies = found.studies[::-1]
    value = np.array([s.expected for s in studies])
    up, down = np.array([s.high for s in studies]) - value, value - np.array([s.low for s in studies])
    # The estimate can lie outside of the bootstrap interval of a maximum.
    arms = _arms(np.maximum(up, 0), np.maximum(down, 0))
    figure = go.Figure(
        go.Scatter(
            x=value, y=np.arange(len(value)), mode="markers", marker_size=9, error_x=arms, name="expected"
        )
    )
    # Above its row, and not beside it: the names of studies are half as wide as a phone.
    for row, s in enumerate(studies):
        name = s.study if s.dataset in s.study else f"{s.study} ({s.dataset})"
        place = {"xref": "paper", "x": 0, "xanchor": "left", "y": row, "yanchor": "bottom", "yshift": 6}
        figure.add_annotation(text=name, showarrow=False, font={"size": 11}, **place)
    figure.update_layout(
        title=f"Expected best of {found.budget} trials (95 %)",
        xaxis_title=studies[0].metric,
        height=150 + 44 * len(studies),
        showlegend=False,
        yaxis={"tickvals": np.arange(len(studies)), "showticklabels": False, "ticks": ""},
        yaxis_range=[-0.6, len(studies) - 0.2],
    )
    return figure


def ranks_figure(found: MeanRanks) -> go.Figure:
    """Draw mean ranks with bars of half the critical difference: bars that overlap are not told apart."""
    half = found.critical_difference / 2
    names, ranks = list(found.names)[::-1], np.array(found.ranks[::-1])
    arms = _arms(np.full(len(ranks), half), np.full(len(ranks), half))
    figure = go.Figure(go.Scatter(x=ranks, y=names, mode="markers", marker_size=9, error_x=arms, name="rank"))
    figure.update_layout(
        title=f"Mean ranks over {found.blocks} datasets (Nemenyi, 5 %)",
        xaxis_title="mean rank; 1 is the best",
        height=150 + 34 * len(names),
        showlegend=False,
    )
    return figure


def _add_curve(figure: go.Figure, curve: Marginal, colour: str, name: str) -> None:
    values = [curve.axis.value(code) for code in curve.code]
    _band(figure, values, curve.low, curve.high, colour)
    dash = "dot" if curve.thin.all() else "solid"
    line = {"color": colour, "width": 2.5, "dash": dash}
    figure.add_scatter(x=values, y=curve.mean, mode="lines", line=line, name=name)
    _add_points(figure, curve, colour, jitter=0.0)


def _add_categories(figure: go.Figure, curve: Marginal, colour: str, name: str) -> None:
    half = curve.high - curve.mean
    marker = {"color": [GREY if thin else colour for thin in curve.thin], "size": 11}
    _add_points(figure, curve, colour, jitter=0.12)
    figure.add_scatter(
        x=curve.code, y=curve.mean, mode="markers", marker=marker, error_y=_arms(half, half), name=name
    )


def _add_points(figure: go.Figure, curve: Marginal, colour: str, jitter: float) -> None:
    points = curve.points
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(points.code))[:MOST_POINTS]
    for estimated, symbol in ((False, "circle"), (True, "circle-open")):
        shown = rows[points.estimated[rows] == estimated]
        if not len(shown):
            continue
        codes = points.code[shown]
        spread = jitter * (rng.random(len(codes)) * 2 - 1) + 0.25 * (jitter > 0)
        x = codes + spread if curve.axis.is_category else [curve.axis.value(c) for c in codes]
        marker = {"color": colour, "size": 5, "opacity": 0.45, "symbol": symbol}
        kind = "estimated score" if estimated else "trial"
        figure.add_scatter(
            x=x, y=points.score[shown], mode="markers", marker=marker, showlegend=False, name=kind
        )


def _parameter_axis(figure: go.Figure, axis: Axis) -> None:
    if axis.is_category:
        labels = [str(choice) for choice in axis.choices]
        figure.update_xaxes(
            tickvals=list(range(len(labels))), ticktext=labels, range=[-0.5, len(labels) - 0.4]
        )
        figure.update_xaxes(title=axis.name)
        return
    figure.update_xaxes(title=axis.name, type="log" if axis.is_log else "linear")
    if axis.is_log:
        _plain_log_ticks(figure, axis.low, axis.high)


def _plain_log_ticks(figure: go.Figure, low: float, high: float) -> None:
    """Label a logarithmic axis in plain numbers: plotly's own ticks leave a short one without any."""
    ticks = log_ticks(low, high)
    figure.update_xaxes(tickvals=ticks, ticktext=[plain(t) for t in ticks], tickangle=0)


def _cell_ticks(axis: Axis, cells: Any) -> dict[str, Any]:
    """The ticks of an axis whose categories are cells of a grid: round numbers, where they belong."""
    if axis.is_category or axis.is_integer:
        step = -(-len(cells) // MOST_TICKS)
        labels = [axis.label(axis.grid[cell]) for cell in cells[::step]]
        return {"tickvals": labels, "ticktext": labels}
    ticks = log_ticks(axis.low, axis.high) if axis.is_log else linear_ticks(axis.low, axis.high)
    # Between two categories, so that plotly takes it for a place and not for the name of a category.
    places = axis.to_unit(np.array(ticks)) * len(axis.grid) - 0.5 + 1e-6
    return {"tickvals": places, "ticktext": [plain(t) for t in ticks], "tickangle": 0}


def _band(figure: go.Figure, x: Any, low: Any, high: Any, colour: str) -> None:
    shape = {"mode": "lines", "line": {"width": 0, "color": colour}, "hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(x=x, y=low, **shape)
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_scatter(x=x, y=high, fill="tonexty", fillcolor=f"rgba({red},{green},{blue},0.18)", **shape)


def _share_bars(shares: Sequence[Importance] | Sequence[Share], colour: str, **bar: Any) -> go.Figure:
    """A bar a share, grey where it is not told apart from chance, and a mark for what chance would give."""
    # On two lines: a long label leaves a phone no room for the bars.
    names = [one.name.replace(" (", "<br>(") for one in shares]
    colours = [colour if one.above_chance else GREY for one in shares]
    figure = go.Figure()
    figure.add_bar(
        x=[one.share for one in shares],
        y=names,
        orientation="h",
        marker_color=colours,
        name="share",
        showlegend=False,
        **bar,
    )
    marker: dict[str, Any] = {"symbol": "line-ns", "size": 16, "line": {"width": 2, "color": COLOURS[5]}}
    chance = [one.by_chance for one in shares]
    figure.add_scatter(x=chance, y=names, mode="markers", marker=marker, name="by chance (95 %)")
    return figure.update_layout(height=150 + 34 * len(names))


def _untrained_line(figure: go.Figure, untrained: float) -> None:
    if math.isfinite(untrained):
        line = {"color": GREY, "dash": "dot"}
        figure.add_hline(y=untrained, line=line, annotation_text="untrained encoder")


def _until(x: Any, y: Floats, end: float) -> tuple[Floats, Floats]:
    """Steps carried on to the end of the search."""
    return np.append(x, end), np.append(y, y[-1:])


def _known(pair: PairMap) -> tuple[Any, Any]:
    known = np.isfinite(pair.mean)
    return np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0))


def _arms(up: Floats, down: Floats) -> dict[str, Any]:
    return {"type": "data", "array": up, "arrayminus": down, "color": GREY, "thickness": 1.5, "width": 4}


def _time_unit(seconds: float) -> tuple[float, str]:
    units = ((172_800, 86_400, "days"), (7200, 3600, "hours"), (120, 60, "minutes"))
    return next(((scale, name) for least, scale, name in units if seconds >= least), (1, "seconds"))


def short(value: object) -> str:
    """Return a value as text: four significant digits of a number."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
