"""Figures for papers and READMEs, drawn with matplotlib from the rows of the store."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contrasweep.data import InformationCurve
from contrasweep.search_spaces import Space
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import check_file
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.results.trials import epoch_means, trial_outcomes
from contrasweep.tuning.statistics import improvements
from contrasweep.tuning.store import ResultsStore

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".png", ".pdf", ".svg")


@dataclass(frozen=True)
class Curve:
    """One trial's scores over its epochs, how it ended, and the category that colours it."""

    trial: int
    epochs: tuple[int, ...]
    scores: tuple[float, ...]
    status: str
    category: str


def study_curves(store: ResultsStore, study: str) -> list[Curve]:
    """Return the learning curves of a study's trials (means over seeds), by its rung metric.

    The category is the value of the first searched choice (the kernel, say); without one, the status.
    """
    record = store.study(study)
    space = Space.parse(record.space, f"the space of study {study}")
    choices = [p.name for p in space.searched if p.type == "string"]
    tables = store.tables(study)
    points = epoch_means(tables.epochs, record, record.rung_metric)
    curves = []
    for one in trial_outcomes(tables.trials, record):
        if one.trial not in points:
            continue
        found = points[one.trial]
        epochs, scores = tuple(map(int, found.epochs)), tuple(found.scores.tolist())
        category = str(one.values.get(choices[0])) if choices else one.status
        curves.append(Curve(one.trial, epochs, scores, one.status, category))
    return curves


def draw_study(store: ResultsStore, study: str, path: Path) -> None:
    """Draw a study into `path`: every trial's learning curve, and the best score against the trials spent.

    Raises:
        InputError: the file's ending is not .png, .pdf or .svg, or matplotlib is not installed.
        StoreError: there is no such study.
    """
    check_figure(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    curves = study_curves(store, study)
    record = store.study(study)
    untrained = next((c.scores[0] for c in curves if c.epochs[0] == 0), None)
    figure = Figure(figsize=(9, 3.4), layout="constrained", dpi=160)
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_curves(left, curves)
    _draw_progress(right, curves)
    for axes in (left, right):
        if untrained is not None:
            axes.axhline(untrained, color="black", linewidth=1, linestyle="--", label="untrained encoder")
        axes.spines[["top", "right"]].set_visible(False)
    left.set(xlabel="epoch", ylabel=record.rung_metric, title="each trial")
    right.set(xlabel="trial", title="best so far")
    for axes in (left, right):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    figure.suptitle(f"{record.method} on {record.dataset}: {len(curves)} trials", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def draw_cluster_curve(curve: InformationCurve, title: str, path: Path) -> None:
    """Draw I(Z; T) and H(Z | T) over k into `path`: in bits, and rescaled with their crossing.

    Raises:
        InputError: the file's ending is not .png, .pdf or .svg, or matplotlib is not installed.
    """
    check_figure(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained", dpi=110)
    bits, rescaled = figure.subplots(1, 2)
    bits.plot(curve.ks, curve.information, "o-", color=COLOURS[0], markersize=3, label="I(Z; T)")
    bits.plot(curve.ks, curve.conditional_entropy, "s-", color=COLOURS[5], markersize=3, label="H(Z | T)")
    bits.set(ylabel="bits", title="what the clusters say")
    _draw_rescaled(rescaled, curve)
    for axes in (bits, rescaled):
        axes.set_xscale("log")
        axes.set_xticks(_ticks(curve.ks), [str(k) for k in _ticks(curve.ks)])
        axes.minorticks_off()
        axes.set_xlabel("k, attributes of highest entropy")
        axes.spines[["top", "right"]].set_visible(False)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    figure.suptitle(title, fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def check_figure(path: Path, option: str = "") -> None:
    """Raise InputError unless a figure can be drawn into `path`: its ending is known, matplotlib is there."""
    check_file(path, option, FORMATS)
    if find_spec("matplotlib") is None:
        raise InputError("figures need matplotlib: pip install 'contrasweep[plots]'")


def _draw_curves(axes: "Axes", curves: Sequence[Curve]) -> None:
    colours = _colours(curves)
    labelled = set()
    for curve in curves:
        label = None if curve.category in labelled else curve.category
        labelled.add(curve.category)
        complete = curve.status == "completed"
        axes.plot(
            curve.epochs,
            curve.scores,
            color=colours[curve.category],
            linewidth=1.6 if complete else 0.9,
            alpha=1.0 if complete else 0.6,
            marker=None if complete else "|",
            markevery=[-1],
            label=label,
        )


def _draw_progress(axes: "Axes", curves: Sequence[Curve]) -> None:
    axes.plot([c.trial for c in curves], [c.scores[-1] for c in curves], "o", color=GREY, markersize=3)
    best = np.array(
        [max((s for e, s in zip(c.epochs, c.scores, strict=True) if e > 0), default=np.nan) for c in curves]
    )
    places = improvements(best)
    if len(places):
        trials = [*(curves[place].trial for place in places), curves[-1].trial]
        axes.step(trials, [*best[places], best[places[-1]]], where="post", color="black", linewidth=1.4)


def _colours(curves: Sequence[Curve]) -> Mapping[str, Any]:
    categories = list(dict.fromkeys(curve.category for curve in curves))
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(categories)}


def _draw_rescaled(axes: "Axes", curve: InformationCurve) -> None:
    rising, falling, crossing = curve.rescaled_information, curve.rescaled_negative_entropy, curve.crossing
    if rising is not None:
        axes.plot(curve.ks, rising, "o-", color=COLOURS[0], markersize=3, label="I(Z; T)")
    if falling is not None:
        axes.plot(curve.ks, falling, "s-", color=COLOURS[5], markersize=3, label="-H(Z | T)")
    if crossing is not None:
        label = f"crossing at {crossing.at:.1f}"
        axes.axvline(crossing.at, color="black", linewidth=1, linestyle="--", label=label)
    title = "rescaled to 0..1" + ("" if crossing is None else f": take k = {crossing.k}")
    axes.set(title=title, ylim=(-0.03, 1.03))


def _ticks(ks: tuple[int, ...]) -> list[int]:
    """About eight of the k, evenly spread over the logarithmic axis."""
    shown = [ks[0]]
    step = (ks[-1] / ks[0]) ** (1 / 8)
    for k in ks[1:]:
        if k >= shown[-1] * step:
            shown.append(k)
    return shown
