"""The figures of a report on one study, for the screen; for papers, see `reports.matplotlib_figures`."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from contrasweep.names import counted
from contrasweep.tuning.methods.metrics import is_minimised
from contrasweep.tuning.reports.style import BREAKS, COLOURS, GREY
from contrasweep.tuning.results.best import best_name, merit, pareto_front
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.results.study import StudyData, TrialResult
from contrasweep.tuning.results.trials import Curve
from contrasweep.tuning.statistics import Floats

MANY = 100
"""Above this number of curves, each one is drawn paler."""
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
    BREAKS: Look(BLUE, "circle-open", 1.4),
}
"""By how a trial ended, or that it completed and cannot be the best one."""


def draw_progress(data: StudyData, drawn: Sequence[TrialResult]) -> go.Figure:
    """Draw the last score of each trial: the final one of completed trials, and the best of these so far.

    Of other trials, which have no final score, it is the cheap metric after their last epoch.
    """
    figure = go.Figure()
    for status, look in LOOKS.items():
        metric = data.metric if status in ("completed", BREAKS) else data.cheap_metric
        scored = [(t.number, last_score(t), t.epoch) for t in drawn if _standing(data, t) == status]
        points = [point for point in scored if point[1] is not None]
        if points:
            numbers, scores, epochs = zip(*points, strict=True)
            hover = f"trial %{{x}}, epoch %{{customdata}}: {metric} %{{y:.4g}}<extra>{status}</extra>"
            dots = {"mode": "markers", "marker": _marker(look, 7), "hovertemplate": hover}
            name = f"{status}: {metric}" if metric == data.metric else f"{status}: last {metric}"
            figure.add_scatter(x=numbers, y=scores, customdata=epochs, name=name, **dots)
    trials, best = data.best_so_far
    if trials:
        x, y, name = [*trials, data.trials[-1].number], [*best, best[-1]], best_name(data.metric)
        line = {"color": ORANGE, "width": 2.5, "shape": "hv"}
        hover = f"after trial %{{x}}: %{{y:.4g}}<extra>{name}</extra>"
        figure.add_scatter(x=x, y=y, mode="lines", name=name, line=line, hovertemplate=hover)
    _draw_untrained(figure, data.untrained_score(data.metric))
    figure.update_layout(
        title="Each trial, and the best so far",
        xaxis_title="trial",
        yaxis_title=data.metric,
        meta={"alt": _progress_alt(data, best)},
    )
    return _whole_numbers(figure)


def _standing(data: StudyData, trial: TrialResult) -> str:
    """Return how a trial ended; of a completed one also whether it breaks a condition of the search."""
    return BREAKS if trial.number in data.candidates.breaking else trial.status


def last_score(trial: TrialResult) -> float | None:
    """Return the score that the figure of the progress shows of a trial; None if it has none."""
    return trial.score if trial.status == "completed" else trial.last


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
            # Only the last point of a curve is marked: its status was decided there.
            marker=_marker(look, np.where(last, 7, 0)),
            hovertemplate=f"trial %{{customdata:d}}, epoch %{{x}}: %{{y:.4g}}<extra>{status}</extra>",
        )
    if data.ranked and (selected := data.curves.get(data.ranked[0].number)) is not None:
        epochs, scores = thinned(selected)
        hover = f"trial {selected.trial}, epoch %{{x}}: %{{y:.4g}}<extra>selected</extra>"
        bold = {"mode": "lines+markers", "line": {"color": ORANGE, "width": 3}, "marker": {"size": 6}}
        name = f"selected: trial {selected.trial}"
        figure.add_scatter(x=epochs, y=scores, name=name, hovertemplate=hover, **bold)
    _draw_untrained(figure, data.untrained)
    figure.update_layout(
        title="Learning curves",
        xaxis_title="epoch",
        yaxis_title=data.rung_metric,
        hovermode="closest",
        meta={
            "alt": f"Learning curves of {counted(len(drawn), 'trial')} of {data.name}: {data.rung_metric} "
            "by epoch, coloured by how each trial ended; the tables of this page hold the scores."
        },
    )
    return _whole_numbers(figure)


@dataclass(frozen=True)
class Point:
    """A completed trial and its scores by the metrics of the front."""

    trial: int
    scores: tuple[float, ...]


@dataclass(frozen=True)
class Front:
    """The trials on the Pareto front of two metrics or more, the other completed trials, and the control.

    Attributes:
        metrics: what is weighed against each other; `results.best` says which are better when small.
        members: the trials on the front, the best by the first metric first.
        others: the other trials that can be selected; each is beaten by one of the members.
        untrained: the scores of the untrained encoder; None unless all are known.
    """

    metrics: tuple[str, ...]
    members: Sequence[Point]
    others: Sequence[Point]
    untrained: tuple[float, ...] | None


def traded_metrics(data: StudyData) -> tuple[str, ...]:
    """Return the metrics whose Pareto front a report shows; empty if there is nothing to weigh.

    They are the metrics that the study selects by. A study of a single metric still has a trade where the
    colour error was recorded: between it and the metric, or an accuracy where the metric is the colour error
    itself (the balanced one where there is one). A large colour error means that the encoder has kept little
    of the colour.
    """
    if len(data.search.metrics) > 1:
        return data.search.metrics
    recorded = data.record.columns.metrics
    others = [name for name in (data.metric, *ACCURACIES) if name in recorded and name != COLOUR]
    return (others[0], COLOUR) if others and COLOUR in recorded else ()


def front_of(data: StudyData) -> Front | None:
    """Return the front of the trials that can be selected; None if none of them has two metrics to weigh."""
    metrics = traded_metrics(data)
    points = [
        Point(trial.number, tuple(trial.metrics[name] for name in metrics))
        for trial in sorted(data.ranked, key=lambda trial: trial.number)
        if all(name in trial.metrics for name in metrics)
    ]
    if not metrics or not points:
        return None
    places = set(pareto_front([_merits(metrics, point.scores) for point in points]))
    members = [points[place] for place in places]
    control = [score for score in map(data.untrained_score, metrics) if score is not None]
    return Front(
        metrics=metrics,
        members=sorted(members, key=lambda p: (*(-one for one in _merits(metrics, p.scores)), p.trial)),
        others=[point for place, point in enumerate(points) if place not in places],
        untrained=tuple(control) if len(control) == len(metrics) else None,
    )


def _merits(metrics: Sequence[str], scores: Sequence[float]) -> list[float]:
    return [merit(metric, score) for metric, score in zip(metrics, scores, strict=True)]


def draw_front(front: Front, drawn: Sequence[Point]) -> list[go.Figure]:
    """Draw the trials in the plane of each pair of the metrics; those on the front stand out.

    Args:
        front: the front, all of which is drawn.
        drawn: those of the other trials that are drawn.
    """
    return [_draw_plane(front, drawn, *pair) for pair in itertools.combinations(range(len(front.metrics)), 2)]


def _draw_plane(front: Front, drawn: Sequence[Point], across: int, up: int) -> go.Figure:
    figure = go.Figure()
    two = len(front.metrics) == 2

    def add(points: Sequence[Point], told: str, **look: Any) -> None:
        x, y = ([point.scores[metric] for point in points] for metric in (across, up))
        hover = f"trial %{{customdata}}: %{{x:.4g}}, %{{y:.4g}}<extra>{told}</extra>"
        numbers = [point.trial for point in points]
        figure.add_scatter(x=x, y=y, customdata=numbers, hovertemplate=hover, **look)

    add(drawn, "", name="not on the front", mode="markers", marker={"color": GREY, "size": 7})
    # The front of two metrics is a staircase; the projection of a front of more is a cloud. From the best by
    # the first metric on, a step goes across first: its corner is beaten by the trial that it leaves.
    stairs = {"mode": "lines+markers", "line": {"color": BLUE, "width": 1.5, "shape": "hv"}}
    look: dict[str, Any] = {"marker": {"color": BLUE, "size": 9, "symbol": "diamond"}}
    look |= stairs if two else {"mode": "markers"}
    add(front.members, "on the front", name="Pareto front", **look)
    if front.untrained is not None:
        figure.add_scatter(
            x=[front.untrained[across]],
            y=[front.untrained[up]],
            mode="markers",
            name="untrained encoder",
            marker={"color": RED, "size": 10, "symbol": "x"},
            hovertemplate="%{x:.4g}, %{y:.4g}<extra>untrained encoder</extra>",
        )
    figure.update_layout(
        title=f"The trade: {better_in_words(front.metrics, 'both' if two else 'all')}",
        xaxis_title=front.metrics[across],
        yaxis_title=front.metrics[up],
        meta={
            "alt": f"{len(front.members)} of {len(front.members) + len(front.others)} completed trials are "
            f"on the Pareto front of {', '.join(front.metrics)}; the table below lists them."
        },
    )
    return figure


def better_in_words(metrics: Sequence[str], every: str) -> str:
    """Say of which metrics larger values are better, and of which smaller ones; `every` stands for all."""
    small = [metric for metric in metrics if is_minimised(metric)]
    if not small:
        return f"larger is better in {every}"
    smaller = f"smaller is better in {' and '.join(small)}"
    rest = len(metrics) - len(small)
    return smaller + (f", larger in the other{'s' if rest > 1 else ''}" if rest else "")


def _marker(look: Look, size: Any) -> dict[str, Any]:
    # The edge has the same colour, because symbols without a face (a bar, an open square) are all edge.
    edge = {"width": 1.5, "color": look.colour}
    return {"color": look.colour, "symbol": look.symbol, "size": size, "line": edge}


def _joined(curves: Sequence[Curve]) -> tuple[Floats, Floats, Floats, np.ndarray]:
    """Join curves, with gaps between them: epochs, scores, trial numbers, whether a point is a curve's last.

    A browser draws one trace of many lines far faster than one trace for each line.
    """
    parts = []
    for curve in curves:
        epochs, scores = (np.append(values, np.nan) for values in thinned(curve))
        last = np.zeros(len(epochs), dtype=bool)
        last[np.flatnonzero(np.isfinite(scores))[-1:]] = True
        parts.append((epochs, scores, np.full(len(epochs), float(curve.trial)), last))
    x, y, numbers, lasts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return x, y, numbers, lasts


def _draw_untrained(figure: go.Figure, score: float | None) -> None:
    if score is not None:
        line, name = (
            {"color": GREY, "width": 1.5, "dash": "dash"},
            f"untrained encoder ({number_text(score)})",
        )
        figure.add_hline(y=score, line=line)
        # A horizontal line has no entry in the legend; this empty trace adds it.
        figure.add_scatter(x=[None], y=[None], mode="lines", name=name, line=line)


def _progress_alt(data: StudyData, best: Sequence[float]) -> str:
    reached = f"{best_name(data.metric)} {number_text(best[-1])}" if best else "there is no best one"
    untrained = data.untrained_score(data.metric)
    control = "" if untrained is None else f"; the untrained encoder has {number_text(untrained)}"
    return f"Scores of {counted(len(data.trials), 'trial')} of {data.name}: {reached}{control}."


def _whole_numbers(figure: go.Figure) -> go.Figure:
    """Label a short axis of epochs or trials with whole numbers only."""
    points = [x for trace in figure.data if trace.x is not None for x in trace.x if x is not None]
    numbers = [x for x in points if np.isfinite(x)]
    if numbers and max(numbers) - min(numbers) < 6:
        figure.update_xaxes(dtick=1)
    return figure


BEST_SHARE = 0.1
"""The share of the drawn trials that are the best ones; the others are evenly spaced by number."""
MAX_POINTS = 100
"""A longer learning curve is thinned to this many epochs, including the first and the last."""


@dataclass(frozen=True)
class Sample:
    """The trials that a figure draws, and a sentence that says which; the sentence is empty for all."""

    trials: Sequence[TrialResult]
    said: str


def sampled(data: StudyData, trials: Sequence[TrialResult], limit: int) -> Sample:
    """Return at most `limit` of the `trials`: some of the best, and others evenly spaced by number."""
    if len(trials) <= limit:
        return Sample(trials, "")
    wanted = {trial.number for trial in trials}
    best = [trial.number for trial in data.ranked if trial.number in wanted][: int(limit * BEST_SHARE)]
    others = [trial for trial in trials if trial.number not in best]
    places = np.linspace(0, len(others) - 1, limit - len(best)).round().astype(int)
    drawn = {others[place].number for place in places} | set(best)
    said = (
        f"Drawn: {len(drawn):,} of {len(trials):,} trials, the {len(best)} best "
        "and the others evenly spaced by number."
    )
    return Sample([trial for trial in trials if trial.number in drawn], said)


def thinned(curve: Curve) -> tuple[Floats, Floats]:
    """Return the epochs and scores of a curve, at most `MAX_POINTS` of each."""
    if len(curve.epochs) <= MAX_POINTS:
        return curve.epochs, curve.scores
    places = np.unique(np.linspace(0, len(curve.epochs) - 1, MAX_POINTS).round().astype(int))
    return curve.epochs[places], curve.scores[places]
