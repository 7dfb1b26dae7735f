"""The papers' tables as data: all tables ship, their numbers are exact, and unknown keys are refused."""

from collections import Counter

import pytest

from contrasweep.search_spaces import SpaceError, available_presets, parse_yaml
from contrasweep.search_spaces.papers import PAPERS
from contrasweep.search_spaces.tables import available_tables, load_table, parse_table

TABLES = [load_table(name) for name in available_tables()]

SMALL = """
id: cclk-t0
paper: cclk
number: Table 0
caption: a table
columns: [{key: acc, dataset: digits, metric: top1}]
rows:
- key: a
  name: A
  method: infonce
  source: run
  cells: [{column: acc, mean: 84.1, std: 1.8, printed: 84.1±1.8}]
run: {never: because}
"""


def test_every_table_and_figure_of_the_five_papers_is_there() -> None:
    assert len(TABLES) == 70
    assert {table.paper for table in TABLES} == set(PAPERS)
    assert sum(claim.holds is not None for table in TABLES for claim in table.claims) == 125


def test_the_order_is_that_of_the_papers() -> None:
    names = available_tables()
    assert names[:3] == ("cclk-t1", "cclk-t2a", "cclk-t2b")
    assert names.index("cclk-t8") < names.index("cclk-fig2") < names.index("herocon-t1")
    assert names.index("cacr-t9") < names.index("cacr-t10")


def test_figures_are_exact_and_cited_rows_are_marked() -> None:
    table = load_table("fairkl-t3")
    cell = table.cell("eps-supinfonce+fairkl", "rho995")
    assert cell is not None
    assert (cell.mean, cell.std, cell.printed) == (97.0, 0.06, "97.00±0.06")
    assert Counter(row.source for row in table.rows) == {"run": 7, "cited": 4}
    assert table.cell("eps-supinfonce+fairkl", "rho9") is None


def test_every_printed_number_is_the_token_beside_it() -> None:
    for table in TABLES:
        for row in table.rows:
            for cell in row.cells:
                if cell.mean is not None and cell.printed is not None:
                    mean, _, std = cell.printed.replace(",", "").partition("±")
                    assert float(mean) == cell.mean, (table.id, row.key, cell.column)
                    assert (float(std) if std else None) == cell.std, (table.id, row.key, cell.column)


def test_claims_that_the_print_contradicts_are_findings() -> None:
    for table in TABLES:
        for claim in table.claims:
            if claim.holds is False:
                assert any(claim.text in finding for finding in table.findings), (table.id, claim.text)


def test_every_preset_that_a_row_names_ships() -> None:
    known = {f"{method}@{dataset}" for method, dataset in available_presets()}
    for table in TABLES:
        for row in table.run.rows.values():
            named = {row.preset} if isinstance(row.preset, str) else set((row.preset or {}).values())
            assert named <= known, table.id


def test_a_table_with_cmc_tells_that_its_temperature_is_not_the_papers() -> None:
    own = [
        t
        for t in TABLES
        if t.paper == "cacr" and any("cmc@cifar10" in str(r.preset) for r in t.run.rows.values())
    ]
    assert len(own) == 5
    for table in own:
        assert any("the temperature of CMC" in text for text in table.run.deviations), table.id


def test_a_table_that_nothing_runs_says_why() -> None:
    for table in TABLES:
        run = table.run
        assert bool(run.never) != bool(run.columns or run.information), table.id


@pytest.mark.parametrize(
    ("before", "after", "parts"),
    [
        ("caption: a", "captoin: a", ["captoin", "Did you mean 'caption'?"]),
        ("run: {never", "run: {nevr", ["run.nevr", "Did you mean 'never'?"]),
        ("column: acc", "column: mse", ["column 'mse' is not among acc"]),
        ("run: {never: because}", "run: {rows: {b: {method: infonce}}}", ["row 'b' is not among a"]),
        (
            "run: {never: because}",
            "run: {quick: {what: w, seeds: 3, rows: {b: {}}}}",
            ["row 'b' is not among none"],
        ),
        (
            "run: {never: because}",
            "run: {quick: {what: w, seeds: 3, columns: [b]}}",
            ["column 'b' is not among none"],
        ),
        ("run: {never: because}", "run: {rows: {a: {}}}", ["needs a method or a preset"]),
        ("source: run", "source: ours", ["source", "'run', 'cited'"]),
        ("caption: a table", "caption: a\ncaption: b", ["given twice"]),
    ],
)
def test_what_is_wrong_is_named(before: str, after: str, parts: list[str]) -> None:
    assert parse_table(SMALL, "small").id == "cclk-t0"
    with pytest.raises(SpaceError) as error:
        parse_table(SMALL.replace(before, after), "small")
    for part in ["small", *parts]:
        assert part in str(error.value)


def test_an_unknown_table_is_named_with_the_nearest() -> None:
    with pytest.raises(SpaceError, match=r"no table 'cclk-t33'\. Did you mean 'cclk-t3'\?"):
        load_table("cclk-t33")


def test_switches_stay_words() -> None:
    # Attraction is "on" or "off"; booleans would be refused.
    row = load_table("cacr-t8").run.rows["uaur"]
    assert dict(row.defines) == {"attraction": "off", "repulsion": "off"}
    assert parse_yaml("a: off", "here") == {"a": "off"}
