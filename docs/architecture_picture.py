"""Draw docs/images/architecture.png: the packages of the code by layer, and which imports which.

python -m docs.architecture_picture [FILE]
"""

import sys
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from tests.architecture.imports import LAYERS, MODULES, arrows, package_of

_PICTURE = Path(__file__).parent / "images" / "architecture.png"
_SAYS = {
    "losses": "every objective, without training",
    "models": "encoders, heads, queue, probes",
    "data": "datasets, views, conditions, clusters",
    "search_spaces": "spaces, presets, tables: YAML and reader",
    "errors": "errors for users",
    "statistics": "means, intervals, tests",
    "durations": "seconds in words",
    "files": "files written whole",
    "limits": "largest numbers",
    "experiment": "one run's settings",
    "store": "Parquet: trials, epochs, studies",
    "search": "samplers, what to try next",
    "objectives": "objective, batches, prepared data",
    "methods": "the papers' methods, metrics",
    "catalogue": "what there is by name, without torch",
    "provenance": "versions, revision",
    "training": "pretrain, evaluation, checkpoints",
    "results": "what became of trials; selection",
    "trials": "a trial, epoch by epoch",
    "planning": "plans, spaces, resources (no Ray)",
    "progress": "how far work is, time left",
    "export": "encoders for other libraries",
    "track": "studies for MLflow and W&B",
    "skeletons": "how a plug-in begins",
    "reports": "one page about studies",
    "ray": "sweeps and final runs on Ray",
    "transfer": "exported encoders in use",
    "sensitivity": "which hyperparameters matter",
    "replay": "searches compared without training",
    "stability": "trials until a claim is stable",
    "tables": "the papers' tables run again",
    "cli": "the command line",
}
_WIDTH, _HEIGHT, _ACROSS = 0.30, 0.46, 4


def _places() -> dict[str, tuple[float, float]]:
    """The centre of each package: the lowest layer first, the packages of a layer side by side."""
    found = {}
    for height, packages in enumerate(LAYERS):
        for number, name in enumerate(packages):
            found[name] = ((number - (len(packages) - 1) / 2) * 1.12 * _WIDTH, float(height))
    return found


def _direct(all_arrows: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Leave out an arrow where others lead from its beginning to its end: they would hide the rest."""
    below = {one: {b for a, b in all_arrows if a == one} for one, _ in all_arrows}

    def reached(start: str) -> set[str]:
        return {end for one in below.get(start, ()) for end in ({one} | reached(one))}

    return {(a, b) for a, b in all_arrows if not any(b in reached(c) for c in below[a] - {b})}


def _draw_package(axes: Axes, name: str, place: tuple[float, float]) -> None:
    short = name.removeprefix("tuning/")
    lines = sum(
        len(path.read_text(encoding="utf-8").splitlines())
        for module, path in MODULES.items()
        if package_of(module) == name
    )
    box = FancyBboxPatch(
        (place[0] - _WIDTH / 2, place[1] - _HEIGHT / 2),
        _WIDTH,
        _HEIGHT,
        boxstyle="round,pad=0,rounding_size=0.02",
        facecolor="#eef3fa" if name.startswith("tuning/") else "#fdf3e3",
        edgecolor="#44546a",
        zorder=2,
    )
    axes.add_patch(box)
    size = f"{lines / 1000:.1f}k lines" if lines >= 500 else f"{lines} lines"
    axes.text(*place, f"{short}  ({size})\n", ha="center", va="center", fontsize=9.5, weight="bold", zorder=3)
    axes.text(*place, f"\n{_SAYS[short]}", ha="center", va="center", fontsize=7.5, zorder=3)


def main() -> None:
    """Draw the picture into the file that is named, or into docs/images."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else _PICTURE
    places = _places()
    figure = Figure(figsize=(11, 10.5), layout="constrained", dpi=110)
    axes = figure.subplots()
    for one, other in sorted(_direct(arrows())):
        (x1, y1), (x2, y2) = places[one], places[other]
        axes.plot([x1, x2], [y1 - _HEIGHT / 2, y2 + _HEIGHT / 2], color="#5b6f8c", linewidth=1.0, zorder=1)
    for name, place in places.items():
        _draw_package(axes, name, place)
    axes.set(xlim=(-_ACROSS / 2 * 1.16 * _WIDTH, _ACROSS / 2 * 1.16 * _WIDTH), ylim=(-0.6, len(LAYERS) - 0.4))
    axes.axis("off")
    figure.savefig(target)


if __name__ == "__main__":
    main()
