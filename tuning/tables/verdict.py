"""Judge the claims of a paper on our runs. `docs/claims.md` argues the rule.

A claim is a set of comparisons, each judged on the seeds that all its cells share. It holds if all are
supported and is contradicted if one is, at an error rate of 5 % each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from contrasweep.data import numpy_generator
from contrasweep.search_spaces.tables import Claim, Table, load_table
from contrasweep.tuning.tables.checks import Node, columns_read, parse_check
from contrasweep.tuning.tables.evaluate import Numbers, Outcome, evaluate
from contrasweep.tuning.tables.evidence import (
    ERROR,
    FEWEST_SEEDS,
    Judged,
    against_and_for,
    judge_each,
    leave_one_out,
    mean_beyond,
)
from contrasweep.tuning.tables.functions import Curve, NotMeasured
from contrasweep.tuning.tables.results import Key, TableResults

SHUFFLES = 200
"""How often the rows are shuffled within each seed, to see how often a claim holds by chance."""

POINTS = 0.5
"""The smallest difference that counts where a column is printed in per cent and declares none."""

Status = Literal["holds", "contradicted", "equal", "undecided", "inert", "not re-testable", "not run"]


@dataclass(frozen=True)
class Verdict:
    """The verdict of our runs on a claim.

    Attributes:
        claim: the claim.
        status: `holds` (every comparison is supported), `contradicted` (one is), `equal` (none is, and those
            that are not supported are equal), `inert` (no row that it reads differs from its untrained
            encoder), `undecided`, or why it was not judged.
        false: the p value against the claim; it holds where this is at most 5 %. None where not tested.
        true: the p value for the claim; it is contradicted where this is at most 5 %.
        comparisons: what the runs say about each comparison.
        chance: the share of shuffles of the rows within each seed in which the claim holds; None for a claim
            about a single row.
        seeds: the runs of each cell; None for facts of the data, which have no runs.
        note: why the claim was not judged; which rows and columns the verdict leaves out.
        read_in: the columns that were read in place of the claim's own; empty where its own were read.
        shown_in: the number of the figure that the claim is about; empty where it is about the table itself.
    """

    claim: Claim
    status: Status
    false: float | None = None
    true: float | None = None
    comparisons: tuple[Judged, ...] = ()
    chance: float | None = None
    seeds: int | None = None
    note: str = ""
    read_in: tuple[str, ...] = ()
    shown_in: str = ""


def judge(claim: Claim, own: TableResults, others: Mapping[str, TableResults] | None = None) -> Verdict:
    """Return the verdict on a claim of table `own`; its check may read the tables in `others`."""
    if claim.check is None:
        return Verdict(claim, "not re-testable", note="a statement in words, without a check")
    if not claim.retest:
        return Verdict(claim, "not re-testable", note="about exact printed figures")
    return _judge_tree(claim, parse_check(claim.check), claim.columns, own, others)


def _judge_tree(
    claim: Claim,
    tree: Node,
    columns: Sequence[str] | None,
    own: TableResults,
    others: Mapping[str, TableResults] | None,
) -> Verdict:
    """Return the verdict on a claim by a check; `[:]` stands for `columns` (None: all)."""
    name = own.table.id
    known = {name: own, **(others or {})}
    try:
        first = evaluate(tree, {key: _of_table(one) for key, one in known.items()}, name, columns)
        seeds = _common_seeds(known, first.read)
        if seeds is None:
            status: Status = "holds" if first.true.all() else "contradicted"
            return Verdict(claim, status, note=_left_out(first))
        if len(seeds) < FEWEST_SEEDS:
            why = f"too few seeds in common: {FEWEST_SEEDS} are needed"
            return Verdict(claim, "undecided", seeds=len(seeds), note=_joined(why, _left_out(first)))
        sampled = {key: _of_table(one, _Samples(seeds, key, first, claim)) for key, one in known.items()}
        outcome = evaluate(tree, sampled, name, columns)
    except NotMeasured as error:
        return Verdict(claim, "not run", note=f"not measured: {error}")
    return _verdict(claim, outcome, len(seeds), moved=_any_moved(known, outcome, seeds))


def _verdict(claim: Claim, outcome: Outcome, seeds: int, *, moved: bool) -> Verdict:
    false, true = against_and_for(outcome.statement, seeds)
    single = tuple(judge_each(outcome.statement, seeds))
    if not moved:
        status: Status = "inert"
    elif false[0] <= ERROR:
        status = "holds"
    elif true[0] <= ERROR:
        status = "contradicted"
    elif all(one.finding in ("supports", "equal") for one in single):
        status = "equal"
    else:
        status = "undecided"
    rows = {(table, row) for table, (row, _) in outcome.read}
    shuffled = false[1:] if len(rows) > 1 and len(false) > 1 else None
    chance = None if shuffled is None else float((shuffled <= ERROR).mean())
    return Verdict(claim, status, float(false[0]), float(true[0]), single, chance, seeds, _left_out(outcome))


def _left_out(outcome: Outcome) -> str:
    return f"without {', '.join(outcome.left_out)}" if outcome.left_out else ""


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def judge_all(own: TableResults, others: Mapping[str, TableResults] | None = None) -> list[Verdict]:
    """Return the verdicts on the claims of a table, in three parts.

    First come the table's own claims, then the claims of figures that show its rows, then the table's claims
    on columns that repeat others under other settings.
    """
    verdicts = [judge(claim, own, others) for claim in own.table.claims]
    for name in own.table.run.shown_in:
        figure = TableResults(load_table(name), own.scale, own.tuned, own.seeds)
        judged = (judge(claim, figure, {own.table.id: own}) for claim in figure.table.claims)
        verdicts += [replace(verdict, shown_in=figure.table.number) for verdict in judged]
    return verdicts + _judge_repeated(own, others)


def _judge_repeated(own: TableResults, others: Mapping[str, TableResults] | None) -> list[Verdict]:
    """Judge claims on the columns that repeat theirs, where every column that they read is repeated.

    `[:]` stands for the repeated columns.
    """
    measured = {value.column for value in own.values}
    ours = own.table.run.columns.items()
    instead = {column.repeats: key for key, column in ours if column.repeats and key in measured}
    found = []
    for claim in own.table.claims:
        if claim.check is None or not claim.retest:
            continue
        star = [c for c in claim.columns or [one.key for one in own.table.columns] if c in instead]
        tree = parse_check(claim.check)
        read = columns_read(tree, star)
        if read and all(column in instead for column in read):
            again = parse_check(claim.check, instead)
            verdict = _judge_tree(claim, again, [instead[c] for c in star], own, others)
            names = tuple(own.table.column_name(instead[column]) for column in read)
            found.append(replace(verdict, read_in=names))
    return found


def _common_seeds(known: Mapping[str, TableResults], read: Sequence[tuple[str, Key]]) -> list[int] | None:
    """Return the seeds that all cells share; None where the cells are facts of the data."""
    found: set[int] | None = None
    for table, (row, column) in read:
        seeds = {seed for seed in known[table].of(row, column) if seed is not None}
        if seeds:
            found = seeds if found is None else found & seeds
    return None if found is None else sorted(found)


def _any_moved(known: Mapping[str, TableResults], outcome: Outcome, seeds: Sequence[int]) -> bool:
    """Return whether a cell that was read differs from its untrained encoder by more than what counts.

    A cell without such a control counts as one that does.
    """
    for table, (row, column) in outcome.read:
        own = known[table].of(row, column)
        pairs = [(own[seed].value, own[seed].untrained) for seed in seeds if seed in own]
        gaps = [value - untrained for value, untrained in pairs if untrained is not None]
        if len(gaps) < len(seeds):
            return True
        if mean_beyond(gaps, smallest_difference(known[table].table, column)):
            return True
    return False


def smallest_difference(table: Table, column: str) -> float:
    """Return the smallest difference that counts in a column, in printed units.

    It is the one that the table declares, else half a point where the column is printed in per cent, and at
    least half a unit of the last digit that the table prints.
    """
    run = table.run.columns.get(column)
    if run is not None and run.margin is not None:
        return run.margin
    digits = [cell.digits for row in table.rows for cell in row.cells if cell.digits is not None]
    rounding = 0.5 * 10.0 ** -min(digits, default=15)
    return max(rounding, POINTS) if run is not None and run.scale == 100 else rounding


class _Samples:
    """Samples of the runs of one table: all seeds and without each, first as they are, then shuffled.

    A shuffle exchanges the rows that the claim reads within each seed, in all columns alike.
    """

    def __init__(self, seeds: Sequence[int], table: str, plain: Outcome, claim: Claim) -> None:
        self.seeds = seeds
        rows = list(dict.fromkeys(row for name, (row, _) in plain.read if name == table))
        generator = numpy_generator("claim", table, claim.text)
        ranks = generator.random((SHUFFLES + 1, len(rows), len(seeds)))
        ranks[0] = np.arange(len(rows))[:, None]
        self._ranks = {row: ranks[:, place] for place, row in enumerate(rows)}
        self._weights = leave_one_out(len(seeds))

    def means_and_deviations(self, column: Mapping[str, Sequence[float]]) -> dict[str, tuple[Any, Any]]:
        """Return means and sample deviations `((SHUFFLES + 1) (n + 1),)` by row, from values by seed."""
        # In the order of the ranks, so that the first arrangement is the runs as they are.
        rows = [row for row in self._ranks if row in column]
        order = np.stack([self._ranks[row] for row in rows], axis=1).argsort(axis=1)
        values = np.take_along_axis(np.array([column[row] for row in rows])[None], order, axis=1)
        means = values @ self._weights.T
        squares = (values**2) @ self._weights.T - means**2
        counts = (self._weights > 0).sum(axis=1)
        deviations = np.sqrt(np.maximum(squares, 0) * counts / np.maximum(counts - 1, 1))
        return {
            row: (means[:, place].ravel(), deviations[:, place].ravel()) for place, row in enumerate(rows)
        }


def _of_table(results: TableResults, samples: _Samples | None = None) -> Numbers:
    """Return the means and deviations of a table's cells: on `samples`, else once over all their runs."""
    by_column: dict[str, dict[str, dict[int | None, float]]] = {}
    for value in results.values:
        by_column.setdefault(value.column, {}).setdefault(value.row, {})[value.seed] = value.value
    means: dict[Key, NDArray[Any]] = {}
    stds: dict[Key, NDArray[Any]] = {}
    for column, rows in by_column.items():
        facts = {row: own for row, own in rows.items() if None in own or samples is None}
        for row, own in facts.items():
            values = np.array(list(own.values()))
            means[row, column] = values.mean(keepdims=True)
            if None not in own:
                stds[row, column] = values.std(ddof=1, keepdims=True) if len(own) > 1 else np.array([np.nan])
        if samples is not None:
            drawn = {
                row: [own[seed] for seed in samples.seeds]
                for row, own in rows.items()
                if row not in facts and own.keys() >= set(samples.seeds)
            }
            if drawn:
                for row, (mean, std) in samples.means_and_deviations(drawn).items():
                    means[row, column], stds[row, column] = mean, std
    table = results.table
    keys = tuple(row.key for row in table.rows) or tuple(dict.fromkeys(row for row, _ in means))
    columns = tuple(column.key for column in table.columns)
    margins = {column: smallest_difference(table, column) for column in by_column}
    return Numbers(keys, columns, means, stds, _curves(results, means, margins), margins)


_Place = tuple[float | str, float | None, Key]
"""A point of a curve: its x (a number or a word), its y on a map, and its cell."""


def _curves(
    results: TableResults, means: Mapping[Key, NDArray[Any]], margins: Mapping[str, float]
) -> dict[str, Curve]:
    """Return a figure's curves: one for each series of its rows, or one for each column of clusterings.

    The x of a point is its row's, else its column's, else the key of the column. `missing` names the points
    that were planned and not measured; points that never run here do not count.
    """
    table = results.table
    if table.rows:
        return {}
    places: dict[str, list[_Place]] = {}
    for row, column in means:
        how = table.run.rows.get(row)
        if how is not None and how.series is not None:
            x = table.run.place(row, column)
            places.setdefault(how.series, []).append((column if x is None else x, how.y, (row, column)))
        elif how is None:
            places.setdefault(column, []).append((float(row.removeprefix("k")), None, (row, column)))
    measured = {(value.row, value.column) for value in results.values}
    missing: dict[str, list[Key]] = {}
    for row, column in results.gaps:
        how = table.run.rows.get(row)
        if how is not None and how.series is not None and how.never is None and (row, column) not in measured:
            missing.setdefault(how.series, []).append((row, column))
    return {
        name: _curve(name, places.get(name, []), means, missing.get(name, []), margins)
        for name in dict.fromkeys([*places, *missing])
    }


def _curve(
    name: str,
    places: list[_Place],
    means: Mapping[Key, NDArray[Any]],
    missing: Sequence[Key],
    margins: Mapping[str, float],
) -> Curve:
    if not places:
        return Curve(name, (), np.empty((1, 0)), missing=tuple(missing))
    # Numbers rise; words stay in the order of the table.
    places.sort(key=lambda p: (0.0 if isinstance(p[0], str) else p[0], -np.inf if p[1] is None else p[1]))
    heights = np.stack(np.broadcast_arrays(*(means[key] for _, _, key in places)), axis=1)
    ys = None if any(y is None for _, y, _ in places) else tuple(y for _, y, _ in places if y is not None)
    keys = tuple(key for _, _, key in places)
    margin = max(margins[column] for _, column in keys)
    return Curve(name, tuple(x for x, _, _ in places), heights, ys, keys, tuple(missing), margin)
