"""The figures of a sensitivity analysis for papers, drawn with matplotlib as PDF and PNG."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contrasweep.tuning.reports.matplotlib_figures import check_figure
from contrasweep.tuning.reports.style import COLOURS, GREY, log_ticks
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.budget import BudgetCurve
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import SAFE, Fidelity, RungFidelity
from contrasweep.tuning.sensitivity.importance import Importance
from contrasweep.tuning.sensitivity.marginals import Marginal, by_parameter
from contrasweep.tuning.sensitivity.scores import Stage

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".pdf", ".png")
COLUMNS = 3
TICKS = 4
"""A panel has room for so many numbers along its axis."""


def draw_paper_figures(found: StudySensitivity, folder: Path) -> list[Path]:
    """Draw marginals, importance, budget, fidelity and rungs into `folder`, unless they need more trials.

    Returns:
        The written files: `STUDY-FIGURE.pdf` and `.png`.

    Raises:
        InputError: matplotlib is not installed.
    """
    check_figure(folder / "any.pdf")
    written = []
    for name, figure in _figures(found):
        folder.mkdir(parents=True, exist_ok=True)
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        for ending in ENDINGS:
            path = folder / f"{found.observations.study}-{name}{ending}"
            figure.savefig(path, dpi=200)
            written.append(path)
    return written


def _figures(found: StudySensitivity) -> Iterator[tuple[str, "Figure"]]:
    from matplotlib.figure import Figure

    def new(width: float, height: float) -> Figure:
        return Figure(figsize=(width, height), layout="constrained")

    metric, untrained = found.observations.metric, found.observations.untrained
    curves = [stage for stage in found.stages if stage.forest.marginals]
    if curves:
        # The latest of which enough is known: the end, unless early stopping left too few trials.
        latest, groups = curves[-1].stage, by_parameter(curves[-1].forest.marginals)
        rows = -(-len(groups) // COLUMNS)
        label = latest.metric if latest.is_end else f"{latest.metric}, {latest.name}"
        yield "marginals", _marginals(new(7.0, 2.2 * rows), rows, groups, label)
    judged = [(stage.stage, known) for stage in found.stages if (known := stage.judged)]
    if judged:
        height = 0.9 + 0.26 * max(len(known) for _, known in judged)
        yield "importance", _importance(new(4.5 + 2.5 * (len(judged) - 1), height), judged)
    if not isinstance(found.budget, TooFew):
        yield "budget", _budget(new(3.5, 2.6), found.budget, metric, untrained)
    if not isinstance(found.fidelity, TooFew) and found.fidelity.epochs:
        yield "fidelity", _fidelity(new(3.5, 2.6), found.fidelity)
    if not isinstance(found.fidelity, TooFew) and found.fidelity.links:
        yield "rungs", _rungs(new(3.5, 1.0 + 0.28 * len(found.fidelity.links)), found.fidelity.links)


def _marginals(
    figure: "Figure", rows: int, groups: Mapping[str, Sequence[Marginal]], metric: str
) -> "Figure":
    grid = figure.subplots(rows, min(COLUMNS, len(groups)), sharey=True, squeeze=False)
    places = grid.flatten()
    for axes, (name, curves) in zip(places, groups.items(), strict=False):
        for i, curve in enumerate(curves):
            _draw_marginal(axes, curve, COLOURS[i % len(COLOURS)])
        axes.set_xlabel(name)
        axes.tick_params(labelsize=8)
        if curves[0].condition:
            axes.legend(frameon=False, fontsize=6)
    for axes in places[len(groups) :]:
        axes.set_visible(False)
    # One for all rows: a single row is often lower than the name of its metric is long.
    figure.supylabel(metric, fontsize=10)
    return figure


def _draw_marginal(axes: "Axes", curve: Marginal, colour: str) -> None:
    look: dict[str, Any] = {"color": colour, "label": ", ".join(map(str, curve.condition.values())) or None}
    if curve.axis.is_category:
        axes.errorbar(curve.code, curve.mean, curve.high - curve.mean, fmt="o", capsize=3, **look)
        labels = [str(choice) for choice in curve.axis.choices]
        turned = 30 if sum(map(len, labels)) > 18 else 0
        axes.set_xticks(range(len(labels)), labels, rotation=turned)
        axes.set_xlim(-0.5, len(labels) - 0.5)
        return
    values: Any = [curve.axis.value(code) for code in curve.code]
    axes.fill_between(values, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(values, curve.mean, linestyle=":" if curve.thin.all() else "-", **look)
    if curve.axis.is_log:
        axes.set_xscale("log")
        ticks = log_ticks(min(values), max(values), TICKS)
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)


def _importance(figure: "Figure", judged: Sequence[tuple[Stage, Sequence[Importance]]]) -> "Figure":
    """Draw the importances of each stage beside each other, in the order of the first."""
    order = [i.name for i in sorted(judged[0][1], key=lambda i: i.share)]
    grid = figure.subplots(1, len(judged), sharey=True, squeeze=False)[0]
    for axes, (stage, known) in zip(grid, judged, strict=True):
        places = [order.index(i.name) for i in known if i.name in order]
        shown = [i for i in known if i.name in order]
        share, low, high = np.array([(i.share, i.low, i.high) for i in shown]).T
        colours = [COLOURS[0] if i.above_chance else GREY for i in shown]
        arms = np.maximum(0, [share - low, high - share])
        axes.barh(places, share, color=colours, xerr=arms, error_kw={"elinewidth": 1, "capsize": 2})
        chance = [i.by_chance for i in shown]
        # White around the mark, and below the interval: the red is as bright as a grey bar.
        axes.plot(chance, places, "|", color="white", markersize=13, markeredgewidth=3.5, zorder=1.5)
        axes.plot(chance, places, "|", color=COLOURS[5], markersize=12, markeredgewidth=1.5, label="chance")
        if len(judged) > 1:
            axes.set_title(stage.name, fontsize=9)
    grid[0].set_yticks(range(len(order)), order)
    figure.supxlabel("share of being among the best", fontsize=10)
    grid[-1].legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), fontsize=7)
    return figure


def _rungs(figure: "Figure", links: Sequence[RungFidelity]) -> "Figure":
    """Draw the rank correlation of each rung with each later stage, over all trials."""
    axes = figure.subplots()
    value, low, high = np.array([(e.estimated, e.estimated_low, e.estimated_high) for e in links[::-1]]).T
    rows = np.arange(len(links))
    arms = np.maximum(0, [value - low, high - value])
    axes.errorbar(value, rows, xerr=arms, fmt="o", color=COLOURS[0], markersize=4, capsize=2)
    axes.axvline(SAFE, color=GREY, linestyle=":")
    axes.set_yticks(rows, [f"{e.epoch} to {e.later_name.removeprefix('epoch ')}" for e in links[::-1]])
    axes.set(xlabel="rank correlation", ylabel="epoch", xlim=(min(0, *low) - 0.02, 1.02))
    return figure


def _budget(figure: "Figure", b: BudgetCurve, metric: str, untrained: float) -> "Figure":
    axes = figure.subplots()
    axes.fill_between(b.trials, b.low, b.high, color=COLOURS[0], alpha=0.18, linewidth=0)
    axes.plot(b.trials, b.expected, color=COLOURS[0], label="expected best")
    x, y = np.append(b.progress_trials, b.ended), np.append(b.progress_score, b.progress_score[-1])
    axes.step(x, y, where="post", color=COLOURS[5], linestyle="--", label="as it happened")
    if np.isfinite(untrained):
        axes.axhline(untrained, color=GREY, linestyle=":", label="untrained")
    axes.set_xscale("log")
    axes.set(xlabel="trials", ylabel=f"best {metric}")
    axes.legend(frameon=False, fontsize=7)
    return figure


def _fidelity(figure: "Figure", f: Fidelity) -> "Figure":
    from matplotlib.ticker import MaxNLocator

    axes = figure.subplots()
    epochs, low, high = zip(*((e.epoch, e.low, e.high) for e in f.epochs), strict=True)
    axes.fill_between(epochs, low, high, color=COLOURS[0], alpha=0.18, linewidth=0)
    axes.plot(epochs, [e.spearman for e in f.epochs], "o-", color=COLOURS[0], markersize=3, label="Spearman")
    axes.plot(epochs, [e.kendall for e in f.epochs], "--", color=COLOURS[1], label="Kendall")
    for rung in f.rungs:
        axes.axvline(rung, color=GREY, linestyle=":", linewidth=1)
    axes.set(xlabel="epoch", ylabel="rank correlation", ylim=(min(0, *low), 1.02))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=7)
    return figure
