"""Render `docs/reproduction.md`: every table that was run, from small Parquet files; nothing is trained.

    python -m contrasweep.tuning.tables.document docs

reads `docs/reproduction/results/*.parquet` (written by `contrasweep table ID --save`), adds the notes in
`docs/reproduction/notes/NAME.md` if that file exists, and draws into `docs/reproduction/figures/`.
"""

import argparse
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from contrasweep.search_spaces.papers import PAPERS
from contrasweep.search_spaces.tables import available_tables, load_table
from contrasweep.tuning.durations import in_one_unit
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.experiment import Experiment, flat_settings
from contrasweep.tuning.tables.checks import tables_read
from contrasweep.tuning.tables.collect import search_space
from contrasweep.tuning.tables.figure import draw_table
from contrasweep.tuning.tables.plan import CellPlan, plan_table
from contrasweep.tuning.tables.render import markdown
from contrasweep.tuning.tables.results import CellInfo, TableResults, read_results
from contrasweep.tuning.tables.text import title
from contrasweep.tuning.tables.verdict import Status, Verdict, judge_all
from contrasweep.tuning.tables.verdict_text import pipes

HEAD = """# The papers' tables, run again

`make reproduction` renders this page from the scores in `reproduction/results/`. No number in a table was
typed by hand; only the paragraphs on what we learned were. Each section shows one table or figure in one
form: with the paper's settings, with those of a released command that contradict them, with each row searched
under the same budget, or QUICK, which is smaller than the paper's runs and says how. Runs that are older than
the table's settings name what has changed since. The untrained encoder stands beside every trained one.

A verdict says whether a claim of the paper holds on our runs: it is split into comparisons, and each is
judged on the paired seeds at an error rate of 5 % (see [claims](claims.md)). With fewer than five seeds a
claim is undecided. `inert` means that no row of the claim differs from its untrained encoder, so that there
is nothing to judge. A verdict holds for the runs behind it alone: a QUICK form and data that stand in for the
paper's do not decide the paper's claim.

To run a table: `contrasweep table cclk-t3`, or `contrasweep table cclk-t3 --scale quick`. After an
interruption, the same command continues. It reuses runs and searches that other tables have made in the same
results folder; the section then names them. `contrasweep tables` lists all tables. `--format latex` gives a
booktabs table with its gaps and claims, `--format csv` one line for each cell and each claim, `--json` all of
it.
"""
CLAIMS_COUNTED = """The number of claims by verdict. A claim that is judged on other columns too counts
once for each; the claims of a figure that shows rows of a table count with the table.

"""
VERDICTS = get_args(Status)


def write_document(docs: Path) -> Path:
    """Write `DOCS/reproduction.md` and its figures, and return its path.

    Raises:
        InputError: the folder holds no results, or a file is not a results file.
    """
    folder = docs / "reproduction"
    files = sorted((folder / "results").glob("*.parquet"))
    if not files:
        raise InputError(
            f"{folder / 'results'} holds no results; contrasweep table ID --save FOLDER writes them"
        )
    order = available_tables()
    found = sorted((read_results(file) for file in files), key=lambda r: (order.index(r.table.id), r.name))
    judged = [(results, judge_all(results, _others(results, found))) for results in found]
    parts = [HEAD, _summary(judged)]
    for paper in PAPERS:
        own = [(results, verdicts) for results, verdicts in judged if results.table.paper == paper]
        if own:
            about = PAPERS[paper]
            parts.append(f"## {about.title} ({about.venue})\n\nReleased code: <{about.code}>.\n")
            parts += [_section(results, verdicts, folder) for results, verdicts in own]
    parts.append(_not_run({results.table.id for results in found}))
    path = docs / "reproduction.md"
    path.write_text("\n".join(parts), encoding="utf-8")
    return path


def _section(results: TableResults, verdicts: Sequence[Verdict], folder: Path) -> str:
    learned = []
    if results.table.run.axis is not None and results.values:
        figure = folder / "figures" / f"{results.name}.png"
        draw_table(results, figure)
        learned.append(f"![{title(results)}](reproduction/figures/{figure.name})")
    notes = folder / "notes" / f"{results.name}.md"
    if notes.is_file():
        learned.append(f"What we learned:\n\n{notes.read_text(encoding='utf-8').strip()}")
    changed = changed_settings(results)
    return markdown(_with_new_rows(results), verdicts, changed=changed, learned=learned, fold=True)


def _summary(judged: Sequence[tuple[TableResults, Sequence[Verdict]]]) -> str:
    rows = []
    for results, verdicts in judged:
        counts = Counter(verdict.status for verdict in verdicts)
        runs = len(results.runs)
        name = f"[{PAPERS[results.table.paper].short}, {results.table.number}](#{_anchor(title(results))})"
        numbers = [str(counts.get(verdict, 0)) for verdict in VERDICTS]
        time = in_one_unit(results.seconds + results.search_seconds) if runs else "-"
        form = results.label + (", settings changed since" if changed_settings(results) else "")
        rows.append([name, form, str(runs or "no run"), *numbers, time])
    headings = ("table", "form", "final runs", *VERDICTS, "wall-clock, searches too")
    return CLAIMS_COUNTED + pipes(headings, rows) + "\n"


def changed_settings(results: TableResults) -> list[str]:
    """Return the settings that the table has changed since its stored runs, one phrase for each change.

    `contrasweep table` recognises a run by its experiment, so it never shows such a run; a saved file does.
    The dataset is left out: it depends on which files a machine has. Of a searched form, the settings that
    the search held fixed are compared, and the ranges that it searched.
    """
    if results.table.run.information is not None:
        return []
    plan = plan_table(results.table, scale=results.scale, tune=results.tuned)
    rows: dict[tuple[str, str, str], dict[str, None]] = {}
    for cell in plan.cells:
        info = results.cells.get((cell.row, cell.column))
        if info is not None and cell.experiment is not None:
            changes = [*_changes(info.settings, cell, results.tuned), *_changes_of_search(info, cell)]
            for change in changes:
                rows.setdefault(change, {})[cell.row] = None
    every = {row for row, _ in results.cells}
    return [
        f"{name.removeprefix('hyperparameters.')} {stored}, now {now}"
        + ("" if set(own) == every else f" ({', '.join(own)})")
        for (name, stored, now), own in rows.items()
    ]


def _with_new_rows(results: TableResults) -> TableResults:
    """Return the results with a reason of its own for each cell that the table runs only since."""
    plan = plan_table(results.table, scale=results.scale, tune=results.tuned)
    gaps = dict(results.gaps)
    for cell in plan.cells:
        key = cell.row, cell.column
        # A cell without its data is planned too: its reason names the dataset.
        if cell.experiment is None or key in results.cells or key not in gaps:
            continue
        if gaps[key].partition(":")[0] != cell.experiment.dataset.partition(":")[0]:
            gaps[key] = "not run yet: not among the rows when these runs were made"
    return replace(results, gaps=gaps)


def _changes(stored: Mapping[str, Any], cell: CellPlan, tuned: bool) -> Iterator[tuple[str, str, str]]:
    """Yield each setting with its stored value and the value that the table has now."""
    now = flat_settings(cell.planned.content())
    # A setting that is younger than the runs had its default then.
    usual = flat_settings(Experiment(method=cell.planned.method, dataset=cell.planned.dataset).model_dump())
    fixed = {path for name in cell.settings for path in (name, f"hyperparameters.{name}")}
    names = fixed & now.keys() if tuned else now.keys() | stored.keys()
    for name in sorted(name for name in names if not name.startswith(("dataset", "seed", "validation."))):
        found = (values.get(name, usual.get(name)) for values in (stored, now))
        before, after = ("not set" if value is None else str(value) for value in found)
        if before != after:
            yield name, before, after


def _changes_of_search(info: CellInfo, cell: CellPlan) -> Iterator[tuple[str, str, str]]:
    """Yield each searched parameter with its stored range and the range that the table has now."""
    if info.search is None:
        return
    before, now = info.search.space, search_space(cell).in_words()
    if not before:
        yield "search space", "of an earlier version", f"that of contrasweep spaces {info.method}"
        return
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield f"search of {name}", before.get(name, "not set"), now.get(name, "not set")


def _anchor(heading: str) -> str:
    """Return the fragment by which GitHub's pages link to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _others(results: TableResults, found: Sequence[TableResults]) -> Mapping[str, TableResults]:
    """Return the results of the tables that a table's claims read, in the same form."""
    names = tables_read(results.table.claims)
    form = (results.scale, results.tuned)
    return {r.table.id: r for r in found if r.table.id in names and (r.scale, r.tuned) == form}


def _not_run(done: set[str]) -> str:
    rows = []
    for name in available_tables():
        table = load_table(name)
        if name not in done:
            data = dict.fromkeys(column.datasets[0] for column in table.run.columns.values())
            why = table.run.never or f"not run yet, on {', '.join(data)}: contrasweep table {name}"
            rows.append([name, f"{PAPERS[table.paper].short}, {table.number}", table.caption, why])
    return "## Not run\n\n" + pipes(("id", "table", "what it shows", "why not"), rows) + "\n"


def main() -> None:
    """Render the document of the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Render reproduction.md from stored scores.")
    parser.add_argument("docs", type=Path, help="the folder of the documents")
    try:
        write_document(parser.parse_args().docs)
    except InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
