"""The page of a paper: its tables in each form that ran, forest plots, claims, notes, what did not run."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from contrasweep.names import with_capital
from contrasweep.search_spaces.papers import PAPERS
from contrasweep.search_spaces.tables import available_tables, load_table
from contrasweep.tuning.durations import in_one_unit
from contrasweep.tuning.files import write_whole
from contrasweep.tuning.tables.figure import draw_table, has_figure
from contrasweep.tuning.tables.forest_plot import draw_forest, forest
from contrasweep.tuning.tables.outdated import changed_settings, with_new_rows
from contrasweep.tuning.tables.plan import what_it_takes
from contrasweep.tuning.tables.render import markdown
from contrasweep.tuning.tables.results import TableResults, without
from contrasweep.tuning.tables.standings import OUTCOMES, ClaimOutcome, JudgedForm, Standing
from contrasweep.tuning.tables.text import title
from contrasweep.tuning.tables.verdict import VerdictStatus
from contrasweep.tuning.tables.verdict_text import pipes

FIGURES, SETTINGS = "figures", "settings"
"""The folders beside a page that hold its figures and its settings."""

CLAIMS_COUNTED = """The number of claims by verdict. A claim that is judged on other columns too counts
once for each; the claims of a figure that shows rows of a table count with the table."""


def write_paper(
    paper: str, judged: Sequence[JudgedForm], stands: Sequence[Standing], folder: Path, notes: Path
) -> Path:
    """Write `FOLDER/PAPER.md` with its figures and settings, and return its path.

    Args:
        paper: a key of `PAPERS`.
        judged: the stored forms of all tables.
        stands: where all claims stand.
        folder: the folder of the page.
        notes: the folder of the paragraphs on what was learned, `NAME.md` for a stored form, `PAPER.md` for
            what several forms have in common.
    """
    about = PAPERS[paper]
    own = [one for one in judged if one.results.table.paper == paper]
    parts = [
        f"# {about.title} ({about.venue})",
        f"Released code: <{about.code}>. [All papers](../reproduction.md); [how claims are "
        "judged](../claims.md).",
        "## What was run",
        _summary(own) if own else "No table was run yet.",
        *_notes_on(notes / f"{paper}.md"),
        *(_section(one, folder, notes) for one in own),
        "## Claims without a verdict",
        _waiting([stand for stand in stands if stand.table.paper == paper]),
        "## Not run",
        _not_run(paper, {one.results.table.id for one in own}),
    ]
    path = folder / f"{paper}.md"
    write_whole(path, "\n\n".join(part.strip() for part in parts) + "\n")
    return path


def anchor(heading: str) -> str:
    """Return the fragment by which GitHub's pages link to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _summary(judged: Sequence[JudgedForm]) -> str:
    statuses = get_args(VerdictStatus)
    rows = []
    for one in judged:
        results, runs = one.results, len(one.results.runs)
        counts = Counter(verdict.status for verdict in one.verdicts)
        name = f"[{results.table.number}](#{anchor(title(results))})"
        time = in_one_unit(results.seconds + results.search_seconds) if runs else "-"
        form = results.label + (", settings changed since" if changed_settings(results) else "")
        numbers = [str(counts.get(status, 0)) for status in statuses]
        rows.append([name, form, str(runs or "no run"), *numbers, time])
    headings = ("table", "form", "final runs", *statuses, "wall-clock, searches too")
    return f"{CLAIMS_COUNTED}\n\n{pipes(headings, rows)}"


def _section(judged: JudgedForm, folder: Path, notes: Path) -> str:
    results = judged.results
    shown = []
    if forest(results):
        figure = folder / FIGURES / f"{results.name}.forest.png"
        draw_forest(results, figure)
        shown.append(f"![Forest plot of {title(results)}]({FIGURES}/{figure.name})")
    if has_figure(results):
        figure = folder / FIGURES / f"{results.name}.png"
        draw_table(results, figure)
        shown.append(f"![{title(results)}]({FIGURES}/{figure.name})")
    shown += [f"What we learned:\n\n{note}" for note in _notes_on(notes / f"{results.name}.md")]
    changed = changed_settings(results)
    where = _write_settings(results, folder / SETTINGS) if results.cells else ""
    return markdown(
        with_new_rows(results), judged.verdicts, changed=changed, learned=shown, settings_in=where
    )


def _notes_on(path: Path) -> list[str]:
    return [path.read_text(encoding="utf-8").strip()] if path.is_file() else []


def _write_settings(results: TableResults, folder: Path) -> str:
    """Write all settings behind a form's runs as JSON, and return the file's path beside the page."""
    path = folder / f"{results.name}.json"
    write_whole(path, json.dumps(_settings(results), indent=1, ensure_ascii=False) + "\n")
    return f"{SETTINGS}/{path.name}"


def _settings(results: TableResults) -> dict[str, Any]:
    common = results.common_settings
    cells: list[Mapping[str, Any]] = []
    for (row, column), info in results.cells.items():
        own: dict[str, Any] = {
            "dataset": info.dataset,
            "method": info.method,
            "settings": without(info.settings, common),
        }
        if info.search is not None:
            own |= {"selected": info.selected, "trials": info.search.trials}
        same = next((one for one in cells if one["row"] == row and {**own, **one} == {**one, **own}), None)
        if same is None:
            cells.append({"row": row, "columns": [column], **own})
        else:
            same["columns"].append(column)
    return {"command": results.command, "form": results.label, "all rows": common, "cells": cells}


def _waiting(stands: Sequence[Standing]) -> str:
    """Return the claims without any verdict, by reason."""
    reasons: tuple[ClaimOutcome, ...] = ("not run yet", "data missing", "cannot run")
    rows = [
        [stand.table.number, stand.claim.text, reason]
        for reason in reasons
        for stand in stands
        if stand.outcome == reason
    ]
    if not rows:
        return "None."
    meaning = "; ".join(f"{reason}: {OUTCOMES[reason]}" for reason in reasons)
    return f"{with_capital(meaning)}.\n\n{pipes(('table', 'claim', 'why'), rows)}"


def _not_run(paper: str, done: set[str]) -> str:
    rows = []
    for name in available_tables():
        table = load_table(name)
        if table.paper == paper and name not in done:
            why = table.run.never or f"not run yet: {what_it_takes(table)}"
            rows.append([name, table.number, table.caption, why])
    return pipes(("id", "table", "what it shows", "why not"), rows) if rows else "Every table was run."
