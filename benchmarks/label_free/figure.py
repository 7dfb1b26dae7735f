"""The figure of docs/label-free.md: each score against the hidden accuracy, by dataset and method."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from benchmarks.label_free.reads import Encoders
from contrasweep.tuning.methods.metrics import LABEL_FREE, is_minimised
from contrasweep.tuning.reports.style import COLOURS, GREY

MARKERS: Final = "os^DvP"
LOGARITHMIC: Final = frozenset({"rankme", "lidar", "alignment"})

MANY: Final = 100.0
"""The ratio of the ends of a logarithmic axis from which only powers of ten are labelled."""


def draw(encoders: Sequence[Encoders], path: Path) -> None:
    """Draw a row of scatter plots for each dataset, a column for each score; to the right is better."""
    figure = Figure(figsize=(12.5, 2.7 * len(encoders) + 0.5), layout="constrained")
    grid = figure.subplots(len(encoders), len(LABEL_FREE), sharey="row", squeeze=False)
    methods = list(dict.fromkeys(method for one in encoders for method in one.methods))
    for row, one in zip(grid, encoders, strict=True):
        for axes, score in zip(row, LABEL_FREE, strict=True):
            _scatter(axes, one, score, methods)
        row[0].set_ylabel(f"{one.dataset.partition(':')[0]}\naccuracy, %")
    for axes, score in zip(grid[-1], LABEL_FREE, strict=True):
        axes.set_xlabel(f"val.{score}" + (", smaller is better" if is_minimised(score) else ""))
    # The last row has all methods.
    handles, labels = grid[-1, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    figure.savefig(path, dpi=110)


def _scatter(axes: Any, one: Encoders, score: str, methods: Sequence[str]) -> None:
    for method in one.methods:
        own, place = one.of(method), methods.index(method)
        axes.scatter(
            own.column(score),
            100 * own.accuracy,
            s=16,
            color=COLOURS[place],
            marker=MARKERS[place],
            alpha=0.75,
            linewidths=0,
            label=method,
        )
    before = 100 * one.column("untrained_accuracy")
    axes.axhline(before.mean(), color=GREY, linewidth=0.8, zorder=0)
    axes.scatter(
        one.column(f"untrained_{score}"),
        before,
        s=60,
        linewidths=0.8,
        color="black",
        marker="|",
        label="untrained",
    )
    if score in LOGARITHMIC:
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        # Over many decades, their labels alone have room.
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if high / low > MANY else (1.0, 3.0)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
    if is_minimised(score):
        axes.invert_xaxis()
    axes.spines[["top", "right"]].set_visible(False)
