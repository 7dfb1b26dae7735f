"""The papers' tables as one HTML page that opens offline: scoreboard, findings, and tables with filters."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from contrasweep.search_spaces.papers import PAPERS
from contrasweep.tuning.reports.page import Section, Table, Tone, Toned, render_page
from contrasweep.tuning.tables.compare import Compared
from contrasweep.tuning.tables.findings import Findings
from contrasweep.tuning.tables.heatmap import cell_of, shown_forms
from contrasweep.tuning.tables.scoreboard import HEADINGS, ScoreLine, compared_cells, scoreboard_rows
from contrasweep.tuning.tables.standings import FORMS, OUTCOMES, Found, JudgedForm, Standing
from contrasweep.tuning.tables.text import difference_text, ours_text, printed_text
from contrasweep.tuning.tables.verdict_text import verdict_line

TONES: Final[dict[str, Tone]] = {
    "holds": "blue",
    "confirmed": "blue",
    "contradicted": "orange",
    "equal": "yellow",
    "undecided": "grey",
    "inert": "grey",
}
"""The ground of each verdict and outcome; all others have none."""


def offline_page(
    stands: Sequence[Standing],
    judged: Sequence[JudgedForm],
    lines: Sequence[ScoreLine],
    said: Sequence[Findings],
) -> str:
    """Return the page.

    Args:
        stands: where all claims stand.
        judged: the stored forms of all tables.
        lines: the scoreboard.
        said: the findings.
    """
    runs = len({run for one in judged for run in one.results.runs})
    sections = [
        Section(
            "Scoreboard",
            "Each claim counts once. Only runs with the paper's settings on the paper's data confirm or "
            "contradict; in brackets, how many claims are confirmed when all tested claims of the paper are "
            "counted (Holm). The last column counts the printed values that were run again: how many lie in "
            "the 95 % interval of our runs, and in that of the untrained encoder.",
            tables=[Table("A line a paper", HEADINGS, scoreboard_rows(lines), _meanings(OUTCOMES.items()))],
        ),
        *(Section(one.title, "\n".join(f"- {sentence}" for sentence in one.sentences)) for one in said),
        Section(
            "Every claim by form",
            "Hatched: inert, or on other data than the paper's. An empty cell: this form was not run.",
            tables=[_heatmap(stands)],
        ),
        Section("Every verdict", "What each verdict rests on.", tables=[_verdicts(stands)]),
        Section(
            "Every printed value that was run again",
            "Ours minus printed with its 95 % interval, beside the encoder before training.",
            tables=[_cells(judged)],
        ),
    ]
    footer = [
        f"n = {runs:,} final runs. Rendered by `make reproduction` from the scores in "
        "docs/reproduction/results; nothing was run again.",
        "Facts, notes, figures and settings of each table: the pages in docs/reproduction.",
    ]
    subtitle = f"{lines[-1].claims} claims of {len(PAPERS)} papers, judged on our runs"
    return render_page("The papers' tables, run again", subtitle, sections, footer)


def _meanings(pairs: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{word}: {meaning}" for word, meaning in pairs) + "."


def _toned(word: str, *, hatched: bool = False, tip: str = "") -> Toned:
    return Toned(word, TONES.get(word, "plain"), hatched, tip)


def _heatmap(stands: Sequence[Standing]) -> Table:
    forms = shown_forms(stands)
    rows = []
    for stand in stands:
        about, outcome = PAPERS[stand.table.paper], _toned(stand.outcome, hatched=stand.outcome == "inert")
        cells = [_form_cell(stand, form) for form in forms]
        rows.append([about.short, stand.table.number, stand.claim.text, outcome, *cells])
    columns = ("paper", "table", "claim", "comes to", *forms)
    note = _meanings((form, FORMS[form]) for form in forms)
    return Table("Claims by form", columns, rows, note, filters=("paper", "comes to", *forms))


def _form_cell(stand: Standing, form: str) -> object:
    cell = cell_of(stand, form)
    if cell is None:
        return ""
    return _toned(cell.status, hatched=cell.hatched, tip=_rests_on(stand.found[form]))


def _rests_on(found: Found) -> str:
    other = "on other data" if found.other_data else ""
    return "; ".join(filter(None, [other, verdict_line(found.verdict)[-1]]))


def _verdicts(stands: Sequence[Standing]) -> Table:
    rows = [
        [
            PAPERS[stand.table.paper].short,
            stand.table.number,
            stand.claim.text,
            form,
            _toned(found.verdict.status, hatched=found.hatched),
            _rests_on(found),
        ]
        for stand in stands
        for form, found in stand.found.items()
    ]
    columns = ("paper", "table", "claim", "form", "verdict", "rests on")
    return Table("Verdicts", columns, rows, filters=("paper", "form", "verdict"))


def _cells(judged: Sequence[JudgedForm]) -> Table:
    rows = [row for one in judged for row in _rows_of(one)]
    columns = (
        "paper",
        "table",
        "form",
        "column",
        "row",
        "printed",
        "these runs (n)",
        "ours - printed",
        "printed is",
        "untrained (n)",
    )
    return Table("Printed values", columns, rows, filters=("paper", "form", "printed is"))


def _rows_of(judged: JudgedForm) -> Iterator[list[object]]:
    results = judged.results
    for cell, control in compared_cells(judged):
        yield [
            PAPERS[results.table.paper].short,
            results.table.number,
            results.label,
            cell.column_name,
            cell.row_name,
            printed_text(cell),
            ours_text(cell.ours, cell.digits),
            difference_text(cell.difference, cell.digits),
            _side(cell),
            "" if control is None else ours_text(control.ours, control.digits),
        ]


def _side(cell: Compared) -> Toned:
    gap = cell.difference
    if gap is None or gap.low is None or gap.high is None:
        return Toned("without an interval", "plain")
    if not gap.apart:
        return Toned("in our interval", "blue")
    return Toned("below our interval" if gap.low > 0 else "above our interval", "orange")
