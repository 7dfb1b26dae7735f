"""Render a table's results as Markdown, LaTeX, CSV or plain data."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, astuple
from typing import Any

from contrasweep.tuning.tables.compare import Compared, compare
from contrasweep.tuning.tables.results import TableResults
from contrasweep.tuning.tables.tex import tex, tex_row
from contrasweep.tuning.tables.text import (
    deviations,
    difference_text,
    facts,
    gaps,
    ours_text,
    printed_text,
    settings_lines,
    title,
)
from contrasweep.tuning.tables.verdict import Verdict
from contrasweep.tuning.tables.verdict_text import pipes, verdict_content, verdict_line

HEADINGS = ("", "printed", "these runs (n)", "difference", "")
CSV_CELL = ("column", "row", "printed", "published", "published_std", "cited", "mean", "std", "n")
CSV_DIFFERENCE = ("difference", "low", "high", "interval")
CSV_COLUMNS = (
    "table",
    "form",
    *CSV_CELL,
    *CSV_DIFFERENCE,
    "gap",
    "claim",
    "verdict",
    "p_false",
    "p_true",
    "chance",
    "note",
)
CLAIMS = ("claim", "as printed", "our runs", "")


def markdown(
    results: TableResults,
    verdicts: Sequence[Verdict],
    *,
    changed: Sequence[str] = (),
    learned: Sequence[str] = (),
    settings_in: str = "",
) -> str:
    """Return a section in Markdown: the facts behind the numbers, the numbers, the claims, then all settings.

    Args:
        results: the results of the table.
        verdicts: the verdicts on its claims.
        changed: the settings that the table has changed since these runs.
        learned: paragraphs that follow the claims.
        settings_in: the file that holds the settings, to be linked in place of them.
    """
    rests_on = [*facts(results), f"Command: `{results.command}`."]
    if changed:
        rests_on.append(f"**These runs are older than the table's settings**: {'; '.join(changed)}.")
    parts = [f"### {title(results)}", results.table.caption + ".", _bullets(rests_on)]
    for column, cells in _shown(results).items():
        parts.append(pipes((column, *HEADINGS[1:]), [_line(cell) for cell in cells]))
    if verdicts:
        parts.append(pipes(CLAIMS, [verdict_line(verdict) for verdict in verdicts]))
    parts += learned
    # Deviations are about the paper's settings; a searched row has its own settings.
    form = "the runs with the paper's settings (searched rows: see Settings)" if results.tuned else "the runs"
    for heading, lines in (
        ("Not run, or not complete:", gaps(results)),
        (f"Where {form} differ from the paper:", deviations(results)),
        ("Where the print contradicts itself:", results.table.findings),
    ):
        if lines:
            parts += [heading, _bullets(lines)]
    settings = settings_lines(results)
    if settings and settings_in:
        parts.append(f"Settings: [{settings_in}]({settings_in}).")
    elif settings:
        parts += ["Settings:", _bullets(settings)]
    return "\n\n".join(parts) + "\n"


def latex(results: TableResults, verdicts: Sequence[Verdict]) -> str:
    """Return a LaTeX `table` with booktabs: the facts stand in the caption, gaps and claims below."""
    lines = [
        "% \\usepackage{booktabs} and an engine or encoding that reads UTF-8",
        "\\begin{table}",
        "\\centering",
        f"\\caption{{{tex(title(results) + '. ' + ' '.join(facts(results)))}}}",
        f"\\label{{tab:{results.name}}}",
        "\\begin{tabular}{lrrr}",
        "\\toprule",
        tex_row(HEADINGS[:4]),
    ]
    for column, cells in _shown(results).items():
        lines += ["\\midrule", f"\\multicolumn{{4}}{{l}}{{\\emph{{{tex(column)}}}}} \\\\"]
        lines += [tex_row(_line(cell)[:4]) for cell in cells]
    lines += ["\\bottomrule", "\\end{tabular}"]
    below = [f"Not run, or not complete: {line}." for line in gaps(results)]
    for verdict in verdicts:
        claim, printed, ours, note = verdict_line(verdict)
        below.append(f"{claim} As printed: {printed or '-'}. Our runs: {ours}{f' ({note})' if note else ''}.")
    if below:
        lines += ["", "\\medskip", "\\begin{minipage}{\\linewidth}\\footnotesize\\raggedright"]
        lines += [f"{tex(line)}\\par" for line in below]
        lines.append("\\end{minipage}")
    return "\n".join([*lines, "\\end{table}"]) + "\n"


def comma_separated(results: TableResults, verdicts: Sequence[Verdict]) -> str:
    """Return CSV: one line for each cell, with all digits, then one line for each claim.

    Every line names the form that was run. The line of a claim has its text, its verdict, n, both p
    values, how often it holds by chance, and a note.
    """
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    form = {"table": results.table.id, "form": results.label}
    for cell in compare(results):
        writer.writerow(form | _cell_fields(cell))
    for verdict in verdicts:
        text, *_, note = verdict_line(verdict)
        found: dict[str, Any] = {"verdict": verdict.status, "p_false": verdict.false, "p_true": verdict.true}
        found |= {"chance": verdict.chance, "n": verdict.seeds, "note": note}
        writer.writerow(form | {"claim": text} | found)
    return buffer.getvalue()


def _cell_fields(cell: Compared) -> dict[str, Any]:
    ours = {"n": 0} if cell.ours is None else asdict(cell.ours)
    gap = () if cell.difference is None else astuple(cell.difference)
    fields = asdict(cell) | ours | dict(zip(CSV_DIFFERENCE, gap, strict=False))
    return {name: value for name, value in fields.items() if name in CSV_COLUMNS}


def content(results: TableResults, verdicts: Sequence[Verdict]) -> dict[str, Any]:
    """Return everything that the formats show, as plain data."""
    return {
        "table": results.table.id,
        "form": results.label,
        "seeds": results.seeds,
        "command": results.command,
        "facts": facts(results),
        "cells": [asdict(cell) for cell in compare(results)],
        "gaps": gaps(results),
        "deviations": deviations(results),
        "findings": list(results.table.findings),
        "settings": settings_lines(results),
        "claims": [
            verdict_content(verdict)
            | {
                "as_printed": None if verdict.read_in else verdict.claim.holds,
                "read_in": verdict.read_in,
                "shown_in": verdict.shown_in,
            }
            for verdict in verdicts
        ],
    }


FORMATS: Mapping[str, Callable[[TableResults, Sequence[Verdict]], str]] = {
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
}
"""The formats by name."""

FORMAT_OF: Mapping[str, str] = {".md": "markdown", ".tex": "latex", ".csv": "csv"}
"""The names of the formats by the ending of a file."""


def _shown(results: TableResults) -> dict[str, list[Compared]]:
    """Return the cells by column; a quick form, which is not compared with print, shows only what ran."""
    found: dict[str, list[Compared]] = {}
    for cell in compare(results):
        found.setdefault(cell.column_name, []).append(cell)
    ran = {name: cells for name, cells in found.items() if any(cell.ours is not None for cell in cells)}
    return ran if ran and not results.compared else found


def _line(cell: Compared) -> tuple[str, str, str, str, str]:
    return (
        cell.row_name,
        printed_text(cell),
        ours_text(cell.ours, cell.digits),
        difference_text(cell.difference, cell.digits),
        cell.gap,
    )


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
