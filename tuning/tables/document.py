"""Render `docs/reproduction.md` and all pages below it from small Parquet files; nothing is trained.

    python -m contrasweep.tuning.tables.document docs

reads `docs/reproduction/results/*.parquet` (written by `contrasweep table ID --save`) and the notes in
`docs/reproduction/notes/NAME.md`. It writes `docs/reproduction.md` with the scoreboard, a page a paper in
`docs/reproduction/`, their figures and settings, and `docs/reproduction.html`, which opens offline.
"""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from contrasweep.search_spaces.papers import PAPERS
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.files import write_whole
from contrasweep.tuning.tables.findings import bullets, findings
from contrasweep.tuning.tables.heatmap import draw_heatmap, shown_forms
from contrasweep.tuning.tables.offline import offline_page
from contrasweep.tuning.tables.paper_page import FIGURES, write_paper
from contrasweep.tuning.tables.scoreboard import HEADINGS, ScoreLine, scoreboard, scoreboard_rows
from contrasweep.tuning.tables.standings import FORMS, OUTCOMES, JudgedForm, read_judged, standings
from contrasweep.tuning.tables.summary import in_short, older_runs
from contrasweep.tuning.tables.verdict_text import pipes

HEAD = """# The papers' tables, run again

{in_short}

`make reproduction` renders these pages from the scores in `reproduction/results/`; only the notes ("What we
learned") are typed. The same with filters, offline: `reproduction.html`.

"""
MAP = "claims.png"
HOW = """## How to read this

A claim is split into comparisons, each judged on paired seeds at an error rate of 5 %; fewer than five seeds
decide nothing ([claims](claims.md)). A printed value lies in our interval where the 95 % interval of ours
minus printed covers zero.
"""
RUN = """## To run a table

`contrasweep table cclk-t3` runs a table, `contrasweep table cclk-t3 --scale quick` a smaller form. After an
interruption, the same command continues. It reuses runs and searches that other tables have made in the
same results folder; the section then names them. With `--save FOLDER`, the scores go to a small Parquet
file too, and the same command on another machine runs only what this file lacks (all of a searched form).
`contrasweep tables` lists all tables: what each needs, and what it costs on one core where an epoch was
timed. `contrasweep table ID --dry-run` shows every cell. `--workers`, `--gpus-per-worker`, `--device` and
`--address` say [where it runs](where-to-run.md). `-o FILE.tex` gives a booktabs table with its gaps and
claims, `-o FILE.csv` one line for each cell and each claim, `--json` all of it.
"""


def write_document(docs: Path) -> Path:
    """Write `DOCS/reproduction.md`, what lies below it and `DOCS/reproduction.html`; return the first's path.

    Raises:
        InputError: the folder holds no results, or a file is not a results file.
    """
    folder = docs / "reproduction"
    judged = read_judged(folder / "results")
    stands = standings(judged)
    lines = scoreboard(stands, judged)
    said = findings(stands, judged, lines)
    draw_heatmap(stands, folder / FIGURES / MAP)
    for paper in PAPERS:
        write_paper(paper, judged, stands, folder, folder / "notes")
    write_whole(docs / "reproduction.html", offline_page(stands, judged, lines, said))
    parts = [
        HEAD.format(in_short=in_short(stands, lines[-1])),
        _scoreboard(lines, judged),
        RUN,
        f"## Every claim\n\n![All claims by form, coloured by verdict](reproduction/{FIGURES}/{MAP})",
        _meanings("A column is a form:", ((form, FORMS[form]) for form in shown_forms(stands))),
        f"## Findings\n\nComputed from the verdicts and the scores.\n\n{bullets(said)}",
        _papers(judged),
        HOW,
    ]
    path = docs / "reproduction.md"
    write_whole(path, "\n\n".join(part.strip() for part in parts) + "\n")
    return path


def _scoreboard(lines: Sequence[ScoreLine], judged: Sequence[JudgedForm]) -> str:
    links = {about.short: f"[{about.short}](reproduction/{paper}.md)" for paper, about in PAPERS.items()}
    rows = [[links.get(line[0], line[0]), *line[1:]] for line in scoreboard_rows(lines)]
    holm = "in brackets, how many of them when all tested claims of the paper are counted (Holm)"
    below = (
        f"Confirmed: {holm}. The last column: of the printed values that were run again, how many lie in "
        "the 95 % interval of our runs, and in that of the untrained encoder. Only runs with the paper's "
        "settings on the paper's data confirm or contradict."
    )
    parts = [pipes(HEADINGS, rows), _meanings("Each claim counts once:", OUTCOMES.items()), below]
    return "\n\n".join(filter(None, [*parts, older_runs(judged)]))


def _meanings(start: str, pairs: Iterable[tuple[str, str]]) -> str:
    return f"{start}\n\n" + "\n".join(f"- *{word}*: {meaning}" for word, meaning in pairs)


def _papers(judged: Sequence[JudgedForm]) -> str:
    rows = []
    for paper, about in PAPERS.items():
        own = [one.results for one in judged if one.results.table.paper == paper]
        runs = {run for results in own for run in results.runs}
        tables = len({results.table.id for results in own})
        rows.append([f"[{about.title}](reproduction/{paper}.md)", about.venue, str(tables), f"{len(runs):,}"])
    headings = ("paper", "venue", "tables and figures run", "final runs")
    return f"## The papers\n\n{pipes(headings, rows)}"


def main() -> None:
    """Render the documents of the folder that the command line names."""
    parser = argparse.ArgumentParser(description="Render the pages of the papers' tables from stored scores.")
    parser.add_argument("docs", type=Path, help="the folder of the documents")
    try:
        write_document(parser.parse_args().docs)
    except InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
