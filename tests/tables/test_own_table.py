"""Claims about anybody's table: the papers' own tables, written as such files, keep their verdicts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from contrasweep.search_spaces.tables import Claim
from contrasweep.tuning.tables.checks import CurveCall, has_star, parse_check, tables_read, walk
from contrasweep.tuning.tables.own_table import read_own_table
from contrasweep.tuning.tables.results import RunValue, TableResults, read_results
from contrasweep.tuning.tables.runs import runs_of
from contrasweep.tuning.tables.runs_file import TYPES
from contrasweep.tuning.tables.verdict import Verdict, judge_all

RESULTS = Path(__file__).parents[2] / "docs" / "reproduction" / "results"
STORED = {path.stem: read_results(path) for path in sorted(RESULTS.glob("*.parquet"))}


def beside(own: TableResults) -> dict[str, TableResults]:
    names, form = tables_read(own.table.claims), (own.scale, own.tuned)
    return {r.table.id: r for r in STORED.values() if r.table.id in names and (r.scale, r.tuned) == form}


def lines(values: Sequence[RunValue], table: str | None = None) -> Iterator[dict[str, Any]]:
    for value in values:
        yield {name: getattr(value, name, table) for name in TYPES}


def written(
    folder: Path, own: TableResults, claims: Sequence[Claim], others: Mapping[str, TableResults]
) -> tuple[Path, Path]:
    """Write the pair of files that has the same claims and runs, and return their paths."""
    runs, columns = runs_of(own), [column.key for column in own.table.columns]
    points = {
        name: [{"row": p.key[0], "column": p.key[1], "x": p.x, "y": p.y} for p in places]
        for name, places in runs.curves.items()
    }
    content = {
        "margins": dict(runs.margins),
        "rows": list(dict.fromkeys([*runs.rows, *(p["row"] for own in points.values() for p in own)])),
        "columns": list(dict.fromkeys([*columns, *own.table.run.columns])),
        "curves": points,
        "claims": [
            {"text": c.text, "check": c.check}
            | (
                {"columns": list(c.columns or columns)}
                if columns and has_star(parse_check(c.check or ""))
                else {}
            )
            for c in claims
        ],
    }
    rows = [*lines(own.values), *(line for name, r in others.items() for line in lines(r.values, name))]
    paths = folder / "claims.yaml", folder / "runs.parquet"
    paths[0].write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(list(TYPES.items()))), paths[1])
    return paths


def agree(found: Sequence[Verdict], expected: Sequence[Verdict]) -> None:
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected, strict=True):
        assert (one.status, one.seeds) == (other.status, other.seeds), one.claim.text
        assert (one.false, one.true) == (other.false, other.true), one.claim.text
        assert len(one.comparisons) == len(other.comparisons)


def judged(results: TableResults) -> list[Verdict]:
    """Return the verdicts that runs can give; a file names no table and no curve of which nothing was run."""
    others, curves = beside(results), runs_of(results).curves.keys()
    found = []
    for verdict in judge_all(results, others):
        claim = verdict.claim
        if claim.check is not None and verdict.status != "not re-testable":
            calls = [node for node in walk(parse_check(claim.check)) if isinstance(node, CurveCall)]
            named = {name for call in calls for names in call.curves for name in names}
            if verdict.shown_in or (set(tables_read([claim])) <= others.keys() and named <= curves):
                found.append(verdict)
    return found


@pytest.mark.parametrize("name", STORED)
def test_the_papers_tables_as_anybodys_keep_their_verdicts(name: str, tmp_path: Path) -> None:
    results = STORED[name]
    expected = [verdict for verdict in judged(results) if not verdict.read_in and not verdict.shown_in]
    if not expected:
        pytest.skip("no claim of this table can be tested again")
    files = written(tmp_path, results, [verdict.claim for verdict in expected], beside(results))
    agree(read_own_table(*files).verdicts(), expected)


@pytest.mark.parametrize("name", [name for name, results in STORED.items() if results.table.run.shown_in])
def test_the_claims_of_a_figure_that_shows_rows_of_a_table_keep_their_verdicts(
    name: str, tmp_path: Path
) -> None:
    results = STORED[name]
    expected = [verdict for verdict in judged(results) if verdict.shown_in]
    own = f'table["{results.table.id}"].'
    claims = [v.claim.model_copy(update={"check": (v.claim.check or "").replace(own, "")}) for v in expected]
    agree(read_own_table(*written(tmp_path, results, claims, {})).verdicts(), expected)


@pytest.mark.parametrize(
    "name",
    [n for n, results in STORED.items() if any(c.repeats for c in results.table.run.columns.values())],
)
def test_claims_on_columns_that_repeat_others_keep_their_verdicts(name: str, tmp_path: Path) -> None:
    results = STORED[name]
    expected = [verdict for verdict in judged(results) if verdict.read_in]
    if not expected:
        pytest.skip("no claim reads a column that repeats another")
    repeats = {key: column.repeats for key, column in results.table.run.columns.items() if column.repeats}
    values = tuple(
        replace(value, column=repeats[value.column]) for value in results.values if value.column in repeats
    )
    moved = replace(results, values=values)
    claims = [verdict.claim for verdict in expected]
    agree(read_own_table(*written(tmp_path, moved, claims, {})).verdicts(), expected)
