"""The standing of each claim of the papers: its verdict in each form, and their summary.

Only a verdict at the paper's settings and on the paper's data can confirm or contradict a claim. Verdicts in
other forms (searched, smaller, on other data) are shown, but decide nothing.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

from contrasweep.search_spaces.tables import Claim, Table, available_tables, load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.statistics import holm
from contrasweep.tuning.tables.checks import columns_read, parse_check, tables_read
from contrasweep.tuning.tables.evidence import ERROR
from contrasweep.tuning.tables.results import TableResults, read_results
from contrasweep.tuning.tables.verdict import Verdict, VerdictStatus, judge_all

ClaimOutcome = Literal[
    "confirmed",
    "contradicted",
    "equal",
    "undecided",
    "inert",
    "other form",
    "not run yet",
    "data missing",
    "cannot run",
    "not re-testable",
]

OUTCOMES: Final[Mapping[ClaimOutcome, str]] = {
    "confirmed": "every comparison of the claim is supported",
    "contradicted": "a comparison of the claim is contradicted",
    "equal": "the difference is smaller than the margin",
    "undecided": "the runs neither support nor contradict it",
    "inert": "no row of the claim is shown to differ from its untrained encoder",
    "other form": "judged only in a quick or searched form, or on other data",
    "not run yet": "we have the data but have not run it",
    "data missing": "no stored run has read its data",
    "cannot run": "contrasweep cannot run it; the table says why",
    "not re-testable": "about exact printed figures, or a statement without a check",
}
"""What a claim can come to at the paper's settings and data, and what that means."""

JUDGED: Final[Mapping[VerdictStatus, ClaimOutcome]] = {
    "holds": "confirmed",
    "contradicted": "contradicted",
    "equal": "equal",
    "undecided": "undecided",
    "inert": "inert",
}
"""What a verdict at the paper's settings and data makes of a claim, for verdicts that rest on runs."""

PAPER = "paper's"
FORMS: Final[Mapping[str, str]] = {
    PAPER: "the paper's settings",
    "paper's, repeated": "the paper's settings, read in columns that repeat the claim's under other settings",
    "released": "the released command's settings",
    "searched": "each row searched with the same budget",
    "searched, repeated": "searched, read in columns that repeat the claim's",
    "quick": "smaller than the paper's",
    "quick, searched": "smaller than the paper's, each row searched",
}
"""The forms in which a claim is judged, and what they mean."""


@dataclass(frozen=True)
class JudgedForm:
    """A stored form of a table, and the verdicts on its claims."""

    results: TableResults
    verdicts: tuple[Verdict, ...]

    @property
    def as_printed(self) -> bool:
        """Whether the runs have the paper's settings."""
        return self.results.scale == "paper" and not self.results.tuned


@dataclass(frozen=True)
class Found:
    """A verdict on a claim in one form.

    Attributes:
        results: the results that it rests on.
        verdict: the verdict.
        other_data: whether a column that was read holds data that stand in for the paper's.
    """

    results: TableResults
    verdict: Verdict
    other_data: bool

    @property
    def ran(self) -> bool:
        """Whether the verdict rests on runs, or on facts of the data."""
        return self.verdict.status in JUDGED

    @property
    def hatched(self) -> bool:
        """Whether a picture hatches it: it rests on runs on other data, or its rows did not move."""
        return self.ran and (self.other_data or self.verdict.status == "inert")


@dataclass(frozen=True)
class Standing:
    """Where a claim stands.

    Attributes:
        table, claim: the claim, and the table or figure that states it.
        outcome: what the runs at the paper's settings and data come to, or why there are none.
        found: the verdicts by form.
        confirmed_by_holm: whether it stays confirmed when all tested claims of the paper are counted.
    """

    table: Table
    claim: Claim
    outcome: ClaimOutcome
    found: Mapping[str, Found] = field(default_factory=dict)
    confirmed_by_holm: bool = False

    @property
    def decisive(self) -> Found | None:
        """The verdict at the paper's settings and data; None where there is none."""
        return _decisive(self.found)


def read_judged(folder: Path) -> list[JudgedForm]:
    """Return what the results files of a folder hold, in the order of the papers, with the verdicts.

    Raises:
        InputError: the folder holds no results, or a file is not a results file.
    """
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise InputError(f"{folder} holds no results; contrasweep table ID --save FOLDER writes them")
    order = available_tables()
    found = sorted((read_results(file) for file in files), key=lambda r: (order.index(r.table.id), r.name))
    return [JudgedForm(results, tuple(judge_all(results, _others(results, found)))) for results in found]


def standings(judged: Sequence[JudgedForm]) -> list[Standing]:
    """Return where every claim of every table stands, in the order of the papers."""
    by_claim: dict[tuple[str, str], dict[str, Found]] = {}
    for own in judged:
        for verdict in own.verdicts:
            found = Found(own.results, verdict, _on_other_data(own.results, verdict))
            key = (_source(own.results, verdict), verdict.claim.text)
            by_claim.setdefault(key, {})[_form(own.results, verdict)] = found
    read = {_base(info.dataset) for own in judged for info in own.results.cells.values()}
    stands: list[Standing] = []
    for name in available_tables():
        table = load_table(name)
        for claim in table.claims:
            own_forms = by_claim.get((name, claim.text), {})
            stands.append(Standing(table, claim, _outcome(table, claim, own_forms, read), own_forms))
    return list(_with_holm(stands))


def columns_of(table: Table, claim: Claim) -> list[str]:
    """Return the columns that a claim reads and that have runs here; all that have where it names none."""
    star = claim.columns or [column.key for column in table.columns]
    read = [] if claim.check is None else columns_read(parse_check(claim.check), star)
    return [column for column in read if column in table.run.columns] or list(table.run.columns)


def _others(results: TableResults, found: Sequence[TableResults]) -> Mapping[str, TableResults]:
    """Return the results of the tables that a table's claims read, in the same form."""
    names = tables_read(results.table.claims)
    form = (results.scale, results.tuned)
    return {r.table.id: r for r in found if r.table.id in names and (r.scale, r.tuned) == form}


def _source(results: TableResults, verdict: Verdict) -> str:
    """Return the id of the table or figure that states the claim."""
    if not verdict.shown_in:
        return results.table.id
    return next(name for name in results.table.run.shown_in if load_table(name).number == verdict.shown_in)


def _form(results: TableResults, verdict: Verdict) -> str:
    form = PAPER if results.scale == "paper" else results.scale
    if results.tuned:
        form = "searched" if form == PAPER else f"{form}, searched"
    return f"{form}, repeated" if verdict.read_in else form


def _on_other_data(results: TableResults, verdict: Verdict) -> bool:
    table = results.table
    if verdict.read_in:
        names = {table.column_name(key): column for key, column in table.run.columns.items()}
        return any(names[name].other_data for name in verdict.read_in)
    if verdict.shown_in:
        return results.on_other_data
    measured = {value.column for value in results.values}
    known = [table.run.columns[c].other_data for c in columns_of(table, verdict.claim) if c in measured]
    return any(known) if known else results.on_other_data


def _decisive(found: Mapping[str, Found]) -> Found | None:
    one = found.get(PAPER)
    return one if one is not None and one.ran and not one.other_data else None


def _outcome(table: Table, claim: Claim, found: Mapping[str, Found], read: set[str]) -> ClaimOutcome:
    decisive = _decisive(found)
    if decisive is not None:
        return JUDGED[decisive.verdict.status]
    if any(one.ran for one in found.values()):
        return "other form"
    if claim.check is None or not claim.retest:
        return "not re-testable"
    if table.run.never is not None or not (table.run.columns or table.run.information):
        return "cannot run"
    wanted = {
        _base(name) for column in columns_of(table, claim) for name in table.run.columns[column].datasets
    }
    return "not run yet" if not wanted or wanted & read else "data missing"


def _base(dataset: str) -> str:
    """Return a dataset's name without its options."""
    return dataset.partition(":")[0]


def _with_holm(stands: Sequence[Standing]) -> Iterator[Standing]:
    """Yield the standings; a confirmed claim is marked where it survives Holm's correction in its paper."""
    survive = set()
    for paper in {stand.table.paper for stand in stands}:
        own = [s for s in stands if s.table.paper == paper and s.outcome in JUDGED.values()]
        survive |= set(_surviving(s for s in own if s.outcome != "inert"))
    for stand in stands:
        key = (stand.table.id, stand.claim.text)
        yield Standing(stand.table, stand.claim, stand.outcome, stand.found, key in survive)


def _surviving(stands: Iterable[Standing]) -> list[tuple[str, str]]:
    """Return the keys of the claims that stay confirmed; facts of the data are certain, so no p is theirs."""
    tested, certain = [], []
    for stand in stands:
        assert stand.decisive is not None, "its outcome rests on a verdict"
        key, p = (stand.table.id, stand.claim.text), stand.decisive.verdict.false
        if p is not None:
            tested.append((key, p))
        elif stand.outcome == "confirmed":
            certain.append(key)
    corrected = holm([p for _, p in tested])
    return certain + [key for (key, _), p in zip(tested, corrected, strict=True) if p <= ERROR]
