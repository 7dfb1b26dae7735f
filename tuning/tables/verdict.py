"""Judge the claims of a paper on our runs. `docs/verdict-statistics.md` explains the rule.

A claim is a set of comparisons, each judged on the seeds that all its cells share. It holds if all are
supported and is contradicted if one is, at an error rate of 5 % each.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from contrasweep.names import few
from contrasweep.search_spaces.tables import Claim, Table, load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.tables.checks import Node, columns_read, parse_check
from contrasweep.tuning.tables.evaluate import CheckOutcome, evaluate
from contrasweep.tuning.tables.evidence import (
    ERROR,
    FEWEST_SEEDS,
    JudgedComparison,
    against_and_for,
    contradicting,
    finding_of,
    judge_each,
    mean_beyond,
)
from contrasweep.tuning.tables.functions import NotMeasured
from contrasweep.tuning.tables.results import Key, TableResults
from contrasweep.tuning.tables.runs import Runs, runs_of
from contrasweep.tuning.tables.samples import Samples, numbers
from contrasweep.tuning.tables.statements import ALWAYS, NEVER, comparisons

VerdictStatus = Literal["holds", "contradicted", "equal", "undecided", "inert", "not re-testable", "not run"]


@dataclass(frozen=True)
class Verdict:
    """The verdict of our runs on a claim.

    Attributes:
        claim: the claim.
        status: `holds` (the comparisons are supported), `contradicted` (one is), `equal` (neither, and those
            that are not supported are equal; see `finding_of`), `inert` (no row that it reads differs from
            its untrained encoder), `undecided`, or why it was not judged.
        false: the p value against the claim; it holds where this is at most 5 %. None where not tested.
        true: the p value for the claim; it is contradicted where this is at most 5 %.
        comparisons: what the runs say about each comparison, without a correction for their number.
        against: the comparisons that contradict a contradicted claim, after this correction.
        chance: the share of shuffles of the rows within each seed in which the claim holds; None for a claim
            that reads a single row of each column.
        seeds: the runs of each cell; None for facts of the data, which have no runs.
        note: why the claim was not judged; which rows and columns the verdict leaves out.
        read_in: the columns that were read in place of the claim's own; empty where its own were read.
        shown_in: the number of the figure that the claim is about; empty where it is about the table itself.
    """

    claim: Claim
    status: VerdictStatus
    false: float | None = None
    true: float | None = None
    comparisons: tuple[JudgedComparison, ...] = ()
    against: tuple[str, ...] = ()
    chance: float | None = None
    seeds: int | None = None
    note: str = ""
    read_in: tuple[str, ...] = ()
    shown_in: str = ""

    @property
    def p(self) -> float | None:
        """The p value behind the status: for the claim where it is contradicted, else against it."""
        return self.true if self.status == "contradicted" else self.false


def judge(claim: Claim, own: Runs, others: Mapping[str, Runs] | None = None) -> Verdict:
    """Return the verdict on a claim of table `own`; its check may read the tables in `others`."""
    if claim.check is None:
        return Verdict(claim, "not re-testable", note="a statement in words, without a check")
    if not claim.retest:
        return Verdict(claim, "not re-testable", note="about exact printed figures")
    if claim.absolute and own.small:
        return Verdict(claim, "not re-testable", note="its bound is a number of the paper's data")
    return _judge_tree(claim, parse_check(claim.check), claim.columns, own, others)


def _judge_tree(
    claim: Claim,
    tree: Node,
    columns: Sequence[str] | None,
    own: Runs,
    others: Mapping[str, Runs] | None,
) -> Verdict:
    """Return the verdict on a claim by a check; `[:]` stands for `columns` (None: all).

    Raises:
        InputError: the check is true, or false, of any runs, so that they would decide nothing.
    """
    known = {own.name: own, **(others or {})}
    try:
        first = evaluate(tree, {key: numbers(one) for key, one in known.items()}, own.name, columns)
        if first.statement == ALWAYS:
            raise InputError("the check compares nothing: it is true whatever the runs are")
        if first.statement == NEVER:
            raise InputError(
                "the check is false whatever the runs are, as one is that compares a cell with itself; to "
                "compare a row with all others, leave it out: rows_except"
            )
        seeds = _common_seeds(known, first.read)
        if seeds is None:
            return _of_facts(claim, first)
        if len(seeds) < FEWEST_SEEDS:
            why = f"too few seeds in common: {FEWEST_SEEDS} are needed"
            note = _joined(why, _shortest(known, first.read), _left_out(first))
            return Verdict(claim, "undecided", seeds=len(seeds), note=note)
        sampled = {key: numbers(one, Samples(seeds, key, first, claim.text)) for key, one in known.items()}
        outcome = evaluate(tree, sampled, own.name, columns)
    except NotMeasured as error:
        return Verdict(claim, "not run", note=f"not measured: {error}")
    moved = _any_moved(known, outcome, seeds)
    return _verdict(claim, outcome, len(seeds), moved=moved, shuffled=_any_shuffled(known, outcome))


def _of_facts(claim: Claim, outcome: CheckOutcome) -> Verdict:
    """Return the verdict where no run was read; a number without a value decides nothing, as with runs."""
    status: VerdictStatus = "holds" if outcome.true.all() else "contradicted"
    margins = (np.asarray(one.margin, dtype=float) for one in comparisons(outcome.statement))
    if status == "contradicted" and any(np.isnan(margin).any() for margin in margins):
        note = _joined("a number of the check has no value", _left_out(outcome))
        return Verdict(claim, "undecided", note=note)
    return Verdict(claim, status, note=_left_out(outcome))


def _verdict(claim: Claim, outcome: CheckOutcome, seeds: int, *, moved: bool, shuffled: bool) -> Verdict:
    false, true = against_and_for(outcome.statement, seeds)
    single = tuple(judge_each(outcome.statement, seeds))
    if not moved:
        status: VerdictStatus = "inert"
    elif false[0] <= ERROR:
        status = "holds"
    elif true[0] <= ERROR:
        status = "contradicted"
    elif finding_of(outcome.statement, seeds) == "equal":
        status = "equal"
    else:
        status = "undecided"
    chance = float((false[1:] <= ERROR).mean()) if shuffled and len(false) > 1 else None
    against = contradicting(outcome.statement, seeds) if status == "contradicted" else []
    return Verdict(
        claim,
        status,
        float(false[0]),
        float(true[0]),
        comparisons=single,
        against=tuple(against),
        chance=chance,
        seeds=seeds,
        note=_left_out(outcome),
    )


def _left_out(outcome: CheckOutcome) -> str:
    return _without(outcome.left_out)


def _without(names: Sequence[str]) -> str:
    return f"without {', '.join(names)}" if names else ""


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def judge_all(own: TableResults, others: Mapping[str, TableResults] | None = None) -> list[Verdict]:
    """Return the verdicts on the claims of a table, in three parts.

    First come the table's own claims, then the claims of figures that show its rows, then the table's claims
    on columns that repeat others under other settings.
    """
    runs = runs_of(own)
    beside = {name: runs_of(results) for name, results in (others or {}).items()}
    verdicts = [judge(claim, runs, beside) for claim in own.table.claims]
    for name in own.table.run.shown_in:
        figure = TableResults(load_table(name), own.scale, own.tuned, own.seeds)
        judged = (judge(claim, runs_of(figure), {runs.name: runs}) for claim in figure.table.claims)
        verdicts += [replace(verdict, shown_in=figure.table.number) for verdict in judged]
    return verdicts + _judge_repeated(own.table, runs, beside)


def _judge_repeated(table: Table, own: Runs, others: Mapping[str, Runs]) -> list[Verdict]:
    """Judge claims on the columns that repeat theirs, where every column that they read is repeated.

    `[:]` stands for the repeated columns; the verdict says which it leaves out.
    """
    measured = {column for _, column in own.values}
    ours = table.run.columns
    instead = {column.repeats: key for key, column in ours.items() if column.repeats and key in measured}
    found = []
    for claim in table.claims:
        if claim.check is None or not claim.retest:
            continue
        whole = claim.columns or [key for key in own.columns if key not in ours or not ours[key].repeats]
        star = [column for column in whole if column in instead]
        tree = parse_check(claim.check)
        read = columns_read(tree, star)
        repeated = read and all(column in instead for column in read)
        if repeated and not (claim.absolute and any(ours[instead[c]].other_data for c in read)):
            again = parse_check(claim.check, instead)
            verdict = _judge_tree(claim, again, [instead[c] for c in star], own, others)
            names = tuple(table.column_name(instead[column]) for column in read)
            others_read = [column for column in columns_read(tree, whole) if column not in read]
            ran = verdict.status != "not run"
            left = _without([table.column_name(column) for column in others_read]) if ran else ""
            found.append(replace(verdict, read_in=names, note=_joined(verdict.note, left)))
    return found


def _common_seeds(known: Mapping[str, Runs], read: Sequence[tuple[str, Key]]) -> list[int] | None:
    """Return the seeds that all cells share; None where the cells are facts of the data."""
    found: set[int] | None = None
    for table, (row, column) in read:
        seeds = {seed for seed in known[table].values[row, column] if seed is not None}
        if seeds:
            found = seeds if found is None else found & seeds
    return None if found is None else sorted(found)


def _shortest(known: Mapping[str, Runs], read: Sequence[tuple[str, Key]]) -> str:
    """Return which cells have the fewest runs, where others have more; facts of the data need none."""
    counts = {
        f"{row}.{column}": len(known[table].values[row, column])
        for table, (row, column) in read
        if None not in known[table].values[row, column]
    }
    fewest = min(counts.values())
    names = [name for name, count in counts.items() if count == fewest]
    return f"only {fewest} of {few(names)}" if fewest < max(counts.values()) else ""


def _any_moved(known: Mapping[str, Runs], outcome: CheckOutcome, seeds: Sequence[int]) -> bool:
    """Return whether a cell that was read differs from its untrained encoder by more than what counts.

    A cell without such a control counts as one that does.
    """
    for table, (row, column) in outcome.read:
        own = known[table].values[row, column]
        pairs = [(own[seed].value, own[seed].untrained) for seed in seeds if seed in own]
        gaps = [value - untrained for value, untrained in pairs if untrained is not None]
        if len(gaps) < len(seeds):
            return True
        if mean_beyond(gaps, known[table].margins.get(column, 0.0), len(outcome.read)):
            return True
    return False


def _any_shuffled(known: Mapping[str, Runs], outcome: CheckOutcome) -> bool:
    """Return whether a shuffle exchanges two cells that were read; facts of the data stay where they are."""
    cells = ((table, key) for table, key in outcome.read if None not in known[table].values[key])
    return max(Counter((table, column) for table, (_, column) in cells).values(), default=0) > 1
