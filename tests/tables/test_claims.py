"""The language of the checks: parsed, and evaluated on printed cells and on curves."""

from pathlib import Path

import numpy as np
import pytest

from contrasweep.search_spaces.tables import available_tables, load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.tables.checks import (
    CURVE_FUNCTIONS,
    FUNCTIONS,
    Arithmetic,
    Call,
    Cells,
    ClaimError,
    Comparison,
    CurveCall,
    Logic,
    Node,
    Number,
    Text,
    parse_check,
    walk,
)
from contrasweep.tuning.tables.curves import Curve, NoCurve
from contrasweep.tuning.tables.evaluate import MissingCells, Numbers, evaluate, needed_cells, printed_numbers

TABLES = {name: load_table(name) for name in available_tables()}
PRINTED = {name: printed_numbers(table) for name, table in TABLES.items()}
RECORDED = [
    (name, claim) for name, table in TABLES.items() for claim in table.claims if claim.holds is not None
]


@pytest.mark.parametrize(("name", "claim"), RECORDED, ids=lambda value: getattr(value, "text", value))
def test_the_printed_cells_give_what_is_recorded(name: str, claim) -> None:  # type: ignore[no-untyped-def]
    outcome = evaluate(parse_check(claim.check), PRINTED, name, claim.columns)
    assert outcome.true.tolist() == [claim.holds]


def test_all_118_evaluable_checks_are_tried() -> None:
    assert len(RECORDED) == 118


def test_every_check_that_ships_can_be_read() -> None:
    checks = [claim.check for table in TABLES.values() for claim in table.claims if claim.check]
    assert len(checks) > 150
    for check in checks:
        parse_check(check)


def of_printed_figures(tree: Node) -> bool:
    """Return whether a check is about exact printed figures: `approx`, or a cell equal to a number."""
    for node in walk(tree):
        if isinstance(node, Call) and node.name == "approx":
            return True
        if isinstance(node, Comparison) and any(sign == "==" for sign, _ in node.rest):
            sides = (node.first, *(right for _, right in node.rest))
            if any(isinstance(s, Cells) for s in sides) and any(isinstance(s, Number) for s in sides):
                return True
    return False


def test_claims_about_exact_figures_are_marked() -> None:
    for name, claim in RECORDED:
        if of_printed_figures(parse_check(claim.check or "")):
            assert not claim.retest, (name, claim.text)


def test_a_check_becomes_a_tree() -> None:
    ours = Cells(("herocon-u", "eps+fairkl"), "f1", group=True)
    assert parse_check("2 * max(rows[herocon-u, eps+fairkl].f1) - 1 < row[a].f1.std") == Comparison(
        Arithmetic("-", Arithmetic("*", Number("2"), Call("max", (ours,))), Number("1")),
        (("<", Cells(("a",), "f1", group=False, std=True)),),
    )
    assert parse_check('argmax(rows[* except ce].*) == "a" or row[a].x < 1 and row[b].x < 1') == Logic(
        "or",
        (
            Comparison(Call("argmax", (Cells(None, "*", True, but=("ce",)),)), (("==", Text("a")),)),
            Logic(
                "and",
                tuple(
                    Comparison(Cells((key,), "x", group=False), (("<", Number("1")),)) for key in ("a", "b")
                ),
            ),
        ),
    )
    assert parse_check("above(I(Z;T) pcl, [H(Z|T), -x])") == CurveCall(
        "above", (("I(Z;T) pcl",), ("H(Z|T)", "-x"))
    )


@pytest.mark.parametrize(
    ("check", "message"),
    [
        ("row[a].x <", "expected, found the end"),
        ("row[a].x < 1 2", "an operator or the end"),
        ("max(row[a].x", "')' was expected"),
        ("row[a] < 1", "row"),
        ("flat(a", "is not closed"),
        ("row[a].x < (1, row[a].x)", "a point of two numbers"),
        ("1 < 2; 3", "';'"),
    ],
)
def test_what_cannot_be_read_says_where(check: str, message: str) -> None:
    with pytest.raises((ClaimError, InputError)) as error:
        parse_check(check)
    assert message in str(error.value)


def test_an_unknown_function_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match="Did you mean 'argmax'"):
        parse_check('argmx(rows[*].x) == "a"')


def test_nothing_is_executed() -> None:
    with pytest.raises((ClaimError, InputError)):
        parse_check('__import__("os").system("true")')


def two_rows(**cells: list[float]) -> dict[str, Numbers]:
    means = {(key[0], key[1:]): np.array(values) for key, values in cells.items()}
    return {"t": Numbers(("a", "b", "c"), ("x", "y"), means)}


def true(check: str, tables: dict[str, Numbers]) -> list[bool]:
    return [bool(one) for one in evaluate(parse_check(check), tables, "t").true]


def test_resamples_are_evaluated_together() -> None:
    tables = two_rows(ax=[1.0, 3.0], bx=[2.0, 2.0], cx=[0.0, 0.0])
    assert true("row[a].x > row[b].x", tables) == [False, True]
    assert true('argmax(rows[*].x) == "a"', tables) == [False, True]
    assert true("order_desc(row[b].x, row[a].x, row[c].x)", tables) == [True, False]
    assert true("0.5 < row[a].x - row[c].x <= 1", tables) == [True, False]


def test_the_star_is_every_measured_column_and_says_which_it_left_out() -> None:
    tables = two_rows(ax=[1.0], bx=[2.0])
    outcome = evaluate(parse_check("row[a].* < row[b].*"), tables, "t")
    assert outcome.true.tolist() == [True]
    assert outcome.left_out == ("column y",)
    assert true("row[a].* < row[b].*", two_rows(ax=[1.0], bx=[2.0], ay=[3.0], by=[2.0])) == [False]


def test_a_group_goes_on_with_two_rows_and_says_which_it_left_out() -> None:
    outcome = evaluate(parse_check("max(rows[*].x) > 1"), two_rows(ax=[1.0], bx=[2.0]), "t")
    assert outcome.left_out == ("c in x",)
    with pytest.raises(MissingCells, match="b, c in x"):
        evaluate(parse_check("max(rows[*].x) > 1"), two_rows(ax=[1.0]), "t")
    with pytest.raises(MissingCells, match="c in x"):
        evaluate(parse_check("row[c].x > 1"), two_rows(ax=[1.0], bx=[1.0]), "t")
    with pytest.raises(MissingCells, match="table u"):
        evaluate(parse_check("table[u].row[c].x > 1"), two_rows(ax=[1.0]), "t")


def test_cells_are_equal_within_the_last_printed_digit() -> None:
    tables = two_rows(ax=[1.004], bx=[1.0], cx=[1.006])
    tables = {"t": Numbers(("a", "b", "c"), ("x",), tables["t"].means, tolerance=0.005)}
    assert true("row[a].x == row[b].x", tables) == [True]
    assert true("row[c].x == row[b].x", tables) == [False]


def test_the_cells_that_a_check_reads_are_known() -> None:
    tables = two_rows(ax=[1.0], bx=[2.0], ay=[3.0], by=[2.0])
    assert needed_cells(parse_check("row[a].* < max(rows[* except a].x)"), tables, "t") == [
        ("t", ("a", "x")),
        ("t", ("a", "y")),
        ("t", ("b", "x")),
    ]


RISING, FALLING, HILL = [1.0, 2.0, 2.0, 4.0], [4.0, 2.0, 2.0, 1.0], [1.0, 4.0, 3.0, 1.0]
CURVES = {
    "up": Curve((1.0, 2.0, 3.0, 4.0), np.array([RISING])),
    "down": Curve((1.0, 2.0, 3.0, 4.0), np.array([FALLING])),
    "I(Z;T)": Curve((1.0, 2.0, 3.0, 4.0), np.array([HILL])),
    "even": Curve((1.0, 2.0, 3.0, 4.0), np.array([[1.0, 1.04, 1.0, 1.0]])),
    "square": Curve((1.0, 2.0, 3.0, 4.0), np.array([[1.0, 4.0, 9.0, 16.0]])),
    "high": Curve(("one", "two"), np.array([[9.0, 8.0]])),
    "low": Curve(("one", "two"), np.array([[5.0, 7.9]])),
    "map": Curve((0.1, 0.1, 1.0), np.array([[1.0, 3.0, 2.0]]), (1.0, 10.0, 1.0)),
}


@pytest.mark.parametrize(
    ("check", "expected"),
    [
        ("increasing(up)", True),
        ("increasing(I(Z;T))", False),
        ("increasing(even)", False),
        ("decreasing(down)", True),
        ("decreasing(up)", False),
        ("rises_then_falls(I(Z;T))", True),
        ("rises_then_falls(up)", False),
        ("flat(even)", True),
        ("flat(up)", False),
        ("linear_in_x(I(Z;T))", False),
        ("linear_in_x(down)", False),
        ("quadratic_in_x(square)", True),
        ("quadratic_in_x(up)", False),
        ("argmax_x(I(Z;T)) == 2", True),
        ("argmax_xy(map) == (0.1, 10)", True),
        ("argmax_xy(map) == (1, 1)", False),
        ("crossing_x(up, down) == 2", True),
        ("crossing_x(up, down) == 2.5", False),
        ("above(high, low)", True),
        ("above(low, high)", False),
        ("above(up, [down])", False),
        ("at(high, one) - at(low, one) > at(high, two) - at(low, two)", True),
        ("at(up, smallest) < at(up, largest)", True),
        ("at(up, 4) == 4", True),
        ("max_at(two) == 8", True),
        ("max_at(one, [low]) == 5", True),
        ("at(high, two) ~ at(low, two)", True),
        ("at(high, one) ~ at(low, one)", False),
        ("highest(up) == 4 and lowest(up) == 1 and mean(up) == 2.25", True),
        ("std(even) < std(up)", True),
    ],
)
def test_what_is_asked_of_curves(check: str, expected: bool) -> None:
    numbers = {"t": Numbers((), (), {}, curves=CURVES, tolerance=1e-9)}
    if "max_at" in check:
        own = {name: CURVES[name] for name in ("high", "low")}
        numbers = {"t": Numbers((), (), {}, curves=own, tolerance=1e-9)}
    assert true(check, numbers) == [expected]


def test_a_curve_or_place_that_was_not_measured_is_named() -> None:
    numbers = {"t": Numbers((), (), {}, curves={"up": CURVES["up"]})}
    for check, named in (("flat(sideways)", "curve sideways"), ("at(up, 9) > 1", "place 9")):
        with pytest.raises(NoCurve, match=named):
            evaluate(parse_check(check), numbers, "t")


def test_every_function_is_defined_in_the_docs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "claims.md").read_text(encoding="utf-8")
    for name in (*FUNCTIONS, *CURVE_FUNCTIONS):
        assert f"`{name}(" in text, name
