"""The sections on the effects of parameters: importance, one at a time, and two together."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import plotly.graph_objects as go

from contrasweep.tuning.reports.style import COLOURS, GREY, MOST_TICKS, linear_ticks, log_ticks, plain
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.axes import Axis
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.importance import Importance
from contrasweep.tuning.sensitivity.marginals import Marginal, PairMap, Share, by_parameter, condition_text
from contrasweep.tuning.sensitivity.sections.part import (
    Part,
    Record,
    TidyTable,
    add_band,
    error_bars,
    interval_bars,
    label_log_axis,
)
from contrasweep.tuning.statistics import Z

PAIRS_DRAWN = 4
MOST_POINTS = 400
"""More trials than this are drawn as a sample: the page stays small and the curve visible."""

Importances = Sequence[Importance | TooFew]


def _share_row(share: Share) -> Record:
    """Return a share's row in the tables of shares of the variance."""
    found = {"share": share.share, "by chance": share.by_chance, "above chance": share.above_chance}
    return {"parameter": " x ".join(share.parameters), "condition": condition_text(share.condition), **found}


def _tell_importance(found: Importances, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    text = (
        "Blue and green bars lie above what chance gives (the red mark); grey bars do not. "
        "PED-ANOVA asks what sets the best trials apart; fANOVA asks what moves the score over the whole "
        "space, bad regions included, so the two need not agree. A parameter that depends on another is "
        "judged within each value of that other."
    )
    for name, lack in _missing(found):
        text += f"\n\nPED-ANOVA{name.removeprefix('importance')}: {lack}."
    known = [entry for entry in found if isinstance(entry, Importance)]
    figures = [_importance_figure(known)] if known else []
    return text, figures + ([_variance_figure(one.shares)] if one.shares else [])


def _missing(found: Importances) -> Iterator[tuple[str, TooFew]]:
    """Yield the number of entries that need more trials, and the one that has the fewest."""
    missing = [entry for entry in found if isinstance(entry, TooFew)]
    if missing:
        yield f"importance of {len(missing)} entries", min(missing, key=lambda entry: entry.found)


def _importance_rows(found: Importances, one: StudySensitivity) -> Iterator[Record]:
    for i in found:
        if not isinstance(i, TooFew):
            named = {name.replace("_", " "): value for name, value in asdict(i).items()}
            yield {**named, "condition": condition_text(i.condition)}


def _importance_figure(importances: Sequence[Importance]) -> go.Figure:
    """Draw PED-ANOVA's shares with bootstrap intervals, and the shares by chance."""
    ordered = sorted(importances, key=lambda i: i.share)
    arms = interval_bars([i.share for i in ordered], ordered)
    figure = _share_bars(ordered, COLOURS[0], error_x=arms)
    return figure.update_layout(title="Importance (PED-ANOVA)", xaxis_title="share explained")


def _variance_figure(shares: Sequence[Share]) -> go.Figure:
    """Draw the shares of the surrogate's variance, and the shares by chance."""
    figure = _share_bars(sorted(shares, key=lambda s: s.share), COLOURS[2])
    return figure.update_layout(title="Variance explained (fANOVA)", xaxis_title="share explained")


def _share_bars(shares: Sequence[Importance] | Sequence[Share], colour: str, **bar: Any) -> go.Figure:
    """Draw a bar for each share, grey where chance could explain it, and a mark for the share by chance."""
    # On two lines: a long label leaves a phone no room for the bars.
    names = [one.name.replace(" (", "<br>(") for one in shares]
    colours = [colour if one.above_chance else GREY for one in shares]
    figure = go.Figure()
    values, look = [one.share for one in shares], {"marker_color": colours, "showlegend": False, **bar}
    figure.add_bar(x=values, y=names, orientation="h", name="share", **look)
    marker: dict[str, Any] = {"symbol": "line-ns", "size": 16, "line": {"width": 2, "color": COLOURS[5]}}
    chance = [one.by_chance for one in shares]
    figure.add_scatter(x=chance, y=names, mode="markers", marker=marker, name="by chance (95 %)")
    return figure.update_layout(height=150 + 34 * len(names))


def _tell_marginals(found: Sequence[Marginal], one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    text = (
        "Mean predicted score over one parameter, averaged over the whole space of the others, with a "
        "pointwise 95 % interval; dots are trials (open: estimated score), the dotted vertical line is "
        "the default. The mean over the others is lower than the best trials: read the shape, not the "
        "height. Dotted or grey: very few trials."
    )
    metric = one.observations.metric
    return text, [_marginal_figure(curves, metric) for curves in by_parameter(found).values()]


def _marginal_rows(found: Sequence[Marginal], one: StudySensitivity) -> Iterator[Record]:
    for m in found:
        for i, code in enumerate(m.code):
            numbers = {"mean": float(m.mean[i]), "low": float(m.low[i]), "high": float(m.high[i])}
            where = {"parameter": m.axis.name, "condition": condition_text(m.condition)}
            yield {**where, "value": m.axis.value(code), **numbers, "few trials": bool(m.thin[i])}


def _tell_interactions(found: Sequence[Share], one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    above = sum(share.above_chance for share in found)
    text = (
        "The share of the surrogate's variance that two parameters explain beyond the sum of their own "
        f"shares. {above} of {len(found)} pairs explain more than chance gives. The maps show the mean score "
        "over both; the largest interactions come first."
    )
    maps = {(p.first.name, p.second.name): p for p in one.pairs}
    drawn = ((maps[share.parameters[0], share.parameters[1]], share) for share in found[:PAIRS_DRAWN])
    return text, [_pair_figure(pair, share, one.observations.metric) for pair, share in drawn]


def _pair_rows(found: Sequence[Share], one: StudySensitivity) -> Iterator[Record]:
    for p in one.pairs:
        for i, j in np.argwhere(np.isfinite(p.mean)):
            first, second = p.first.value(p.first.grid[i]), p.second.value(p.second.grid[j])
            names = {"first": p.first.name, "second": p.second.name}
            numbers = {"mean": float(p.mean[i, j]), "error": float(p.error[i, j])}
            yield {**names, "first value": first, "second value": second, **numbers}


def _marginal_figure(curves: Sequence[Marginal], metric: str) -> go.Figure:
    """Draw the marginal curves of one parameter, one for each condition, with 95 % bands and the trials."""
    axis = curves[0].axis
    figure = go.Figure()
    for i, curve in enumerate(curves):
        name = ", ".join(map(str, curve.condition.values())) or "mean over the other parameters"
        add = _add_categories if axis.is_category else _add_curve
        add(figure, curve, COLOURS[i % len(COLOURS)], name)
    parents = ", ".join(curves[0].condition)
    title = f"{axis.name}, by {parents}" if parents else axis.name
    several = len(curves) > 1
    figure.update_layout(
        title=title,
        xaxis_title=axis.name,
        yaxis_title=metric,
        showlegend=several,
        height=360 + 40 * several,
        meta={"alt": f"{metric} as a function of {title}"},
    )
    _label_values(figure, axis)
    default = axis.choices.index(axis.default) if axis.is_category else axis.default
    return figure.add_vline(x=default, line={"color": GREY, "dash": "dot", "width": 1})


def _add_curve(figure: go.Figure, curve: Marginal, colour: str, name: str) -> None:
    values = [curve.axis.value(code) for code in curve.code]
    add_band(figure, values, curve.low, curve.high, colour)
    line = {"color": colour, "width": 2.5, "dash": "dot" if curve.thin.all() else "solid"}
    figure.add_scatter(x=values, y=curve.mean, mode="lines", line=line, name=name)
    _add_points(figure, curve, colour, jitter=0.0)


def _add_categories(figure: go.Figure, curve: Marginal, colour: str, name: str) -> None:
    half = curve.high - curve.mean
    marker = {"color": [GREY if thin else colour for thin in curve.thin], "size": 11}
    _add_points(figure, curve, colour, jitter=0.12)
    arms = error_bars(half, half)
    figure.add_scatter(x=curve.code, y=curve.mean, mode="markers", marker=marker, error_y=arms, name=name)


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
        look = {"name": "estimated score" if estimated else "trial", "showlegend": False}
        figure.add_scatter(x=x, y=points.score[shown], mode="markers", marker=marker, **look)


def _label_values(figure: go.Figure, axis: Axis) -> None:
    if axis.is_category:
        labels = [str(choice) for choice in axis.choices]
        ends = [-0.5, len(labels) - 0.4]
        figure.update_xaxes(tickvals=list(range(len(labels))), ticktext=labels, range=ends)
    elif axis.is_log:
        label_log_axis(figure, axis.low, axis.high)
    else:
        figure.update_xaxes(type="linear")


def _pair_figure(pair: PairMap, share: Share, metric: str) -> go.Figure:
    """Draw the mean score over two parameters as a map."""
    known = np.isfinite(pair.mean)
    rows, columns = np.flatnonzero(known.any(axis=1)), np.flatnonzero(known.any(axis=0))
    figure = go.Figure(
        go.Heatmap(
            x=[pair.second.label(c) for c in pair.second.grid[columns]],
            y=[pair.first.label(c) for c in pair.first.grid[rows]],
            z=pair.mean[np.ix_(rows, columns)],
            customdata=Z * pair.error[np.ix_(rows, columns)],
            hovertemplate=f"{pair.second.name} %{{x}}<br>{pair.first.name} %{{y}}"
            f"<br>{metric} %{{z:.4f}} ± %{{customdata:.4f}}<extra></extra>",
            # Above the map: beside it, the bar would take a quarter of a phone's width.
            colorbar={"title": {"text": metric, "side": "top"}, "thickness": 10, "nticks": 6}
            | {"orientation": "h", "y": 1.0, "yanchor": "bottom"},
        )
    )
    title = f"{pair.first.name} x {pair.second.name}: {100 * share.share:.1f} %"
    figure.update_layout(title=title, xaxis_title=pair.second.name, yaxis_title=pair.first.name, height=480)
    figure.update_xaxes(type="category", title_standoff=16, **_cell_ticks(pair.second, columns))
    figure.update_yaxes(type="category", **_cell_ticks(pair.first, rows))
    return figure


def _cell_ticks(axis: Axis, cells: Any) -> dict[str, Any]:
    """Return the ticks of an axis whose categories are cells of a grid: round numbers at their places."""
    if axis.is_category or axis.is_integer:
        step = -(-len(cells) // MOST_TICKS)
        labels = [axis.label(axis.grid[cell]) for cell in cells[::step]]
        return {"tickvals": labels, "ticktext": labels}
    ticks = log_ticks(axis.low, axis.high) if axis.is_log else linear_ticks(axis.low, axis.high)
    # Between two categories, so that plotly reads a place and not the name of a category.
    places = axis.to_unit(ticks) * len(axis.grid) - 0.5 + 1e-6
    return {"tickvals": places, "ticktext": [plain(t) for t in ticks], "tickangle": 0}


PARTS: tuple[Part[Any], ...] = (
    Part[Importances](
        title="Importance",
        result=lambda one: one.importances,
        tell=_tell_importance,
        missing=_missing,
        tables=(
            TidyTable("importance", "Importance (PED-ANOVA)", _importance_rows),
            TidyTable(
                "variance",
                "Variance explained by one parameter (fANOVA)",
                lambda found, one: map(_share_row, one.shares),
            ),
        ),
    ),
    Part[Sequence[Marginal]](
        title="One parameter at a time",
        result=lambda one: one.surrogate if isinstance(one.surrogate, TooFew) else one.marginals,
        tell=_tell_marginals,
        name="surrogate (marginals, variance, tunability, robust region)",
        tables=(TidyTable("marginals", "Marginal curves", _marginal_rows, on_page=False),),
    ),
    Part[Sequence[Share]](
        title="Two parameters together",
        result=lambda one: one.interactions,
        tell=_tell_interactions,
        name="interactions",
        tables=(
            TidyTable(
                "interactions",
                "Variance explained by interactions",
                lambda found, one: map(_share_row, found),
            ),
            TidyTable("pairs", "Maps of pairs", _pair_rows, on_page=False),
        ),
    ),
)
