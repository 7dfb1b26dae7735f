"""Final runs as a file for a paper: the tables of `contrasweep run`, or a line for each run."""

import csv
import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from contrasweep.tuning.files import write_whole
from contrasweep.tuning.results.columns import (
    difference_note,
    difference_rows,
    difference_title,
    summary_note,
    texts,
)
from contrasweep.tuning.results.final_runs import (
    FinalRuns,
    main_score,
    score_names,
    single_scores,
    summary_rows,
)
from contrasweep.tuning.tables.tex import tex, tex_row
from contrasweep.tuning.tables.verdict_text import pipes

_Block = tuple[str, Sequence[Mapping[str, str]], str]
"""What stands above a table, its rows, and what stands below it."""


def write_final_table(runs: FinalRuns, path: Path) -> None:
    """Write final runs of one or several studies to a file; its ending is one of `ENDINGS`.

    `.tex` and `.md` have the two tables of `contrasweep run`: the scores over seeds, and how much better the
    first encoder is than each of the others. `.csv` has a line for each single score, in the format that
    `contrasweep verify` reads.
    """
    write_whole(path, _WRITERS[path.suffix](runs))


def _blocks(runs: FinalRuns) -> list[_Block]:
    """Return the tables; the second only where there are paired seeds."""
    names, compared = score_names(runs.summaries), runs.differences
    blocks: list[_Block] = [(runs.title, _as_text(summary_rows(runs.summaries)), summary_note(names))]
    differences = _as_text(difference_rows(compared))
    if differences:
        heading = difference_title(compared, main_score(names))
        blocks.append((heading, differences, difference_note(compared)))
    return blocks


def _as_text(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    return [texts(row) for row in rows]


def _markdown(runs: FinalRuns) -> str:
    parts = []
    for title, rows, note in _blocks(runs):
        parts += [f"{title}.", pipes(tuple(rows[0]), [tuple(row.values()) for row in rows]), note]
    return "\n\n".join(parts) + "\n"


def _latex(runs: FinalRuns) -> str:
    lines = [
        "% \\usepackage{booktabs} and an engine or encoding that reads UTF-8",
        "\\begin{table}",
        "\\centering",
    ]
    caption = " ".join(f"{title}. {note}" for title, _, note in _blocks(runs))
    lines += [f"\\caption{{{tex(caption)}}}", "\\label{tab:final-runs}"]
    for place, (_, rows, _) in enumerate(_blocks(runs)):
        lines += ["", "\\medskip"] if place else []
        lines += [f"\\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}", "\\toprule"]
        lines += [_line(tuple(rows[0])), "\\midrule"]
        lines += [_line(tuple(row.values())) for row in rows]
        lines += ["\\bottomrule", "\\end{tabular}"]
    return "\n".join([*lines, "\\end{table}"]) + "\n"


def _line(cells: Sequence[str]) -> str:
    # A hyphen is no minus sign in LaTeX.
    return tex_row([re.sub(r"(?<!\w)-(?=\d)", "\u2212", cell) for cell in cells])


def _comma_separated(runs: FinalRuns) -> str:
    rows = single_scores(runs.rows)
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return buffer.getvalue()


_WRITERS: Final[Mapping[str, Callable[[FinalRuns], str]]] = {
    ".tex": _latex,
    ".md": _markdown,
    ".csv": _comma_separated,
}

ENDINGS: Final = tuple(_WRITERS)
"""The endings of the files that can be written."""
