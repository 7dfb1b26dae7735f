"""Fill the tables of docs/released-command.md, and draw its figure, from scores of `benchmarks.trajectory`.

    python -m benchmarks.trajectory.page [FOLDER ...]

The scores in the folders are first added to docs/released-command.parquet; those of an epoch of a run that is
there already take the place of older ones.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from pyarrow import parquet

from benchmarks.filled import filled
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.files import written_whole
from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.tables.verdict_text import pipes

DOCS: Final = Path(__file__).parents[2] / "docs"
PAGE: Final = DOCS / "released-command.md"
RECORDS: Final = DOCS / "released-command.parquet"
UNTRAINED: Final = DOCS / "untrained-colormnist.parquet"
FIGURE: Final = DOCS / "images" / "released-command.png"
TABLE: Final = load_table("cclk-t3")
WHOLE: Final = 1000
"""Epochs of the released command; shorter runs compare learning rates."""
NAMES: Final = {row.key: row.name.removesuffix(" (ours)") for row in TABLE.rows}
MIDDLE: Final = (0.025, 0.975)

Row = Mapping[str, Any]
Score = tuple[str, str, float]
"""A score's name here, in the table, and the factor from one to the other."""
SCORES: Final[Sequence[Score]] = (("accuracy", "acc", 100.0), ("colour_mse", "mse", 1.0))


def kept(folders: Sequence[Path]) -> list[Row]:
    """Return the rows that were kept, with those of the folders, which are then kept too."""
    rows: list[Row] = parquet.read_table(RECORDS).to_pylist() if RECORDS.exists() else []
    for file in sorted(file for folder in folders for file in folder.glob("*.parquet")):
        rows += parquet.read_table(file).to_pylist()
    by_key = {(one["epochs"], one["rate"], one["row"], one["seed"], one["epoch"]): one for one in rows}
    found = [by_key[key] for key in sorted(by_key)]
    if folders:
        with written_whole(RECORDS) as file:
            parquet.write_table(pa.Table.from_pylist(found), file, compression="zstd")
    return found


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Return the tables of the page as Markdown, by name."""
    whole = [one for one in rows if one["epochs"] == WHOLE]
    seeds = sorted({one["seed"] for one in whole})
    by_epoch = {f"seed-{seed}": _by_epoch([one for one in whole if one["seed"] == seed]) for seed in seeds}
    return {**by_epoch, "rates": _by_rate(rows)}


def _by_epoch(whole: Sequence[Row]) -> str:
    """Return the scores of one seed: a mean over seeds would jump where only some of them were run on."""
    there = [name for name in NAMES if any(one["row"] == name for one in whole)]
    lines = []
    for epoch in sorted({one["epoch"] for one in whole}):
        own = [[one for one in whole if (one["row"], one["epoch"]) == (name, epoch)] for name in there]
        lines.append([str(epoch), *(_cell(one) for one in own)])
    printed = ["printed", *(_printed(name) for name in there)]
    return pipes(["epoch", *(NAMES[name] for name in there)], [*lines, printed])


def _by_rate(rows: Sequence[Row]) -> str:
    short = [one for one in rows if one["epochs"] != WHOLE]
    ends = [one for one in short if one["epoch"] == one["epochs"]]
    there = [name for name in NAMES if any(one["row"] == name for one in ends)]
    # Of a seed, all methods begin with the same network.
    before = {one["seed"]: one for one in short if one["epoch"] == 0}
    lines = [["untrained", *([_cell([*before.values()])] * len(there))]]
    for rate in sorted({one["rate"] for one in ends}):
        own = [[one for one in ends if (one["row"], one["rate"]) == (name, rate)] for name in there]
        lines.append([f"{rate:g}", *(_cell(one) for one in own)])
    return pipes(["rate", *(NAMES[name] for name in there)], lines)


def _cell(rows: Sequence[Row]) -> str:
    """Return accuracy and colour error of the runs of a cell: their means, and n beyond one."""
    if not rows:
        return "-"
    accuracy, colour = (np.mean([one[name] for one in rows]) * factor for name, _, factor in SCORES)
    told = f"{accuracy:.1f} / {colour:,.1f}" if colour < 1000 else f"{accuracy:.1f} / {colour:,.0f}"
    return told if len(rows) == 1 else f"{told} (n = {len(rows)})"


def _printed(name: str) -> str:
    accuracy, colour = (_cell_of(name, column) for _, column, _ in SCORES)
    return f"{accuracy.printed} / {colour.printed}"


def _cell_of(name: str, column: str) -> Any:
    row = next(one for one in TABLE.rows if one.key == name)
    return next(one for one in row.cells if one.column == column)


def draw(rows: Sequence[Row], path: Path) -> None:
    """Draw both scores by epoch: a line a run, the printed score dashed, untrained networks as a band."""
    figure = Figure(figsize=(10.0, 3.9), layout="constrained")
    whole = [one for one in rows if one["epochs"] == WHOLE]
    untrained = parquet.read_table(UNTRAINED).to_pylist()
    labels = ("test accuracy, %", "colour error (larger: less colour kept)")
    for axes, (score, column, factor), label in zip(figure.subplots(1, 2), SCORES, labels, strict=True):
        band = np.quantile([factor * one[score] for one in untrained], MIDDLE)
        axes.axhspan(*band, color=GREY, alpha=0.2, linewidth=0, label="95 % of 100 untrained networks")
        for name, colour in zip(NAMES, COLOURS, strict=False):
            runs = [one for one in whole if one["row"] == name]
            _draw_runs(axes, runs, score, factor, colour)
            alone = None if runs else f"{NAMES[name]}: printed"
            axes.axhline(_cell_of(name, column).mean, color=colour, linewidth=1, linestyle="--", label=alone)
        axes.set_xscale("symlog", linthresh=1, base=10)
        axes.set_xlim(0, WHOLE)
        axes.set_xlabel("epoch")
        axes.set_ylabel(label)
        axes.spines[["top", "right"]].set_visible(False)
    handles, names = axes.get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(path, dpi=110)


def _draw_runs(axes: Any, rows: Sequence[Row], score: str, factor: float, colour: str) -> None:
    """Draw the runs of a method, one for each seed; the first one strongest."""
    for number, seed in enumerate(sorted({one["seed"] for one in rows})):
        run = [one for one in rows if one["seed"] == seed]
        label = None if number else f"{NAMES[run[0]['row']]} (pale: another seed; dashed: printed)"
        look = {"color": colour, "linewidth": 1.6, "alpha": 0.45 if number else 1.0}
        values = [factor * one[score] for one in run]
        axes.plot([one["epoch"] for one in run], values, ".-", label=label, **look)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path)
    rows = kept(parser.parse_args().folders)
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), tables(rows)), encoding="utf-8")
    draw(rows, FIGURE)


if __name__ == "__main__":
    main()
