"""Checks: parsing, errors with their position, evaluation on printed cells and on curves."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from contrasweep.search_spaces.tables import Table, available_tables, load_table
from contrasweep.tuning.tables.checks import (
    STAR,
    Call,
    Cells,
    ClaimError,
    Constant,
    CurveCall,
    Node,
    columns_read,
    parse_check,
    walk,
)
from contrasweep.tuning.tables.collect import INFORMATION_CURVES
from contrasweep.tuning.tables.evaluate import Numbers, evaluate
from contrasweep.tuning.tables.functions import CURVE_FUNCTIONS, FUNCTIONS, Curve, NotMeasured


def printed_numbers(table: Table) -> Numbers:
    """Return the printed cells of a table; as fractions, their arithmetic is exact."""
    cells = [(row.key, cell) for row in table.rows for cell in row.cells]
    return Numbers(
        tuple(row.key for row in table.rows),
        tuple(column.key for column in table.columns),
        {(row, cell.column): _exact(cell.mean) for row, cell in cells if cell.mean is not None},
        {(row, cell.column): _exact(cell.std) for row, cell in cells if cell.std is not None},
    )


def _exact(value: float) -> NDArray[Any]:
    return np.array([Fraction(str(value))], dtype=object)


TABLES = {name: load_table(name) for name in available_tables()}
PRINTED = {name: printed_numbers(table) for name, table in TABLES.items()}
RECORDED = [
    (name, claim) for name, table in TABLES.items() for claim in table.claims if claim.holds is not None
]
SHIPPED = [(table, claim.check) for table in TABLES.values() for claim in table.claims if claim.check]


@pytest.mark.parametrize(("name", "claim"), RECORDED, ids=lambda value: getattr(value, "text", value))
def test_the_printed_cells_give_what_is_recorded(name: str, claim) -> None:  # type: ignore[no-untyped-def]
    outcome = evaluate(parse_check(claim.check), PRINTED, name, claim.columns)
    assert outcome.true.tolist() == [claim.holds]


def test_all_125_evaluable_checks_are_tried() -> None:
    assert len(RECORDED) == 125


def test_every_check_that_ships_names_rows_columns_and_curves_that_there_are() -> None:
    assert len(SHIPPED) == 168
    for own, check in SHIPPED:
        drawn = {row.series for row in own.run.rows.values()} - {None}
        for node in walk(parse_check(check)):
            if isinstance(node, Cells):
                table = own if node.table is None else TABLES[node.table]
                assert {*(node.rows or ()), *node.but} <= set(table.row_names), check
                printed = [column.key for column in table.columns]
                assert node.column in (STAR, *(printed or table.run.columns)), check
            if isinstance(node, CurveCall) and drawn:
                assert {name for side in node.curves for name in side} <= {*drawn, *INFORMATION_CURVES}, check


def of_printed_figures(tree: Node) -> bool:
    """Return whether a check is about exact printed figures: `approx`, or a cell equal to a number."""
    for node in walk(tree):
        if isinstance(node, Call) and node.name == "approx":
            return True
        if isinstance(node, Call) and node.name == "==":
            kinds = {type(getattr(part, "value", part)) for part in node.parts}
            if Cells in kinds and kinds & {int, float}:
                return True
    return False


def test_claims_about_exact_figures_are_marked() -> None:
    for name, claim in RECORDED:
        if of_printed_figures(parse_check(claim.check or "")):
            assert not claim.retest, (name, claim.text)


def cell(key: str, column: str, **more: bool) -> Cells:
    return Cells((key,), column, group=False, **more)  # type: ignore[arg-type]


def test_a_check_becomes_a_tree() -> None:
    ours = Cells(("herocon-u", "eps+fairkl"), "f1", group=True)
    doubled = Call("*", (Constant(2), Call("max", (ours,))))
    assert parse_check('2 * max(rows["herocon-u", "eps+fairkl"].f1) - 1 < row["a"].f1.std') == Call(
        "<", (Call("-", (doubled, Constant(1))), cell("a", "f1", std=True))
    )
    others = Cells(None, STAR, group=True, but=("ce",))
    below = [Call("<", (cell(key, "x"), Constant(1))) for key in ("a", "b")]
    assert parse_check('argmax(rows_except["ce"][:]) == "a" or row["a"].x < 1 and row["b"]["x"] < 1') == Call(
        "or", (Call("==", (Call("argmax", (others,)), Constant("a"))), Call("and", tuple(below)))
    )
    assert parse_check('above("I(Z;T) pcl", ["H(Z|T)", "-x"])') == CurveCall(
        "above", (("I(Z;T) pcl",), ("H(Z|T)", "-x"))
    )
    assert parse_check('argmax_xy("map") == (-0.5, 10)') == Call(
        "==", (CurveCall("argmax_xy", (("map",),)), Constant((-0.5, 10.0)))
    )
    assert parse_check('0 <= at("a", 256) <= max_at("two")') == Call(
        "and",
        (
            Call("<=", (Constant(0), CurveCall("at", (("a",),), 256.0))),
            Call("<=", (CurveCall("at", (("a",),), 256.0), CurveCall("max_at", (), "two"))),
        ),
    )


def test_a_column_may_be_called_like_the_deviation_or_a_word_of_python() -> None:
    assert parse_check('row["a"].std > row["a"]["lambda"].std') == Call(
        ">", (cell("a", "std"), cell("a", "lambda", std=True))
    )


def test_a_check_may_read_other_columns_of_its_own_table() -> None:
    tree = parse_check('row["a"].x > table["t"].row["a"].x and row["a"][:] > 1', {"x": "y"})
    assert columns_read(tree, ("z",)) == ["y", "z"]
    assert [node.column for node in walk(tree) if isinstance(node, Cells)] == ["y", "x", STAR]


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ('row["a"].x <', "a check is a Python expression such as"),
        ('row["a"].x < 1 2', "a Python expression such as"),
        ('max(row["a"].x', "check 'max(row[\"a\"].x': at 3, "),
        ("1 < 2; 3", "at 5, "),
        ("\0", "null bytes"),
        ("1 + " * 10_000 + "1 > 0", "nested too deeply"),
        ("(" * 1_000, "nested"),
        ("row[a].x < 1", "at 4, the key of a row in quotes was expected, given a"),
        ('row["a", "b"].x < 1', "at 4, the key of a row in quotes was expected"),
        ("row[:].x < 1", "the key of a row in quotes was expected, given :"),
        ("rows_except[:].x < 1", "the key of a row in quotes was expected"),
        ('row["a"] < 1', 'at 0, a cell such as row["key"].column was expected, given row["a"]'),
        ('row["a"].x.mean < 1', 'a cell such as row["key"].column'),
        ('row["a"].x', 'at 0, a comparison was expected, given row["a"].x'),
        ("1", "a comparison was expected"),
        ('row["a"].x < 1 and row["ϵ"].y', 'at 19, a comparison was expected, given row["ϵ"].y'),
        ('rows["a", "b"].x > 1', "at 0, a number or a key or a point was expected"),
        ('1 < rows["a", "b"].x', "at 4, a number was expected"),
        ('row["a"].x < (1, row["a"].x)', "at 17, a number was expected"),
        ('row["a"].x < (1, 2)', "at 13, a number was expected, given (1, 2)"),
        ('row["a"].x == "a"', "a number was expected"),
        ("argmax(rows[:].x) == 1", "a key was expected"),
        ('argmax(rows[:].x) < "a"', "a single == of a key was expected"),
        ('argmax(row["a"].x) == "a"', "at 7, a group of cells"),
        ('row["a"].x != 1', "one of < <= > >= == before this was expected, given 1"),
        ('not row["a"].x < 1', "at 0, a cell, a number"),
        ('row["a"].x ** 2 < 1', "one of + - * /"),
        ("True < 1", "a number was expected, given True"),
        ("1j < 1", "a number was expected, given 1j"),
        ("1e999 < 1", "a number was expected, given 1e999"),
        ('approx(row["a"].x, 1)', "approx(number, number, number) was expected"),
        ('at("up") > 1', "at(curve, place) was expected"),
        ('at("up", 1, 2) > 1', "at(curve, place) was expected"),
        ('max_at("x", ["a"], ["b"]) > 1', "max_at(place, curves?) was expected"),
        ("max() > 1", "max(values, ...) was expected"),
        ("flat(a)", "at 5, the name of a curve in quotes was expected, given a"),
        ('flat(["a", "b"])', "the name of a curve in quotes was expected"),
        ('max(row["a"].x, default=1) > 1', "a function"),
        ('rwo["a"].x > 1', "at 0: unknown name 'rwo'. Did you mean 'row'?"),
        ('argmx(rows[:].x) == "a"', "at 0: unknown function of a check 'argmx'. Did you mean 'argmax'?"),
        ('__import__("os").system("true")', "a cell, a number"),
        ("().__class__.x > 1", 'a cell such as row["key"].column'),
        ('table["t"]["row"].x > 1', 'a cell such as row["key"].column'),
    ],
)
def test_errors_name_the_position_and_what_is_allowed(check: str, message: str) -> None:
    with pytest.raises(ClaimError) as error:
        parse_check(check)
    assert message in str(error.value)


def two_rows(**cells: list[float]) -> dict[str, Numbers]:
    means = {(key[0], key[1:]): np.array(values) for key, values in cells.items()}
    return {"t": Numbers(("a", "b", "c"), ("x", "y"), means)}


def true(check: str, tables: dict[str, Numbers]) -> list[bool]:
    return [bool(one) for one in evaluate(parse_check(check), tables, "t").true]


def test_resamples_are_evaluated_together() -> None:
    tables = two_rows(ax=[1.0, 3.0], bx=[2.0, 2.0], cx=[0.0, 0.0])
    assert true('row["a"].x > row["b"].x', tables) == [False, True]
    assert true('argmax(rows[:].x) == "a"', tables) == [False, True]
    assert true('order_desc(row["b"].x, row["a"].x, row["c"].x)', tables) == [True, False]
    assert true('0.5 < row["a"].x - row["c"].x <= 1', tables) == [True, False]


def test_the_star_stands_for_every_measured_column_and_the_others_are_named() -> None:
    tables = two_rows(ax=[1.0], bx=[2.0])
    outcome = evaluate(parse_check('row["a"][:] < row["b"][:]'), tables, "t")
    assert outcome.true.tolist() == [True]
    assert outcome.left_out == ("column y",)
    assert true('row["a"][:] < row["b"][:]', two_rows(ax=[1.0], bx=[2.0], ay=[3.0], by=[2.0])) == [False]


def test_a_group_needs_two_rows_and_names_the_missing_ones() -> None:
    outcome = evaluate(parse_check("max(rows[:].x) > 1"), two_rows(ax=[1.0], bx=[2.0]), "t")
    assert outcome.left_out == ("c in x",)
    with pytest.raises(NotMeasured, match="b, c in x"):
        evaluate(parse_check("max(rows[:].x) > 1"), two_rows(ax=[1.0]), "t")
    with pytest.raises(NotMeasured, match="c in x"):
        evaluate(parse_check('row["c"].x > 1'), two_rows(ax=[1.0], bx=[1.0]), "t")
    with pytest.raises(NotMeasured, match="table u"):
        evaluate(parse_check('table["u"].row["c"].x > 1'), two_rows(ax=[1.0]), "t")


def test_cells_are_equal_within_the_smallest_difference_that_counts() -> None:
    tables = two_rows(ax=[1.004], bx=[1.0], cx=[1.006])
    tables = {"t": Numbers(("a", "b", "c"), ("x",), tables["t"].means, margins={"x": 0.005})}
    assert true('row["a"].x == row["b"].x', tables) == [True]
    assert true('row["c"].x == row["b"].x', tables) == [False]


def test_the_cells_that_a_check_reads_are_known() -> None:
    tables = two_rows(ax=[1.0], bx=[2.0], cx=[2.0], ay=[3.0], by=[2.0])
    outcome = evaluate(parse_check('row["a"][:] < max(rows["b", "c"].x)'), tables, "t")
    assert set(outcome.read) == {("t", (row, column)) for row, column in ("ax", "ay", "bx", "cx")}


RISING, FALLING, HILL = [1.0, 2.0, 2.0, 4.0], [4.0, 2.0, 2.0, 1.0], [1.0, 4.0, 3.0, 1.0]
CURVES = {
    "up": Curve("up", (1.0, 2.0, 3.0, 4.0), np.array([RISING])),
    "down": Curve("down", (1.0, 2.0, 3.0, 4.0), np.array([FALLING])),
    "I(Z;T)": Curve("I(Z;T)", (1.0, 2.0, 3.0, 4.0), np.array([HILL])),
    "rise": Curve("rise", (4.0, 9.0), np.array([[0.0, 1.0]])),
    "fall": Curve("fall", (4.0, 9.0), np.array([[1.0, 0.0]])),
    "even": Curve("even", (1.0, 2.0, 3.0, 4.0), np.array([[1.0, 1.04, 1.0, 1.0]])),
    "square": Curve("square", (1.0, 2.0, 3.0, 4.0), np.array([[1.0, 4.0, 9.0, 16.0]])),
    "high": Curve("high", ("one", "two"), np.array([[9.0, 8.0]])),
    "low": Curve("low", ("one", "two"), np.array([[5.0, 7.9]])),
    "map": Curve("map", (0.1, 0.1, 1.0), np.array([[1.0, 3.0, 2.0]]), (1.0, 10.0, 1.0)),
}


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ('increasing("up")', True),
        ('increasing("I(Z;T)")', False),
        ('increasing("even")', False),
        ('decreasing("down")', True),
        ('decreasing("up")', False),
        ('rises_then_falls("I(Z;T)")', True),
        ('rises_then_falls("up")', False),
        ('flat("even")', True),
        ('flat("up")', False),
        ('linear_in_x("I(Z;T)")', False),
        ('linear_in_x("down")', False),
        ('quadratic_in_x("square")', True),
        ('quadratic_in_x("up")', False),
        ('argmax_x("I(Z;T)") == 2', True),
        ('argmax_xy("map") == (0.1, 10)', True),
        ('argmax_xy("map") == (1, 1)', False),
        ('crossing_x("up", "down") == 2', True),
        ('crossing_x("up", "down") == 2.5', False),
        (
            'crossing_x("rise", "fall") == 6',
            True,
        ),  # halfway over log x
        ('above("high", "low")', True),
        ('above("low", "high")', False),
        ('above("up", "down")', False),
        ('at("high", "one") - at("low", "one") > at("high", "two") - at("low", "two")', True),
        ('at("up", "smallest") < at("up", "largest")', True),
        ('at("up", 4) == 4', True),
        ('max_at("two") == 8', True),
        ('max_at("one", ["low"]) == 5', True),
        ('similar(at("high", "two"), at("low", "two"))', True),
        ('similar(at("high", "one"), at("low", "one"))', False),
        ("similar(10, 9)", True),
        ("similar(9, 10)", True),
        ("similar(10, 8.9)", False),
        ('highest("up") == 4 and lowest("up") == 1 and mean("up") == 2.25', True),
        ('std("even") < std("up")', True),
    ],
)
def test_functions_of_curves(check: str, expected: bool) -> None:
    numbers = {"t": Numbers((), (), {}, curves=CURVES)}
    if "max_at" in check:
        own = {name: CURVES[name] for name in ("high", "low")}
        numbers = {"t": Numbers((), (), {}, curves=own)}
    assert true(check, numbers) == [expected]


def test_a_curve_or_place_that_was_not_measured_is_named() -> None:
    numbers = {"t": Numbers((), (), {}, curves={"up": CURVES["up"]})}
    for check, named in (('flat("sideways")', "curve sideways"), ('at("up", 9) > 1', "place 9")):
        with pytest.raises(NotMeasured, match=named):
            evaluate(parse_check(check), numbers, "t")


def test_every_function_is_defined_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")
    for name in (*FUNCTIONS, *CURVE_FUNCTIONS):
        assert f"`{name}(" in text, name
