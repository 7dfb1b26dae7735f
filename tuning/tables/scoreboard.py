"""The scoreboard: for each paper, the standing of its claims, and how many printed values our runs cover."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from contrasweep.search_spaces.papers import PAPERS
from contrasweep.search_spaces.tables import available_tables, load_table
from contrasweep.tuning.tables.compare import Compared, Difference, compare, difference
from contrasweep.tuning.tables.results import TableResults
from contrasweep.tuning.tables.standings import OUTCOMES, ClaimOutcome, JudgedForm, Standing


@dataclass(frozen=True)
class Covered:
    """How many printed values lie in a 95 % interval, of those that can be compared.

    Attributes:
        ours: how many lie in the interval of our runs, at the paper's settings and on its data.
        untrained: how many lie in the interval of the untrained encoder, over the same seeds, with the
            printed deviation counted where it is counted for ours.
        compared: how many have runs that are compared with print.
        printed: the numbers that the paper prints in all its tables.
    """

    ours: int
    untrained: int
    compared: int
    printed: int

    def __add__(self, other: "Covered") -> "Covered":
        return Covered(
            self.ours + other.ours,
            self.untrained + other.untrained,
            self.compared + other.compared,
            self.printed + other.printed,
        )


@dataclass(frozen=True)
class ScoreLine:
    """A line of the scoreboard.

    Attributes:
        name: a paper's name in a sentence, or `all`.
        outcomes: the number of claims by outcome; every claim counts once.
        by_holm: how many claims are confirmed when all tested claims of their paper are counted.
        covered: how many printed values our runs cover.
    """

    name: str
    outcomes: Mapping[ClaimOutcome, int]
    by_holm: int
    covered: Covered

    @property
    def claims(self) -> int:
        """The number of all claims."""
        return sum(self.outcomes.values())


def scoreboard(stands: Sequence[Standing], judged: Sequence[JudgedForm]) -> list[ScoreLine]:
    """Return a line for each paper, and the line of all papers last."""
    lines = []
    for paper, about in PAPERS.items():
        own = [stand for stand in stands if stand.table.paper == paper]
        outcomes = Counter(stand.outcome for stand in own)
        covered = _covered(paper, [one for one in judged if one.results.table.paper == paper])
        lines.append(ScoreLine(about.short, outcomes, sum(s.confirmed_by_holm for s in own), covered))
    everything: Counter[ClaimOutcome] = sum((Counter(line.outcomes) for line in lines), Counter())
    total = sum((line.covered for line in lines), Covered(0, 0, 0, 0))
    return [*lines, ScoreLine("all", everything, sum(line.by_holm for line in lines), total)]


HEADINGS = ("paper", "claims", *OUTCOMES, "in ours / untrained")
"""The columns of the scoreboard; the last one counts printed values that lie in an interval."""


def scoreboard_rows(lines: Sequence[ScoreLine]) -> list[list[str]]:
    """Return the scoreboard's rows as text, under `HEADINGS`."""
    rows = []
    for line in lines:
        counts = [str(line.outcomes.get(outcome, 0)) for outcome in OUTCOMES]
        if line.outcomes.get("confirmed", 0):
            counts[0] = f"{counts[0]} ({line.by_holm})"
        own = line.covered
        share = f"{own.ours} / {own.untrained} of {own.compared}" if own.compared else "-"
        rows.append([line.name, str(line.claims), *counts, share])
    return rows


def controls_of(results_cells: Sequence[Compared]) -> dict[tuple[str, str], Compared]:
    """Return the untrained encoder of each trained cell, by (row, column)."""
    return {(row, control.column): control for control in results_cells for row in control.control_of}


def compared_cells(judged: JudgedForm) -> Iterator[tuple[Compared, Compared | None]]:
    """Yield each cell whose runs have an interval beside a printed value, with its untrained encoder."""
    cells = compare(judged.results)
    controls = controls_of(cells)
    for cell in cells:
        if cell.difference is not None and cell.difference.low is not None:
            yield cell, controls.get((cell.row, cell.column))


def _covered(paper: str, judged: Sequence[JudgedForm]) -> Covered:
    tables = (load_table(name) for name in available_tables())
    printed = [cell for t in tables if t.paper == paper for row in t.rows for cell in row.cells]
    found = [(one, *pair) for one in judged if one.as_printed for pair in compared_cells(one)]
    return Covered(
        ours=sum(_holds_zero(cell.difference) for _, cell, _ in found),
        untrained=sum(_holds_zero(_untrained_gap(one.results, cell, own)) for one, cell, own in found),
        compared=len(found),
        printed=sum(cell.mean is not None for cell in printed),
    )


def _holds_zero(gap: Difference | None) -> bool:
    return gap is not None and gap.low is not None and not gap.apart


def _untrained_gap(results: TableResults, cell: Compared, control: Compared | None) -> Difference | None:
    """Return the untrained encoder minus the printed value, with the interval that ours would have."""
    if control is None or control.ours is None or cell.published is None:
        return None
    return difference(control.ours, cell.published, cell.published_std, results.table.run.published_runs)
