"""The figures of a report on one study, for the screen; for papers, see `reports.matplotlib_figures`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from contrasweep.tuning.reports.sample import thinned
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.results.selection import pareto_front
from contrasweep.tuning.results.study import StudyData, TrialResult
from contrasweep.tuning.results.trials import Curve, Floats
from contrasweep.tuning.statistics import improvements

MANY = 100
"""Of more curves, each is drawn paler."""
ACCURACIES = ("val.balanced_accuracy", "val.accuracy")
COLOUR = "val.colour_mse"

BLUE, ORANGE, GREEN, PINK, _, RED, _ = COLOURS


@dataclass(frozen=True)
class Look:
    """How trials of one status are drawn; the symbol tells them apart without colour."""

    colour: str
    symbol: str
    width: float = 1.0


LOOKS = {
    "stopped": Look(GREY, "line-ns-open"),
    "completed": Look(BLUE, "circle", 1.4),
    "running": Look(GREEN, "triangle-right"),
    "interrupted": Look(PINK, "square-open"),
    "failed": Look(RED, "x"),
}


def draw_progress(data: StudyData, drawn: Sequence[TrialResult]) -> go.Figure:
    """Draw the score of each trial after its last epoch, and the best so far of all trials."""
    figure = go.Figure()
    for status, look in LOOKS.items():
        points = [t for t in drawn if t.status == status and t.last is not None]
        if points:
            figure.add_scatter(
                x=[t.number for t in points],
                y=[t.last for t in points],
                customdata=[t.epoch for t in points],
                mode="markers",
                name=status,
                marker=_marker(look, 7),
                hovertemplate=f"trial %{{x}}, epoch %{{customdata}}: %{{y:.4g}}<extra>{status}</extra>",
            )
    trials, best = best_so_far(data.curves.values())
    if trials:
        figure.add_scatter(
            x=[*trials, data.trials[-1].number],
            y=[*best, best[-1]],
            mode="lines",
            name="best so far",
            line={"color": ORANGE, "width": 2.5, "shape": "hv"},
            hovertemplate="after trial %{x}: %{y:.4g}<extra>best so far</extra>",
        )
    _draw_untrained(figure, data.untrained)
    figure.update_layout(
        title="Each trial, and the best so far",
        xaxis_title="trial",
        yaxis_title=data.rung_metric,
        meta={"alt": _progress_alt(data, best)},
    )
    return _whole_numbers(figure)


def best_so_far(curves: Iterable[Curve]) -> tuple[list[int], list[float]]:
    """Return the trials that improved on all before them, and their best score after any trained epoch."""
    drawn = list(curves)
    best = np.array([np.max(curve.scores[_trained(curve)], initial=-np.inf) for curve in drawn])
    places = improvements(best)
    return [drawn[place].trial for place in places], best[places].tolist()


def _trained(curve: Curve) -> NDArray[np.bool_]:
    return (curve.epochs > 0) & np.isfinite(curve.scores)


def draw_curves(data: StudyData, drawn: Sequence[TrialResult]) -> go.Figure:
    """Draw learning curves by how their trials ended; the selected trial stands out."""
    figure = go.Figure()
    for status, look in LOOKS.items():
        curves = [data.curves[t.number] for t in drawn if t.status == status and t.number in data.curves]
        if not curves:
            continue
        x, y, number, last = _joined(curves)
        figure.add_scatter(
            x=x,
            y=y,
            customdata=number,
            mode="lines+markers",
            name=f"{status} ({len(curves):,})",
            line={"color": look.colour, "width": look.width},
            opacity=0.75 if len(drawn) <= MANY else 0.3,
            # Only the end of a curve is marked: there, its status was decided.
            marker=_marker(look, np.where(last, 7, 0)),
            hovertemplate=f"trial %{{customdata:d}}, epoch %{{x}}: %{{y:.4g}}<extra>{status}</extra>",
        )
    if data.ranked and data.ranked[0].number in data.curves:
        best = data.ranked[0].number
        epochs, scores = thinned(data.curves[best])
        figure.add_scatter(
            x=epochs,
            y=scores,
            mode="lines+markers",
            name=f"selected: trial {best}",
            line={"color": ORANGE, "width": 3},
            marker={"size": 6},
            hovertemplate=f"trial {best}, epoch %{{x}}: %{{y:.4g}}<extra>selected</extra>",
        )
    _draw_untrained(figure, data.untrained)
    figure.update_layout(
        title="Learning curves",
        xaxis_title="epoch",
        yaxis_title=data.rung_metric,
        hovermode="closest",
        meta={
            "alt": f"Learning curves of {len(drawn)} trials of {data.name}: {data.rung_metric} by epoch, "
            "coloured by how each trial ended; the tables of this page hold the scores."
        },
    )
    return _whole_numbers(figure)


@dataclass(frozen=True)
class Point:
    """A completed trial in the plane of two metrics."""

    trial: int
    first: float
    second: float


@dataclass(frozen=True)
class Front:
    """The trials on the front, by falling first metric; the others; the untrained encoder's two scores."""

    metrics: tuple[str, str]
    members: Sequence[Point]
    others: Sequence[Point]
    untrained: tuple[float, float] | None


def front_of(data: StudyData) -> Front | None:
    """Return the front of a study's completed trials; None if it lacks a metric or no trial has both.

    Both are maximised: a large colour error means that little of the colour is kept. The accuracy is the one
    that the search maximises, or else the balanced one where there is one.
    """
    recorded = data.record.columns.metrics
    accuracies = [name for name in (data.metric, *ACCURACIES) if name in recorded and name != COLOUR]
    if not accuracies or COLOUR not in recorded:
        return None
    metrics = (accuracies[0], COLOUR)
    points = [
        Point(trial.number, trial.metrics[metrics[0]], trial.metrics[metrics[1]])
        for trial in data.trials
        if trial.status == "completed" and all(name in trial.metrics for name in metrics)
    ]
    if not points:
        return None
    places = set(pareto_front([(point.first, point.second) for point in points]))
    members = [points[place] for place in places]
    control = [data.untrained_score(name) for name in metrics]
    return Front(
        metrics=metrics,
        members=sorted(members, key=lambda p: (-p.first, -p.second, p.trial)),
        others=[point for place, point in enumerate(points) if place not in places],
        untrained=None if control[0] is None or control[1] is None else (control[0], control[1]),
    )


def draw_front(front: Front) -> go.Figure:
    """Draw completed trials in the plane of two metrics, and those that no other beats in both."""
    figure = go.Figure()
    marker: dict[str, Any] = {"color": GREY, "size": 7}
    _add_points(figure, front.others, "", mode="markers", name="beaten in both", marker=marker)
    line, marker = {"color": BLUE, "width": 1.5, "shape": "vh"}, {"size": 9, "symbol": "diamond"}
    look = {"mode": "lines+markers", "line": line, "marker": marker}
    _add_points(figure, front.members, "on the front", name="Pareto front", **look)
    if front.untrained is not None:
        figure.add_scatter(
            x=[front.untrained[0]],
            y=[front.untrained[1]],
            mode="markers",
            name="untrained encoder",
            marker={"color": RED, "size": 10, "symbol": "x"},
            hovertemplate="%{x:.4g}, %{y:.4g}<extra>untrained encoder</extra>",
        )
    figure.update_layout(
        title="The trade: larger is better in both",
        xaxis_title=front.metrics[0],
        yaxis_title=front.metrics[1],
        meta={
            "alt": f"{len(front.members)} of {len(front.members) + len(front.others)} completed trials are "
            f"on the Pareto front of {front.metrics[0]} and {front.metrics[1]}; the table below lists them."
        },
    )
    return figure


def _add_points(figure: go.Figure, points: Sequence[Point], told: str, **look: Any) -> None:
    figure.add_scatter(
        x=[p.first for p in points],
        y=[p.second for p in points],
        customdata=[p.trial for p in points],
        hovertemplate=f"trial %{{customdata}}: %{{x:.4g}}, %{{y:.4g}}<extra>{told}</extra>",
        **look,
    )


def _marker(look: Look, size: Any) -> dict[str, Any]:
    # The edge in the same colour: symbols without a face (a bar, an open square) are all edge.
    edge = {"width": 1.5, "color": look.colour}
    return {"color": look.colour, "symbol": look.symbol, "size": size, "line": edge}


def _joined(curves: Sequence[Curve]) -> tuple[Floats, Floats, Floats, np.ndarray]:
    """Curves end to end with a gap between them: epochs, scores, trial numbers, whether it is a curve's end.

    One trace of many lines is drawn far faster than a trace for each.
    """
    x: list[Floats] = []
    y: list[Floats] = []
    numbers: list[Floats] = []
    last: list[np.ndarray] = []
    gap = np.array([np.nan])
    for curve in curves:
        epochs, scores = thinned(curve)
        usable = np.flatnonzero(np.isfinite(scores))
        end = np.zeros(len(epochs) + 1, dtype=bool)
        end[usable[-1:]] = True
        x += [epochs, gap]
        y += [scores, gap]
        numbers.append(np.full(len(epochs) + 1, float(curve.trial)))
        last.append(end)
    return np.concatenate(x), np.concatenate(y), np.concatenate(numbers), np.concatenate(last)


def _draw_untrained(figure: go.Figure, score: float | None) -> None:
    if score is not None:
        figure.add_hline(y=score, line={"color": GREY, "width": 1.5, "dash": "dash"})
        # A line across the plot has no entry in the legend.
        figure.add_scatter(
            x=[None],
            y=[None],
            mode="lines",
            name=f"untrained encoder ({score:.4g})",
            line={"color": GREY, "width": 1.5, "dash": "dash"},
        )


def _progress_alt(data: StudyData, best: Sequence[float]) -> str:
    reached = f"the best {data.rung_metric} so far is {best[-1]:.4g}" if best else "none has trained yet"
    control = "" if data.untrained is None else f"; the untrained encoder has {data.untrained:.4g}"
    return f"Scores of {len(data.trials)} trials of {data.name}: {reached}{control}."


def _whole_numbers(figure: go.Figure) -> go.Figure:
    """Epochs and trials are counted: an axis of few of them needs no halves."""
    points = [x for trace in figure.data if trace.x is not None for x in trace.x if x is not None]
    numbers = [x for x in points if np.isfinite(x)]
    if numbers and max(numbers) - min(numbers) < 6:
        figure.update_xaxes(dtick=1)
    return figure
