"""The figure that helps to choose the number of attributes k: what clusters say about the labels."""

from pathlib import Path
from typing import TYPE_CHECKING

from contrasweep.data import InformationCurve
from contrasweep.tuning.reports.colours import COLOURS
from contrasweep.tuning.reports.matplotlib_figures import check_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
