"""Four figures of a sensitivity analysis for papers, drawn with matplotlib as PDF and PNG."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from contrasweep.tuning.reports.matplotlib_figures import check_figure
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.enough import TooFew
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
        for ending in ENDINGS:
            path = folder / f"{found.observations.study}-{name}{ending}"
            figure.savefig(path, dpi=200)
            written.append(path)
    return written


def _figures(found: StudySensitivity) -> Iterator[tuple[str, Figure]]:
    drawn: dict[str, Callable[[StudySensitivity], Figure | None]] = {
        "marginals": _marginals,
        "importance": _importance,
        "budget": _budget,
        "fidelity": _fidelity,
    }
    for name, draw in drawn.items():
        figure = draw(found)
        if figure is not None:
            yield name, figure


def _new(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _marginals(found: StudySensitivity) -> Figure | None:
    groups = by_parameter(found.marginals)
    if not groups:
        return None
    rows = -(-len(groups) // COLUMNS)
    figure = _new(7.0, 2.2 * rows)
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
        axes.set_ylabel(found.observations.metric)
    _tidy(figure)
    return figure


def _draw_marginal(axes: Axes, curve: Marginal, colour: str) -> None:
    label = ", ".join(map(str, curve.condition.values())) or None
    if curve.axis.is_category:
        axes.errorbar(
            curve.code, curve.mean, curve.high - curve.mean, fmt="o", color=colour, capsize=3, label=label
        )
        labels = [str(choice) for choice in curve.axis.choices]
        turned = 30 if sum(map(len, labels)) > 18 else 0
        axes.set_xticks(range(len(labels)), labels, rotation=turned, fontsize=7)
        axes.set_xlim(-0.5, len(labels) - 0.5)
        return
    values: Any = [curve.axis.value(code) for code in curve.code]
    axes.fill_between(values, curve.low, curve.high, color=colour, alpha=0.18, linewidth=0)
    axes.plot(values, curve.mean, color=colour, linestyle=":" if curve.thin.all() else "-", label=label)
    axes.set_xscale("log" if curve.axis.is_log else "linear")


def _importance(found: StudySensitivity) -> Figure | None:
    known = sorted((i for i in found.importances if isinstance(i, Importance)), key=lambda i: i.share)
    if not known:
        return None
    figure = _new(4.5, 0.9 + 0.26 * len(known))
    axes = figure.subplots()
    share = np.array([i.share for i in known])
    arms = np.maximum(0, [share - [i.low for i in known], np.array([i.high for i in known]) - share])
    colours = [COLOURS[0] if i.above_chance else GREY for i in known]
    axes.barh(
        [i.name for i in known], share, color=colours, xerr=arms, error_kw={"elinewidth": 1, "capsize": 2}
    )
    axes.plot(
        [i.by_chance for i in known], range(len(known)), "|", color=COLOURS[5], markersize=12, label="chance"
    )
    axes.set_xlabel("share of being among the best")
    axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    _tidy(figure)
    return figure


def _budget(found: StudySensitivity) -> Figure | None:
    b = found.budget
    if isinstance(b, TooFew):
        return None
    figure = _new(3.5, 2.6)
    axes = figure.subplots()
    axes.fill_between(b.trials, b.low, b.high, color=COLOURS[0], alpha=0.18, linewidth=0)
    axes.plot(b.trials, b.expected, color=COLOURS[0], label="expected best")
    x, y = np.append(b.progress_trials, b.ended), np.append(b.progress_score, b.progress_score[-1])
    axes.step(x, y, where="post", color=COLOURS[5], linestyle="--", label="as it happened")
    if np.isfinite(found.observations.untrained):
        axes.axhline(found.observations.untrained, color=GREY, linestyle=":", label="untrained")
    axes.set_xscale("log")
    axes.set(xlabel="trials", ylabel=f"best {found.observations.metric}")
    axes.legend(frameon=False, fontsize=7)
    _tidy(figure)
    return figure


def _fidelity(found: StudySensitivity) -> Figure | None:
    f = found.fidelity
    if isinstance(f, TooFew) or not f.epochs:
        return None
    from matplotlib.ticker import MaxNLocator

    figure = _new(3.5, 2.6)
    axes = figure.subplots()
    epochs = [e.epoch for e in f.epochs]
    low, high = [e.low for e in f.epochs], [e.high for e in f.epochs]
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
    _tidy(figure)
    return figure


def _tidy(figure: Figure) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
