"""Judge the claims of a paper on our runs: evaluate each check on paired resamples of the seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from contrasweep.data import numpy_generator
from contrasweep.search_spaces.tables import Claim, load_table
from contrasweep.tuning.tables.checks import Cells, Node, columns_read, parse_check, walk
from contrasweep.tuning.tables.evaluate import Numbers, evaluate
from contrasweep.tuning.tables.functions import Curve, NotMeasured
from contrasweep.tuning.tables.results import Key, TableResults

RESAMPLES = 2_000
SURE = 0.95
FEWEST_SEEDS = 3

Status = Literal["holds", "does not hold", "undecided", "not re-testable", "not run"]


@dataclass(frozen=True)
class Verdict:
    """The verdict of our runs on a claim.

    Attributes:
        claim: the claim.
        status: `holds` (true in 95 % of the resamples or more), `does not hold` (5 % or fewer), `undecided`.
        share: the share of the resamples in which the check is true; None where it was not evaluated.
        seeds: the runs of each cell that were resampled; None for facts of the data, which have no runs.
        note: why the claim is undecided or was not evaluated; which rows and columns the verdict leaves out.
        read_in: the columns that were read in place of the claim's own; empty where its own were read.
        shown_in: the number of the figure that the claim is about; empty where it is about the table itself.
    """

    claim: Claim
    status: Status
    share: float | None = None
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
        seeds = _common_seeds(known, evaluate(tree, _numbers(known, None), name, columns).read)
        draws = _draws(claim, name, seeds, spread=any(isinstance(n, Cells) and n.std for n in walk(tree)))
        outcome = evaluate(tree, _numbers(known, draws), name, columns)
    except NotMeasured as error:
        return Verdict(claim, "not run", note=f"not measured: {error}")
    share = float(outcome.true.mean())
    left_out = f"without {', '.join(outcome.left_out)}" if outcome.left_out else ""
    if seeds is None:
        return Verdict(claim, _status(share), share, note=left_out)
    if len(seeds) < FEWEST_SEEDS:
        why = f"too few seeds in common: {FEWEST_SEEDS} are needed"
        return Verdict(claim, "undecided", seeds=len(seeds), note="; ".join(filter(None, [why, left_out])))
    return Verdict(claim, _status(share), share, len(seeds), left_out)


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


def _status(share: float) -> Status:
    if share >= SURE:
        return "holds"
    return "does not hold" if share <= 1 - SURE + 1e-12 else "undecided"


def _common_seeds(known: Mapping[str, TableResults], read: Sequence[tuple[str, Key]]) -> list[int] | None:
    """Return the seeds that all cells share; None where the cells are facts of the data."""
    found: set[int] | None = None
    for table, (row, column) in read:
        seeds = {seed for seed in known[table].of(row, column) if seed is not None}
        if seeds:
            found = seeds if found is None else found & seeds
    return None if found is None else sorted(found)


def _draws(
    claim: Claim, table: str, seeds: Sequence[int] | None, *, spread: bool
) -> NDArray[np.int64] | None:
    """Return seeds `(B, n)`: each row is a resample of the n seeds, shared by all cells of a claim.

    With `spread`, resamples that drew one seed n times are left out: their deviation is 0.
    """
    if not seeds:
        return None
    generator = numpy_generator("claim", table, claim.text)
    draws: NDArray[np.int64] = np.asarray(seeds)[generator.integers(len(seeds), size=(RESAMPLES, len(seeds)))]
    varied = (draws != draws[:, :1]).any(axis=1)
    return draws[varied] if spread and varied.any() else draws


def _numbers(known: Mapping[str, TableResults], draws: NDArray[np.int64] | None) -> dict[str, Numbers]:
    return {name: _of_table(results, draws) for name, results in known.items()}


def _of_table(results: TableResults, draws: NDArray[np.int64] | None) -> Numbers:
    """Return resampled means and sample deviations `(B,)` of the cells that have all drawn seeds."""
    means: dict[Key, NDArray[Any]] = {}
    stds: dict[Key, NDArray[Any]] = {}
    by_cell: dict[Key, dict[int | None, float]] = {}
    for value in results.values:
        by_cell.setdefault((value.row, value.column), {})[value.seed] = value.value
    for key, values in by_cell.items():
        if draws is None or None in values:
            drawn = np.array([list(values.values())])
        elif set(np.unique(draws).tolist()) <= set(values):
            drawn = np.vectorize(values.__getitem__, otypes=[float])(draws)
        else:
            continue
        means[key] = drawn.mean(axis=1)
        if None not in values:
            # One run has no deviation; NaN does no harm, since fewer than three seeds decide nothing.
            stds[key] = drawn.std(axis=1, ddof=1) if drawn.shape[1] > 1 else np.full(len(drawn), np.nan)
    rows = tuple(row.key for row in results.table.rows) or tuple(dict.fromkeys(row for row, _ in by_cell))
    columns = tuple(column.key for column in results.table.columns)
    digits = [cell.digits for row in results.table.rows for cell in row.cells if cell.digits is not None]
    # Cells that differ by less than half a unit of the last digit are printed as equal.
    tolerance = 0.5 * 10.0 ** -min(digits, default=15)
    return Numbers(rows, columns, means, stds, _curves(results, means), tolerance)


_Place = tuple[float | str, float | None, Key]
"""A point of a curve: its x (a number or a word), its y on a map, and its cell."""


def _curves(results: TableResults, means: Mapping[Key, NDArray[Any]]) -> dict[str, Curve]:
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
        name: _curve(places.get(name, []), means, missing.get(name, []))
        for name in dict.fromkeys([*places, *missing])
    }


def _curve(places: list[_Place], means: Mapping[Key, NDArray[Any]], missing: Sequence[Key]) -> Curve:
    if not places:
        return Curve((), np.empty((1, 0)), missing=tuple(missing))
    # Numbers rise; words stay in the order of the table.
    places.sort(key=lambda p: (0.0 if isinstance(p[0], str) else p[0], -np.inf if p[1] is None else p[1]))
    heights = np.stack(np.broadcast_arrays(*(means[key] for _, _, key in places)), axis=1)
    ys = None if any(y is None for _, y, _ in places) else tuple(y for _, y, _ in places if y is not None)
    keys = tuple(key for _, _, key in places)
    return Curve(tuple(x for x, _, _ in places), heights, ys, keys, tuple(missing))
