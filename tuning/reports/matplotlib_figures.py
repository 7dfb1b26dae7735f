"""Figures for papers and READMEs, drawn with matplotlib from the rows of the store."""

from importlib.util import find_spec
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from contrasweep.names import counted
from contrasweep.search_spaces import Choice, Range
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import check_file
from contrasweep.tuning.reports.style import BREAKS, COLOURS, GREY
from contrasweep.tuning.results.best import best_name
from contrasweep.tuning.results.study import StudyData, read_study
from contrasweep.tuning.store import ResultsStore

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contrasweep.data import InformationCurve

FORMATS = (".png", ".pdf", ".svg")
WHOLE: Final[dict[str, Any]] = {"linewidth": 1.6}
"""How the curve of a completed trial looks."""

CUT: Final[dict[str, Any]] = {"linewidth": 0.9, "alpha": 0.6, "marker": "|", "markevery": [-1]}
"""How the curve of a trial looks that has not completed: it was stopped or failed, or it still runs."""

ON_WHITE: Final = COLOURS[:-1]
"""The colours without yellow, which is hard to see on white."""

TITLE_LETTERS: Final = 100
"""So many letters of a title have room side by side."""

BLACK_DASHES: Final[dict[str, Any]] = {"color": "black", "linewidth": 1, "linestyle": "--"}


def draw_study(store: ResultsStore, study: str, path: Path) -> None:
    """Draw every trial's learning curve, and the best score against the trials spent, into `path`.

    Colours tell the values of the first searched choice apart (the kernel, say) that has a colour for each,
    or else the statuses.

    Raises:
        InputError: the file's ending is not .png, .pdf or .svg, or matplotlib is not installed; or the study
            holds final runs.
        StoreError: there is no such study.
    """
    check_figure(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    data = read_study(store, study)
    figure = Figure(figsize=(9, 3.4), layout="constrained", dpi=160)
    left, right = figure.subplots(1, 2)
    _draw_curves(left, data)
    _draw_progress(right, data)
    for axes, untrained in ((left, data.untrained), (right, data.untrained_score(data.metric))):
        if untrained is not None:
            axes.axhline(untrained, label="untrained encoder", **BLACK_DASHES)
        # One tick is enough: asked for two, matplotlib gives a study of one trial fractions of trials.
        axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    left.set(xlabel="epoch", ylabel=data.rung_metric, title="each trial")
    right.set(xlabel="trial", ylabel=data.metric, title=best_name(data.metric))
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center", frameon=False)
    _save(
        figure, f"{data.record.method} on {data.record.dataset}: {counted(len(data.trials), 'trial')}", path
    )


def draw_cluster_curve(curve: "InformationCurve", title: str, path: Path) -> None:
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
        if axes.get_legend_handles_labels()[0]:
            axes.legend(frameon=False)
    _save(figure, title, path)


def check_figure(path: Path, option: str = "") -> None:
    """Raise InputError unless the ending of `path` is known and matplotlib is installed."""
    check_file(path, option, FORMATS)
    if find_spec("matplotlib") is None:
        raise InputError("figures need matplotlib: pip install 'contrasweep[plots]'")


def _save(figure: "Figure", title: str, path: Path) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    # The name of a dataset may be a long path: it is broken where it has no space too, and `$` is no formula.
    figure.suptitle(fill(title, TITLE_LETTERS), fontsize=10, parse_math=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _draw_curves(axes: "Axes", data: StudyData) -> None:
    choice = next((p.name for p in data.space.searched if _has_colours(p)), None)
    colours: dict[str, str] = {}
    for trial in data.trials:
        curve = data.curves.get(trial.number)
        if curve is None:
            continue
        category = trial.status if choice is None else str(trial.values.get(choice, f"no {choice}"))
        colour = colours.setdefault(category, ON_WHITE[len(colours) % len(ON_WHITE)])
        look = WHOLE if trial.status == "completed" else CUT
        axes.plot(curve.epochs, curve.scores, color=colour, **look)
    for category, colour in colours.items():
        axes.plot([], [], color=colour, label=category, **WHOLE)
    if choice is not None and any(trial.status != "completed" for trial in data.trials):
        axes.plot([], [], color="grey", label="not completed", **CUT)


def _has_colours(parameter: Choice | Range) -> bool:
    """Return whether each value of a parameter has a colour of its own, also being unused where it can be."""
    if not isinstance(parameter, Choice) or parameter.type != "string":
        return False
    return len(parameter.choices) + bool(parameter.when) <= len(ON_WHITE)


def _draw_progress(axes: "Axes", data: StudyData) -> None:
    """Draw the final score of each completed trial, and the best so far; stopped trials have none."""
    scored = [(trial.number, trial.score) for trial in data.trials if trial.score is not None]
    kept = [one for one in scored if one[0] not in data.candidates.breaking]
    broken = [one for one in scored if one[0] in data.candidates.breaking]
    if kept:
        axes.plot(*zip(*kept, strict=True), "o", color=GREY, markersize=3)
    if broken:
        look: dict[str, Any] = {"color": GREY, "markersize": 4, "markerfacecolor": "none"}
        axes.plot(*zip(*broken, strict=True), "o", label=BREAKS, **look)
        axes.legend(frameon=False, fontsize=8)
    trials, best = data.best_so_far
    if trials:
        places = [*trials, data.trials[-1].number]
        axes.step(places, [*best, best[-1]], where="post", color="black", linewidth=1.4)


def _draw_rescaled(axes: "Axes", curve: "InformationCurve") -> None:
    rising, falling, crossing = curve.rescaled_information, curve.rescaled_negative_entropy, curve.crossing
    if rising is not None:
        axes.plot(curve.ks, rising, "o-", color=COLOURS[0], markersize=3, label="I(Z; T)")
    if falling is not None:
        axes.plot(curve.ks, falling, "s-", color=COLOURS[5], markersize=3, label="-H(Z | T)")
    if crossing is not None:
        label = f"crossing at {crossing.at:.1f}"
        axes.axvline(crossing.at, label=label, **BLACK_DASHES)
    title = "rescaled to 0..1" + ("" if crossing is None else f": take k = {crossing.k}")
    axes.set(title=title, ylim=(-0.03, 1.03))


def _ticks(ks: tuple[int, ...]) -> list[int]:
    """Return about eight of the k, evenly spread over the logarithmic axis."""
    shown = [ks[0]]
    step = (ks[-1] / ks[0]) ** (1 / 8)
    for k in ks[1:]:
        if k >= shown[-1] * step:
            shown.append(k)
    return shown
