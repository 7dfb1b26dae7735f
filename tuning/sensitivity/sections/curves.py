"""The sections on one parameter at a time and on two together, at each stage of which enough is known."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from contrasweep.tuning.reports.style import COLOURS, GREY, MOST_TICKS, linear_ticks, log_ticks, plain
from contrasweep.tuning.search.axes import Axis
from contrasweep.tuning.sensitivity.analyse import StageSensitivity, StudySensitivity
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.marginals import Marginal, PairMap, Share, by_parameter, condition_text
from contrasweep.tuning.sensitivity.sections.part import (
    Part,
    Record,
    TidyTable,
    add_band,
    error_bars,
    label_log_axis,
)
from contrasweep.tuning.sensitivity.sections.stage import (
    LEAST_R2,
    share_row,
    stage_selector,
    surrogate_line,
    surrogate_rows,
)
from contrasweep.tuning.statistics import Z

PAIRS_DRAWN = 4
UPRIGHT = [0, 90]
"""Level labels where they fit, upright ones elsewhere: plotly hides slanted ones that leave the figure."""
MOST_LABELS = 20
SCALE = 66
"""The height of the colour scale above a map, in pixels."""
MOST_POINTS = 400
"""More trials than this are drawn as a sample: the page stays small and the curve visible."""

Known = Sequence[StageSensitivity]
"""The stages with a surrogate, or with interactions: in the order of the epochs, the end last."""


def _with_marginals(one: StudySensitivity) -> Known | TooFew:
    known = [stage for stage in one.stages if stage.forest.marginals]
    return known or _lack([stage.forest.surrogate for stage in one.stages])


def _with_pairs(one: StudySensitivity) -> Known | TooFew:
    known = [stage for stage in one.stages if _interactions(stage)]
    missing = "pairs of searched parameters that vary together"
    return known or _lack([stage.forest.interactions for stage in one.stages], missing)


def _lack(results: Sequence[object], missing: str = "searched parameters") -> TooFew:
    """Return what the first stage lacks: it is the one that the most trials reached."""
    return next((lack for lack in results if isinstance(lack, TooFew)), TooFew(0, 1, missing))


def _tell_marginals(found: Known, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    text = (
        "Mean predicted score over one parameter, averaged over the whole space of the others, with a "
        "pointwise 95 % interval; dots are trials (open: estimated score), the dotted vertical line is "
        "the default. The mean over the others is lower than the best trials: read the shape, not the "
        "height. Dotted or grey: very few trials."
    )
    weak = [surrogate_line(stage) for stage in found if len(found) == 1 or _is_weak(stage)]
    text = "\n\n".join([text, *weak])
    by_name = [by_parameter(stage.forest.marginals) for stage in found]
    return text, [
        stage_selector(
            [
                (stage.stage, _marginal_figure(own[name], stage.stage.metric))
                for stage, own in zip(found, by_name, strict=True)
            ]
        )
        for name in by_name[0]
    ]


def _is_weak(stage: StageSensitivity) -> bool:
    return not isinstance(stage.forest.surrogate, TooFew) and stage.forest.surrogate.r2 < LEAST_R2


def _marginal_rows(found: Known, one: StudySensitivity) -> Iterator[Record]:
    for stage in found:
        for m in stage.forest.marginals:
            for i, code in enumerate(m.code):
                numbers = {"mean": float(m.mean[i]), "low": float(m.low[i]), "high": float(m.high[i])}
                where = {"parameter": m.axis.name, "condition": condition_text(m.condition)}
                value = {"value": m.axis.value(code), **numbers, "few trials": bool(m.thin[i])}
                yield {"epoch": stage.stage.epoch, **where, **value}


def _tell_interactions(found: Known, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    counts = "; ".join(
        f"{sum(share.above_chance for share in shares)} of {len(shares)} pairs at {stage.stage.name}"
        for stage in found
        for shares in [_interactions(stage)]
    )
    text = (
        "The share of the surrogate's variance that two parameters explain beyond the sum of their own "
        f"shares. More than chance gives to any pair (95 %): {counts}. The maps show the mean score over "
        "both; the largest interactions come first."
    )
    figures = []
    for place in range(PAIRS_DRAWN):
        drawn = [(stage.stage, _pair_at(stage, place)) for stage in found]
        figures += [stage_selector([(s, figure) for s, figure in drawn if figure is not None], SCALE)]
    return text, [figure for figure in figures if figure.data]


def _interactions(stage: StageSensitivity) -> Sequence[Share]:
    return () if isinstance(stage.forest.interactions, TooFew) else stage.forest.interactions


def _pair_at(stage: StageSensitivity, place: int) -> go.Figure | None:
    """Draw the map of the interaction at a place in their order; None if there are fewer."""
    shares = _interactions(stage)
    if place >= len(shares):
        return None
    maps = {(p.first.name, p.second.name): p for p in stage.forest.pairs}
    share = shares[place]
    return _pair_figure(maps[share.parameters[0], share.parameters[1]], share, stage.stage.metric)


def _interaction_rows(found: Known, one: StudySensitivity) -> Iterator[Record]:
    for stage in found:
        for share in _interactions(stage):
            yield {"epoch": stage.stage.epoch, **share_row(share)}


def _pair_rows(found: Known, one: StudySensitivity) -> Iterator[Record]:
    for stage in found:
        for p in stage.forest.pairs:
            for i, j in np.argwhere(np.isfinite(p.mean)):
                first, second = p.first.value(p.first.grid[i]), p.second.value(p.second.grid[j])
                names = {"epoch": stage.stage.epoch, "first": p.first.name, "second": p.second.name}
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
        shown = range(0, len(labels), _label_step(len(labels)))
        figure.update_xaxes(tickvals=[*shown], ticktext=[labels[place] for place in shown], range=ends)
        figure.update_xaxes(autotickangles=UPRIGHT)
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
    if pair.second.is_category:
        figure.update_xaxes(autotickangles=UPRIGHT)
    figure.update_yaxes(type="category", **_cell_ticks(pair.first, rows))
    return figure


def _cell_ticks(axis: Axis, cells: Any) -> dict[str, Any]:
    """Return the ticks of an axis whose categories are cells of a grid: round numbers at their places."""
    if axis.is_category or axis.is_integer:
        step = _label_step(len(cells)) if axis.is_category else -(-len(cells) // MOST_TICKS)
        labels = [axis.label(axis.grid[cell]) for cell in cells[::step]]
        return {"tickvals": labels, "ticktext": labels}
    ticks = log_ticks(axis.low, axis.high) if axis.is_log else linear_ticks(axis.low, axis.high)
    # Between two categories, so that plotly reads a place and not the name of a category.
    places = axis.to_unit(ticks) * len(axis.grid) - 0.5 + 1e-6
    return {"tickvals": places, "ticktext": [plain(t) for t in ticks], "tickangle": 0}


def _label_step(categories: int) -> int:
    """Return 1 to label each category; more where even upright labels would touch."""
    return -(-categories // MOST_LABELS)


PARTS: tuple[Part[Any], ...] = (
    Part[Known](
        title="One parameter at a time",
        result=_with_marginals,
        tell=_tell_marginals,
        name="marginal curves, tunability, robust region",
        tables=(
            TidyTable(
                "surrogate", "The forest: what it rests on, and how it predicts unseen trials", surrogate_rows
            ),
            TidyTable("marginals", "Marginal curves", _marginal_rows, on_page=False),
        ),
    ),
    Part[Known](
        title="Two parameters together",
        result=_with_pairs,
        tell=_tell_interactions,
        name="interactions of two parameters",
        tables=(
            TidyTable("interactions", "Variance explained by interactions", _interaction_rows),
            TidyTable("pairs", "Maps of pairs", _pair_rows, on_page=False),
        ),
    ),
)
