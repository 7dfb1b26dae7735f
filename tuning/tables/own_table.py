"""A user's own table: claims from a YAML file and runs from another file, checked before they are judged.

docs/claims.md defines both files.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from keyword import iskeyword
from pathlib import Path

from contrasweep.names import few
from contrasweep.search_spaces.claims_file import ClaimsFile, Point, load_claims
from contrasweep.search_spaces.tables import Claim
from contrasweep.tuning.errors import InputError, told_to_user, unknown_name
from contrasweep.tuning.results.commands import verify_command
from contrasweep.tuning.tables.checks import (
    EXAMPLE,
    STAR,
    Call,
    Cells,
    Constant,
    CurveCall,
    has_star,
    parse_check,
    walk,
)
from contrasweep.tuning.tables.functions import ENDS, place_text
from contrasweep.tuning.tables.results import RunValue
from contrasweep.tuning.tables.runs import Place, Runs, by_cell
from contrasweep.tuning.tables.runs_file import ENDINGS, OWN, read_runs
from contrasweep.tuning.tables.verdict import Verdict, judge


@dataclass(frozen=True)
class OwnTable:
    """A table with the claims about it.

    Attributes:
        file: the file of the claims.
        claims: the claims; their checks parse, and name only rows, columns, curves and tables that there are.
        runs: the runs of the table.
        others: the runs of other tables that checks may read, by name.
    """

    file: Path
    claims: tuple[Claim, ...]
    runs: Runs
    others: Mapping[str, Runs]

    def verdicts(self) -> list[Verdict]:
        """Return the verdict on each claim.

        Raises:
            InputError: a check divides by a constant 0, is true without any comparison, or has a function
                that cannot read its curve; the message has the number of the claim.
        """
        found = []
        for number, claim in enumerate(self.claims, start=1):
            with told_to_user(_place(self.file, number)):
                found.append(judge(claim, self.runs, self.others))
        return found


def read_own_table(claims: Path, runs: Path) -> OwnTable:
    """Return the table that two files describe.

    Raises:
        SpaceError: the file of claims is missing, not YAML, or holds a key or a value that is not allowed.
        InputError: the file of runs is wrong, or a check does not parse or names what there is not.
    """
    if claims.suffix in ENDINGS:
        raise InputError(
            f"{claims}: claims are read from a YAML file, and come first: "
            f"{verify_command(runs if runs.suffix not in ENDINGS else 'CLAIMS.yaml', claims)}"
        )
    stated = load_claims(claims)
    tables = {OWN: (), **read_runs(runs)}
    own = _own_runs(tables.pop(OWN), stated)
    others = {name: _runs(name, values, stated.margins) for name, values in tables.items()}
    found = tuple(claim.as_claim() for claim in stated.claims)
    _check_names(claims, stated, own)
    for number, claim in enumerate(found, start=1):
        with told_to_user(_place(claims, number)):
            _check_claim(claim, own, others)
    return OwnTable(claims, found, own, others)


def _place(claims: Path, number: int) -> str:
    return f"{claims}: claim {number}: "


def _runs(name: str, values: tuple[RunValue, ...], margins: Mapping[str, float]) -> Runs:
    rows = tuple(dict.fromkeys(value.row for value in values))
    columns = tuple(dict.fromkeys(value.column for value in values))
    return Runs(name, rows, columns, by_cell(values), margins)


def _own_runs(values: tuple[RunValue, ...], stated: ClaimsFile) -> Runs:
    """Return the runs that the claims are about: planned rows and columns first, then those of the runs."""
    rows = dict.fromkeys([*stated.rows, *(value.row for value in values)])
    columns = dict.fromkeys([*stated.columns, *(value.column for value in values)])
    curves = {
        name: tuple(Place((point.row, point.column), point.x, point.y) for point in points)
        for name, points in stated.curves.items()
    }
    return Runs(OWN, tuple(rows), tuple(columns), by_cell(values), stated.margins, curves)


def _check_names(path: Path, stated: ClaimsFile, own: Runs) -> None:
    """Refuse names that are given twice, margins and curves of strangers, and points that make no curve."""
    for key, names in (("rows", stated.rows), ("columns", stated.columns)):
        with told_to_user(f"{path}: {key}: "):
            _refuse_repeated(names)
    with told_to_user(f"{path}: margins: "):
        _refuse_strangers("column", stated.margins, own.columns)
    for name, points in stated.curves.items():
        with told_to_user(f"{path}: curve {name!r}: "):
            _refuse_strangers("row", (point.row for point in points), own.rows)
            _refuse_strangers("column", (point.column for point in points), own.columns)
            _check_points(points)


def _refuse_repeated(names: Sequence[str]) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{name!r} is given {count} times; allowed: once")


def _check_points(points: Sequence[Point]) -> None:
    """Refuse points that share a place, or do not lie on the same axes."""
    for axis, kinds in (
        ("x is a word at some points and a number at others", {isinstance(one.x, str) for one in points}),
        ("y is given at some points and left out at others", {one.y is None for one in points}),
    ):
        if len(kinds) > 1:
            raise InputError(f"{axis}; allowed: the same at all")
    for place, count in Counter((point.x, point.y) for point in points).items():
        if count > 1:
            x, y = place
            where = f"x = {x}" + ("" if y is None else f", y = {y}")
            raise InputError(f"{count} points lie at {where}: one is needed")


def _check_claim(claim: Claim, own: Runs, others: Mapping[str, Runs]) -> None:
    """Refuse a check that does not parse or names rows, columns, curves or tables that there are not."""
    assert claim.check is not None, "a claims file has a check for each claim"
    _refuse_strangers("column", claim.columns or (), own.columns)
    with told_to_user("columns: "):
        _refuse_repeated(claim.columns or ())
    tree = parse_check(claim.check, example=_example(claim.check, own))
    if claim.columns is not None and not has_star(tree):
        raise InputError(
            f"columns, given {', '.join(claim.columns)}, say what [:] stands for; the check has no [:]"
        )
    for node in walk(tree):
        match node:
            case Cells():
                _check_cells(node, own, others)
            case CurveCall():
                for curves in node.curves:
                    _refuse_strangers("curve", curves, own.curves)
                _check_place(node, own)
            case Call(name="==", parts=(Call(parts=(Cells() as group,)), Constant(value=str(key)))):
                _check_best(key, group, own, others)
            case _:
                pass


def _check_place(call: CurveCall, own: Runs) -> None:
    """Refuse a place that a curve does not have; without names, the function reads all curves."""
    if call.place is None or call.place in ENDS:
        return
    for name in [name for curves in call.curves for name in curves] or own.curves:
        places = dict.fromkeys(place.x for place in own.curves[name])
        if call.place not in places:
            given, *known = map(place_text, (call.place, *places))
            raise InputError(
                f"{call.name}: curve {name!r} has no place {given}; its places are {', '.join(known)}"
            )


def _example(check: str, own: Runs) -> str:
    """Return a check on two rows and a column that there are, if possible on those that a check names."""
    if not own.rows or not own.columns:
        return EXAMPLE

    def named_first(names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: (name not in check, check.find(name)))

    rows, columns = named_first(own.rows), named_first(own.columns)
    plain = columns[0].isidentifier() and not iskeyword(columns[0])
    column = f".{columns[0]}" if plain else f'["{columns[0]}"]'
    sides = [f'row["{row}"]{column}' for row in rows[:2]]
    return " > ".join(sides if len(sides) == 2 else [*sides, "0"])


def _check_cells(cells: Cells, own: Runs, others: Mapping[str, Runs]) -> None:
    runs = _table_of(cells, own, others)
    _refuse_strangers("row", [*(cells.rows or ()), *cells.but], runs.rows)
    if not cells.rows_among(runs.rows):
        raise InputError(f"rows_except leaves out every row: {few(runs.rows)}")
    if cells.column != STAR:
        _refuse_strangers("column", [cells.column], runs.columns)


def _check_best(key: str, group: Cells, own: Runs, others: Mapping[str, Runs]) -> None:
    """Refuse a row that is not in the group whose best row a check says that it is."""
    every = _table_of(group, own, others).rows
    _refuse_strangers("row", [key], every)
    rows = group.rows_among(every)
    if key not in rows:
        raise InputError(f"row {key!r} is not in the group that it is said to be the best of: {few(rows)}")


def _table_of(cells: Cells, own: Runs, others: Mapping[str, Runs]) -> Runs:
    if cells.table is None:
        return own
    _refuse_strangers("table", [cells.table], others)
    return others[cells.table]


def _refuse_strangers(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    names = list(known)
    for name in given:
        if name not in names:
            raise unknown_name(kind, name, names)
