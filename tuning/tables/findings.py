"""The findings of the papers' tables in sentences, computed from the verdicts and the scores."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from contrasweep.names import few, with_capital
from contrasweep.search_spaces.papers import PAPERS
from contrasweep.tuning.tables.compare import Compared
from contrasweep.tuning.tables.evidence import FEWEST_SEEDS, mean_beyond
from contrasweep.tuning.tables.results import TableResults
from contrasweep.tuning.tables.runs import smallest_difference
from contrasweep.tuning.tables.scoreboard import ScoreLine, compared_cells
from contrasweep.tuning.tables.standings import (
    FORMS,
    PAPER,
    ClaimOutcome,
    Found,
    JudgedForm,
    Standing,
    columns_of,
)
from contrasweep.tuning.tables.text import plain
from contrasweep.tuning.tables.verdict_text import BOUND, bound_is_ours, p_text


@dataclass(frozen=True)
class Findings:
    """A heading with its sentences."""

    title: str
    sentences: tuple[str, ...]


def findings(
    stands: Sequence[Standing], judged: Sequence[JudgedForm], lines: Sequence[ScoreLine]
) -> list[Findings]:
    """Return what was reproduced, what was not, what other forms say, and what needs no training."""
    total = lines[-1]
    return [
        Findings("Reproduced, with the paper's settings on its data", tuple(_reproduced(stands, total))),
        Findings("Not reproduced", tuple(_not_reproduced(stands))),
        Findings("In other forms, which decide no claim", tuple(_elsewhere(stands))),
        Findings("What the untrained encoder already does", tuple(_untrained(judged, total))),
    ]


def _reproduced(stands: Sequence[Standing], total: ScoreLine) -> list[str]:
    said = [_told(stand) for stand in stands if stand.outcome == "confirmed"]
    covered = total.covered
    cells = (
        f"{covered.ours} of {covered.compared} printed values that were run again lie in our 95 % interval"
    )
    return [
        f"{len(said)} of {total.claims} claims are confirmed, {total.by_holm} of them also when all tested "
        "claims of their paper are counted (Holm).",
        *said,
        f"{cells}; the papers print {covered.printed:,} numbers.",
    ]


def _not_reproduced(stands: Sequence[Standing]) -> list[str]:
    wanted: tuple[ClaimOutcome, ...] = ("contradicted", "equal", "undecided", "inert")
    said = [_told(stand) for word in wanted for stand in stands if stand.outcome == word]
    waiting = Counter(stand.outcome for stand in stands)
    open_ones: tuple[ClaimOutcome, ...] = (
        "other form",
        "not run yet",
        "data missing",
        "cannot run",
        "not re-testable",
    )
    counts = ", ".join(f"{word} {waiting[word]}" for word in open_ones if waiting[word])
    return [*said, f"The other claims by outcome: {counts}."]


def _told(stand: Standing) -> str:
    """Return a claim with its outcome, and what the verdict rests on."""
    found = stand.decisive
    assert found is not None, "its outcome rests on a verdict"
    place = f"{PAPERS[stand.table.paper].short}, {stand.table.number}"
    return f"{place}: {_ended(stand.claim.text)} {stand.outcome.capitalize()}{_grounds(stand, found)}."


def _grounds(stand: Standing, found: Found) -> str:
    verdict = found.verdict
    parts = [f"read in {', '.join(verdict.read_in)}"] if verdict.read_in else []
    if verdict.seeds is None:
        parts.append("a fact of the data, without runs")
    elif verdict.p is None:
        parts.append(f"n = {verdict.seeds}, {FEWEST_SEEDS} are needed")
    elif verdict.status in ("holds", "contradicted"):
        parts.append(f"n = {verdict.seeds}, p {p_text(verdict.p)}")
    if verdict.against:
        parts.append(f"against it: {few(verdict.against, 1)}")
    if stand.outcome == "confirmed" and not stand.confirmed_by_holm:
        parts.append("not after Holm")
    if bound_is_ours(stand.claim):
        parts.append(BOUND)
    if verdict.status == "inert":
        parts.append("no row that it reads is shown to differ from its untrained encoder")
    elif stand.outcome == "confirmed" and verdict.p is not None:
        moved = _moved(found.results, columns_of(found.results.table, stand.claim))
        if not all(moved):
            parts.append(
                f"{moved.count(False)} of the {len(moved)} cells of its columns do not differ from their "
                "untrained encoder"
            )
    return f" ({'; '.join(parts)})" if parts else ""


def _elsewhere(stands: Sequence[Standing]) -> list[str]:
    said = []
    for form, what in FORMS.items():
        own = [s.found[form] for s in stands if form in s.found]
        for other_data in (False, True):
            ran = [one for one in own if one.ran and one.other_data == other_data]
            if not ran or (form == PAPER and not other_data):
                continue
            counts = Counter(one.verdict.status for one in ran)
            where = f"{what}, on other data" if other_data else what
            words = ", ".join(f"{count} {status}" for status, count in counts.items())
            said.append(f"{with_capital(where)}: {words}{_short(ran)}.")
    return said


def _short(found: Sequence[Found]) -> str:
    """Return how many verdicts are open only because the runs have too few seeds."""
    few = sum(one.verdict.seeds is not None and one.verdict.seeds < FEWEST_SEEDS for one in found)
    return f" ({few} with fewer than the {FEWEST_SEEDS} seeds that a verdict needs)" if few else ""


def _untrained(judged: Sequence[JudgedForm], total: ScoreLine) -> list[str]:
    covered = total.covered
    said = [
        f"{covered.untrained} of the {covered.compared} printed values that were run again lie in the 95 % "
        "interval of the encoder before any training."
    ]
    for own in judged:
        said += _columns_beside(own) if own.as_printed else []
    for form, searched in (("each row searched", True), ("the paper's settings", False)):
        cells = [
            moved
            for own in judged
            if own.results.scale == "paper" and own.results.tuned == searched
            for moved in _moved(own.results)
        ]
        if cells:
            said.append(
                f"With {form}, {cells.count(False)} of {len(cells)} cells are not shown to differ from "
                "their untrained encoder, on the paper's or other data."
            )
    return said


def _columns_beside(judged: JudgedForm) -> list[str]:
    """Return a sentence for each column that is compared with print: untrained, printed and ours."""
    results = judged.results
    place = f"{PAPERS[results.table.paper].short}, {results.table.number}"
    found: dict[str, list[tuple[Compared, Compared]]] = {}
    for cell, control in compared_cells(judged):
        if control is not None:
            found.setdefault(cell.column, []).append((cell, control))
    said = []
    for own in found.values():
        digits = own[0][0].digits
        printed = [cell.published for cell, _ in own if cell.published is not None]
        ours = [cell.ours.mean for cell, _ in own if cell.ours is not None]
        untrained = [control.ours.mean for _, control in own if control.ours is not None]
        said.append(
            f"{place}, {own[0][0].column_name}: {_span(untrained, digits)} without training; the paper "
            f"prints {_span(printed, digits)}, our trained rows have {_span(ours, digits)}."
        )
    return said


def _span(values: Sequence[float], digits: int) -> str:
    ends = dict.fromkeys(plain(end, digits) for end in (min(values), max(values)))
    return " to ".join(ends)


def _moved(results: TableResults, columns: Collection[str] | None = None) -> list[bool]:
    """Return, of each cell with enough seeds and by itself, whether it differs from its untrained encoder."""
    found = []
    for row, column in dict.fromkeys((value.row, value.column) for value in results.values):
        runs = results.of(row, column).values()
        gaps = [run.value - run.untrained for run in runs if run.untrained is not None]
        if len(gaps) >= FEWEST_SEEDS and (columns is None or column in columns):
            found.append(mean_beyond(gaps, smallest_difference(results.table, column), of=1))
    return found


def _ended(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def bullets(parts: Iterable[Findings]) -> str:
    """Return findings in Markdown."""
    return "\n\n".join(
        f"**{part.title}**\n\n" + "\n".join(f"- {sentence}" for sentence in part.sentences) for part in parts
    )
