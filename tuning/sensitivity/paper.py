"""Four figures of a sensitivity analysis for papers, drawn with matplotlib as PDF and PNG."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contrasweep.tuning.reports.matplotlib_figures import check_figure
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.budget import BudgetCurve
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.fidelity import Fidelity
from contrasweep.tuning.sensitivity.importance import Importance
from contrasweep.tuning.sensitivity.marginals import Marginal, by_parameter

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ENDINGS = (".pdf", ".png")
COLUMNS = 3


def draw_paper_figures(found: StudySensitivity, folder: Path) -> list[Path]:
    """Draw marginals, importance, budget and fidelity into `folder`, unless they need more trials.

    Returns:
        The written files: `STUDY-FIGURE.pdf` and `.png`.

    Raises:
        InputError: matplotlib is not installed.
    """
    check_figure(folder / "any.pdf")
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, figure in _figures(found):
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
    if groups := by_parameter(found.marginals):
        rows = -(-len(groups) // COLUMNS)
        yield "marginals", _marginals(new(7.0, 2.2 * rows), rows, groups, metric)
    if known := sorted((i for i in found.importances if isinstance(i, Importance)), key=lambda i: i.share):
        yield "importance", _importance(new(4.5, 0.9 + 0.26 * len(known)), known)
    if not isinstance(found.budget, TooFew):
        yield "budget", _budget(new(3.5, 2.6), found.budget, metric, untrained)
    if not isinstance(found.fidelity, TooFew) and found.fidelity.epochs:
        yield "fidelity", _fidelity(new(3.5, 2.6), found.fidelity)


def _marginals(
    figure: "Figure", rows: int, groups: Mapping[str, Sequence[Marginal]], metric: str
) -> "Figure":
    grid = figure.subplots(rows, min(COLUMNS, len(groups)), sharey=True, squeeze=False)
    places = grid.flatten()
    for axes, (name, curves) in zip(places, groups.items(), strict=False):
        for i, curve in enumerate(curves):
            _draw_marginal(axes, curve, COLOURS[i % len(COLOURS)])
        axes.set_xlabel(name)
        if curves[0].condition:
            axes.legend(frameon=False, fontsize=6)
    for axes in places[len(groups) :]:
        axes.set_visible(False)
    for axes in grid[:, 0]:
        axes.set_ylabel(metric)
    return figure


def _draw_marginal(axes: "Axes", curve: Marginal, colour: str) -> None:
    look: dict[str, Any] = {"color": colour, "label": ", ".join(map(str, curve.condition.values())) or None}
    if curve.axis.is_category:
        axes.errorbar(curve.code, curve.mean, curve.high - curve.mean, fmt="o", capsize=3, **look)
        labels = [str(choice) for choice in curve.axis.choices]
        turned = 30 if sum(map(len, labels)) > 18 else 0
        axes.set_xticks(range(len(labels)), labels, rotation=turned, fontsize=7)
        axes.set_xlim(-0.5, len(labels) - 0.5)
        return
    values: Any = [curve.axis.value(code) for code in curve.code]
    axes.fill_between(values, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(values, curve.mean, linestyle=":" if curve.thin.all() else "-", **look)
    axes.set_xscale("log" if curve.axis.is_log else "linear")


def _importance(figure: "Figure", known: Sequence[Importance]) -> "Figure":
    axes = figure.subplots()
    names = [i.name for i in known]
    share, low, high = np.array([(i.share, i.low, i.high) for i in known]).T
    colours = [COLOURS[0] if i.above_chance else GREY for i in known]
    arms = np.maximum(0, [share - low, high - share])
    axes.barh(names, share, color=colours, xerr=arms, error_kw={"elinewidth": 1, "capsize": 2})
    chance = [i.by_chance for i in known]
    axes.plot(chance, range(len(known)), "|", color=COLOURS[5], markersize=12, label="chance")
    axes.set_xlabel("share of being among the best")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0))
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
    corrected = [(e.epoch, e.corrected) for e in f.epochs if e.corrected is not None]
    if corrected:
        axes.plot(*zip(*corrected, strict=True), "D", mfc="none", color=COLOURS[3], label="selection undone")
    for rung in f.rungs:
        axes.axvline(rung, color=GREY, linestyle=":", linewidth=1)
    axes.set(xlabel="epoch", ylabel="rank correlation", ylim=(min(0, *low), 1.02))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False, fontsize=7)
    return figure
