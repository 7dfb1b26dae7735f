"""The heat map of all claims by form: one picture, and the same cells for a table."""

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contrasweep.search_spaces.papers import PAPERS
from contrasweep.tuning.reports.matplotlib_figures import check_figure
from contrasweep.tuning.tables.standings import FORMS, Standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROW_INCHES, LABEL_INCHES, CELL_INCHES = 0.165, 4.2, 0.56
HEAD_ROWS = 2
"""The height of a paper's heading, in rows."""
LABEL_LETTERS = 86
COLOURS_KEPT = 64


@dataclass(frozen=True)
class Look:
    """How a verdict is drawn: its sign, the colour of its cell and of its sign."""

    sign: str
    fill: str
    ink: str


# Okabe and Ito's blue, vermilion and yellow; what decides nothing is grey or white.
LOOKS: Final = {
    "holds": Look("✓", "#0072B2", "white"),
    "contradicted": Look("✗", "#D55E00", "white"),
    "equal": Look("=", "#F0E442", "black"),
    "undecided": Look("?", "#C9CED4", "black"),
    "inert": Look("○", "#E4E7EA", "black"),
    "not re-testable": Look("·", "#FFFFFF", "#57606A"),
    "not run": Look("-", "#FFFFFF", "#57606A"),
}
"""The look of each verdict; a sign repeats what the colour says."""


@dataclass(frozen=True)
class HeatCell:
    """The cell of a claim and a form: a verdict, and whether it is hatched (inert, or on other data)."""

    status: str
    hatched: bool


def shown_forms(stands: Sequence[Standing]) -> list[str]:
    """Return the forms in which a claim was judged, in their order."""
    return [form for form in FORMS if any(form in stand.found for stand in stands)]


def cell_of(stand: Standing, form: str) -> HeatCell | None:
    """Return the cell of a claim in a form; None where the table was not run in that form."""
    found = stand.found.get(form)
    if found is None:
        return None
    return HeatCell(found.verdict.status, found.hatched)


def draw_heatmap(stands: Sequence[Standing], path: Path) -> None:
    """Draw all claims by form into `path`: two columns of papers, a row for each claim.

    Raises:
        InputError: the ending of `path` is not that of a figure, or matplotlib is not installed.
    """
    check_figure(path)
    from matplotlib.figure import Figure

    forms = shown_forms(stands)
    columns = _balanced(stands)
    height = max(sum(len(own) + HEAD_ROWS for own in column) for column in columns)
    panel = LABEL_INCHES + CELL_INCHES * len(forms)
    size = (panel * len(columns) + 0.3, ROW_INCHES * height + 1.5)
    figure = Figure(figsize=size, dpi=110)
    for place, column in enumerate(columns):
        left, top = (0.1 + place * (panel + 0.1)) / size[0], 1.15 / size[1]
        axes = figure.add_axes((left, 0.01, panel / size[0], 1 - top - 0.01))
        axes.set(xlim=(-LABEL_INCHES / CELL_INCHES, len(forms)), ylim=(height, 0))
        axes.set_axis_off()
        _draw_column(axes, column, forms)
    figure.text(0.1 / size[0], 1 - 0.3 / size[1], "Every claim by form", fontsize=12, weight="bold")
    _draw_legend(figure.add_axes((0.1 / size[0], 1 - 0.85 / size[1], 0.9, 0.35 / size[1])))
    path.parent.mkdir(parents=True, exist_ok=True)
    _save_small(figure, path)


def _save_small(figure: "Figure", path: Path) -> None:
    """Save a picture of few colours with a palette, which takes a third of the bytes."""
    if path.suffix != ".png":
        figure.savefig(path)
        return
    from PIL import Image

    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    Image.open(drawn).convert("RGB").quantize(COLOURS_KEPT, dither=Image.Dither.NONE).save(
        path, optimize=True
    )


def _balanced(stands: Sequence[Standing]) -> list[list[list[Standing]]]:
    """Return the claims of each paper, in two columns of about the same height."""
    papers = [[s for s in stands if s.table.paper == paper] for paper in PAPERS]
    papers = [own for own in papers if own]
    splits = [(papers[:n], papers[n:]) for n in range(1, len(papers) + 1)]
    best = min(splits, key=lambda split: max(sum(map(len, side)) for side in split))
    return [side for side in best if side]


def _draw_column(axes: "Axes", papers: Sequence[Sequence[Standing]], forms: Sequence[str]) -> None:
    row = 0
    left = -LABEL_INCHES / CELL_INCHES
    for own in papers:
        about = PAPERS[own[0].table.paper]
        axes.text(left, row + HEAD_ROWS - 0.4, f"{about.short} ({about.venue})", fontsize=9, weight="bold")
        for place, form in enumerate(forms):
            words = "\n".join(textwrap.wrap(form, 10))
            axes.text(place + 0.5, row + HEAD_ROWS - 0.25, words, ha="center", fontsize=6, linespacing=0.95)
        row += HEAD_ROWS
        for stand in own:
            label = f"{stand.table.number}: {stand.claim.text}"
            axes.text(left, row + 0.5, _cut(label), va="center", fontsize=6.5)
            for place, form in enumerate(forms):
                cell = cell_of(stand, form)
                if cell is not None:
                    _draw_cell(axes, place, row, cell)
            axes.plot((left, len(forms)), (row + 1, row + 1), color="#E4E7EA", lw=0.4, zorder=0)
            row += 1


def _draw_cell(axes: "Axes", x: float, y: float, cell: HeatCell) -> None:
    from matplotlib.patches import Rectangle

    look = LOOKS[cell.status]
    axes.add_patch(
        Rectangle(
            (x + 0.04, y + 0.08),
            0.92,
            0.84,
            facecolor=look.fill,
            edgecolor=_hatch(look) if cell.hatched else look.fill,
            hatch="////" if cell.hatched else None,
            linewidth=0.4,
        )
    )
    box: dict[str, Any] | None = (
        {"facecolor": look.fill, "edgecolor": "none", "pad": 0.6} if cell.hatched else None
    )
    axes.text(x + 0.5, y + 0.52, look.sign, bbox=box, ha="center", va="center", fontsize=6.5, color=look.ink)


def _hatch(look: Look) -> str:
    """Return the colour of a hatch that is seen on the fill."""
    return "white" if look.ink == "white" else "#6B737C"


def _draw_legend(axes: "Axes") -> None:
    axes.set(xlim=(0, 23.5), ylim=(1, 0))
    axes.set_axis_off()
    words = {status: HeatCell(status, status == "inert") for status in LOOKS}
    for place, (word, cell) in enumerate([*words.items(), ("on other data", HeatCell("contradicted", True))]):
        _draw_cell(axes, 2.5 * place, 0, cell)
        axes.text(2.5 * place + 1.1, 0.5, word, va="center", fontsize=8)
    axes.text(2.5 * (len(words) + 1) + 0.4, 0.5, "blank: this form was not run", va="center", fontsize=8)


def _cut(text: str) -> str:
    return text if len(text) <= LABEL_LETTERS else f"{text[: LABEL_LETTERS - 3].rstrip()} ..."
