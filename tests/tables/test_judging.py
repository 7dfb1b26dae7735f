"""Verdicts on cases where it is easy to err: facts beside runs, places of tops, ties, deviations, gaps."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from contrasweep.search_spaces.tables import Claim, load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.tables.checks import parse_check
from contrasweep.tuning.tables.evaluate import Numbers, evaluate
from contrasweep.tuning.tables.evidence import ERROR, against_and_for, leave_one_out
from contrasweep.tuning.tables.functions import Curve
from contrasweep.tuning.tables.plan import SCALES
from contrasweep.tuning.tables.results import RunValue, TableResults
from contrasweep.tuning.tables.runs import Place, Runs, by_cell, runs_of, smallest_difference
from contrasweep.tuning.tables.verdict import Verdict, judge, judge_all

HIGH, LOW = [90, 91, 92, 94, 95], [80, 82, 81, 83, 84]
Cells = Mapping[tuple[str, str], list[float] | float]


def runs(cells: Cells, curves: Mapping[str, tuple[Place, ...]] | None = None) -> Runs:
    """Return a table; a number alone is a fact of the data, which has no seed."""
    values = []
    for (row, column), own in cells.items():
        seeds = enumerate(own, start=1) if isinstance(own, list) else [(None, own)]
        values += [RunValue(row, column, seed, float(value)) for seed, value in seeds]
    rows, columns = (tuple(dict.fromkeys(key[place] for key in cells)) for place in (0, 1))
    margins = dict.fromkeys(columns, 0.5)
    return Runs("own", rows, columns, by_cell(tuple(values)), margins, curves or {})


def verdict(check: str, cells: Cells, **others: Runs) -> Verdict:
    return judge(Claim(text=check, check=check, holds=None), runs(cells), others)


TABLE: Cells = {
    ("a", "acc"): HIGH,
    ("b", "acc"): LOW,
    ("still", "acc"): [7] * 5,
    ("none", "acc"): [0] * 5,
    ("naught", "acc"): [0] * 5,
    ("fact", "acc"): 50,
    ("twin", "acc"): 50,
    ("bound", "acc"): 60,
    ("a", "loss"): HIGH,
}


@pytest.mark.parametrize(
    ("check", "status"),
    [
        # A comparison that needs no runs decides without them, on its own and beside others.
        ('max(row["a"].acc, 3) > 5', "holds"),
        ('row["a"].acc > 3 or 3 > 5', "holds"),
        ('row["a"].acc < row["a"].acc - row["a"].acc', "contradicted"),
        ('row["a"].acc > row["b"].acc and row["fact"].acc < row["bound"].acc', "holds"),
        ('row["a"].acc > row["b"].acc and row["fact"].acc > row["bound"].acc', "contradicted"),
        ('order_desc(rows["a", "b", "fact"].acc)', "holds"),
        # A row that is read may be absent from a column that is not.
        ('row["still"].acc == 7', "holds"),
        ('row["b"].acc > 50', "holds"),
        # No spread is no doubt, but 0 is not above 0.
        ('row["still"].acc.std > 0', "undecided"),
        ('row["still"].acc.std < 1', "holds"),
        ('row["none"].acc > row["naught"].acc', "equal"),
        ('similar(row["none"].acc, row["none"].acc)', "holds"),
        ('similar(-1 * row["a"].acc, -1 * row["a"].acc + 1)', "holds"),
        # The first of equal rows is the best.
        ('argmax(rows["fact", "twin"].acc) == "fact"', "holds"),
        ('argmax(rows["fact", "twin"].acc) == "twin"', "contradicted"),
        # A negative factor makes the smallest of the largest.
        ('max(rows["a", "b"].acc) * -1 > -85', "contradicted"),
        ('-1 * max(rows["a", "b"].acc) > -85', "contradicted"),
        ('min(rows["a", "b"].acc) / -1 < -85', "contradicted"),
        # What has no value is neither supported nor contradicted.
        ('row["a"].acc / row["none"].acc > 1', "undecided"),
        ('row["none"].acc / row["none"].acc > 1', "undecided"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_edges(check: str, status: str) -> None:
    assert verdict(check, TABLE).status == status


def test_a_quotient_by_a_number_that_is_0_is_refused() -> None:
    with pytest.raises(InputError, match="divides by 0"):
        verdict('row["a"].acc > 1 / 0', TABLE)


def test_a_check_that_is_true_of_all_runs_is_refused_and_never_holds() -> None:
    for check in ('argmax(rows["a"].acc) == "a"', 'row["a"].acc >= row["a"].acc', "1 < 2"):
        with pytest.raises(InputError, match="true whatever the runs are"):
            verdict(check, TABLE)


def test_a_row_is_not_compared_with_itself_in_a_group() -> None:
    one = verdict('max(rows["a", "b"].acc) > row["a"].acc', TABLE)
    assert [found.text for found in one.comparisons] == ["b.acc > a.acc"]
    assert one.status == "contradicted"
    for check in ('row["a"].acc > max(rows["a", "b"].acc)', 'row["a"].acc > 1 and 2 < 1', "2 < 1"):
        with pytest.raises(InputError, match="false whatever the runs are"):
            verdict(check, TABLE)


def test_what_is_equal_beside_one_of_two_that_is_supported_is_equal() -> None:
    cells = TABLE | {("c", "acc"): [80, 82, 81, 83, 84.1]}
    either = '(row["a"].acc > row["b"].acc or row["b"].acc > row["a"].acc)'
    assert verdict(f'{either} and row["b"].acc > row["c"].acc', cells).status == "equal"


def test_a_negative_number_is_told_as_it_is_written() -> None:
    (one,) = verdict('row["a"].acc - row["b"].acc > -1', TABLE).comparisons
    assert one.text == "a.acc - b.acc > -1"


def test_a_difference_keeps_its_brackets() -> None:
    (one,) = verdict('row["a"].acc - (row["b"].acc - row["fact"].acc) > 0', TABLE).comparisons
    assert one.text == "a.acc - (b.acc - fact.acc) > 0"


def test_a_deviation_is_that_of_the_sample_with_the_interval_of_the_jackknife() -> None:
    (one,) = verdict('row["a"].acc.std > 1', TABLE).comparisons
    own = np.array(HIGH, dtype=float)
    pseudo = [5 * own.std(ddof=1) - 4 * np.delete(own, seed).std(ddof=1) for seed in range(5)]
    assert one.margin == pytest.approx(np.mean(pseudo) - 1)
    assert one.high - one.low == pytest.approx(2 * 2.131847 * np.std(pseudo, ddof=1) / 5**0.5)


def test_numbers_of_columns_with_different_margins_are_never_equal() -> None:
    """Half a point of accuracy says nothing about half a point of something else."""
    cells = {("a", "acc"): [80, 80.1, 79.9, 80, 80.1], ("a", "f1"): [80, 79.9, 80.1, 80, 80]}
    for margin, status in ((0.5, "equal"), (0.4, "undecided")):
        table = replace(runs(cells), margins={"acc": 0.5, "f1": margin})
        found = judge(Claim(text="t", check='row["a"].acc > row["a"].f1', holds=None), table)
        assert found.status == status
    # `==` has a bound of its own, the larger margin.
    (one, _) = judge(Claim(text="t", check='row["a"].acc == row["a"].f1', holds=None), table).comparisons
    assert one.text == "0.5 >= a.acc - a.f1"


def test_what_counts_in_a_column_is_declared_or_follows_from_what_is_printed() -> None:
    table = load_table("cclk-t3")
    columns = dict(table.run.columns)
    assert smallest_difference(table, "mse") == 2.0
    columns["mse"] = columns["mse"].model_copy(update={"margin": None})
    plain = table.model_copy(update={"run": table.run.model_copy(update={"columns": columns})})
    # 48.8 is printed of the one, per cent of the other.
    assert (smallest_difference(plain, "mse"), smallest_difference(plain, "acc")) == (0.05, 0.5)


def test_only_a_quick_form_is_small() -> None:
    table = load_table("cclk-t7")
    forms = [TableResults(table, scale, False, 5) for scale in SCALES]
    assert [runs_of(form).small for form in forms] == [False, True, False]


def test_deviations_have_no_margin_and_are_never_equal() -> None:
    cells = {("a", "acc"): [80, 80.1, 79.9, 80, 80.1], ("b", "acc"): [80, 79.9, 80.1, 80, 80]}
    assert verdict('100 - row["a"].acc > 100 - row["b"].acc', cells).status == "equal"
    assert verdict('row["a"].acc.std > row["b"].acc.std', cells).status == "undecided"


def test_a_claim_is_not_read_in_a_column_that_repeats_one_of_two() -> None:
    check = 'row["fair-cclk"].acc > row["infonce"].acc and row["fair-cclk"].mse < row["infonce"].mse'
    both = Claim(text="both", check=check, holds=None)
    table = load_table("cclk-t3").model_copy(update={"claims": (both,)})
    values = tuple(
        RunValue(row, column, seed, float(height))
        for row, own in {"fair-cclk": HIGH, "infonce": LOW}.items()
        for column in ("acc", "mse", "acc_moving")
        for seed, height in enumerate(own)
    )
    (own,) = judge_all(TableResults(table, "paper", False, 5, values))
    assert own.read_in == ()


def test_a_curve_below_zero_may_be_flat_and_its_ends_need_all_places() -> None:
    places = {
        name: tuple(Place((f"k{x}", name), float(x)) for x in (1, 2, 3))
        for name in ("whole", "gap", "level", "late", "early")
    }
    cells: Cells = {(f"k{x}", "whole"): [-100 - x, -101 - x, -99 - x, -100, -100] for x in (1, 2, 3)}
    cells = {**cells, ("k1", "gap"): LOW, ("k2", "gap"): HIGH}
    cells = {**cells, ("k1", "late"): LOW, ("k2", "late"): LOW, ("k3", "late"): HIGH}
    cells = {**cells, ("k1", "early"): LOW, ("k2", "early"): HIGH, ("k3", "early"): HIGH}
    cells = {**cells, **{(f"k{x}", "level"): 5.0 for x in (1, 2, 3)}}

    def status(check: str) -> str:
        return judge(Claim(text=check, check=check, holds=None), runs(cells, places)).status

    assert status('flat("whole")') == "holds"
    assert status('at("gap", 2) > at("gap", 1)') == "holds"
    assert status('increasing("level")') == "contradicted", "it must end above its start"
    assert status('increasing("late")') == "holds", "it may stay level for a while"
    assert status('rises_then_falls("early")') == "equal", "it must end below its top"
    assert status('at("gap", "largest") > at("gap", "smallest")') == "not run"


def test_every_column_of_another_table_is_read() -> None:
    other = runs({("a", "acc"): HIGH, ("a", "loss"): HIGH})
    found = verdict('table["other"].row["a"][:] > 5', {("b", "acc"): LOW, ("b", "loss"): LOW}, other=other)
    assert (found.status, len(found.comparisons)) == ("holds", 2)


def test_chance_is_not_told_where_no_shuffle_changes_what_is_read() -> None:
    assert verdict('row["a"].acc > row["fact"].acc', TABLE).chance is None
    assert verdict('row["a"].loss > row["b"].acc', TABLE).chance is None
    other = runs({("a", "acc"): LOW})
    assert verdict('row["a"].acc > table["other"].row["a"].acc', TABLE, other=other).chance is None
    assert verdict('row["a"].acc > row["b"].acc', TABLE).chance is not None


def test_keys_with_dots_do_not_make_two_cells_one() -> None:
    cells: Cells = {("x.y", "z"): HIGH, ("x", "y.z"): LOW}
    assert verdict('row["x.y"].z - row["x"]["y.z"] > 3', cells).status == "holds"
    assert verdict('row["x"]["y.z"] >= row["x.y"].z', cells).status == "contradicted"


def test_the_deviation_of_large_numbers_is_not_lost_in_their_squares() -> None:
    small = [0.01, 0.02, 0.015, 0.012, 0.011]
    cells: Cells = {("far", "acc"): [1e7 + value for value in small], ("near", "acc"): small}
    found = verdict('row["far"].acc.std > row["near"].acc.std', cells)
    assert abs(found.comparisons[0].margin) < 1e-4
    same: Cells = {("far", "acc"): [1e7 + 0.1] * 5}
    assert verdict('row["far"].acc.std > 0', same).status == "undecided"


@pytest.mark.parametrize(
    ("check", "status"),
    [
        ('row["more"].acc - row["few"].acc <= 0.7', "holds"),
        ('row["more"].acc - row["few"].acc > 0.7', "undecided"),
        ('(row["few"].acc + row["few"].acc + row["few"].acc) / 3 > row["few"].acc', "undecided"),
        ('row["more"].acc > row["few"].acc', "holds"),
    ],
)
def test_rounding_decides_nothing(check: str, status: str) -> None:
    few = [88.1, 88.9, 88.4, 87.3, 88.6, 87.7]
    cells: Cells = {("few", "acc"): few, ("more", "acc"): [one + 0.7 for one in few]}
    assert verdict(check, cells).status == status


def test_curves_of_facts_that_do_not_cross_decide_nothing() -> None:
    names = ("up", "down")
    curves = {name: tuple(Place((f"k{x}", name), float(x)) for x in (1, 2, 3)) for name in names}
    table = runs({(f"k{x}", name): float(x) for x in (1, 2, 3) for name in names}, curves)
    for sign in (">", "<="):
        check = f'crossing_x("up", "down") {sign} 2'
        found = judge(Claim(text=check, check=check, holds=None), table)
        assert (found.status, found.note) == ("undecided", "a number of the check has no value")


def top_rates(heights: list[float], check: str, seeds: int = 5) -> tuple[float, float]:
    """Return how often a check on the curve `c` with these true heights is supported, and contradicted."""
    simulations = 4_000
    generator, weights = np.random.default_rng(7), leave_one_out(seeds)
    drawn = generator.standard_normal((len(heights), simulations, seeds)) + np.array(heights)[:, None, None]
    curve = Curve(
        "c", tuple(map(float, range(len(heights)))), np.stack([(d @ weights.T).ravel() for d in drawn], 1)
    )
    outcome = evaluate(parse_check(check), {"own": Numbers((), (), {}, curves={"c": curve})}, "own")
    false, true = against_and_for(outcome.statement, seeds)
    return float((false <= ERROR).mean()), float((true <= ERROR).mean())


@pytest.mark.parametrize("check", ['argmax_x("c") == 1', 'argmax_x("c") < 2', 'similar(argmax_x("c"), 1)'])
def test_the_place_of_a_top_is_found_and_missed_in_one_case_of_twenty_at_most(check: str) -> None:
    # Three standard errors of the rate of that many simulations.
    limit = ERROR + 3 * (ERROR * (1 - ERROR) / 4_000) ** 0.5
    assert max(top_rates([0, 0, 0], check)) <= limit, "no place is the top"
    assert top_rates([0, 0.3, 0], check)[1] <= limit, "it is true, by a third of a deviation"
    assert top_rates([0, 0, 0.3], check)[0] <= limit, "it is false, by a third of a deviation"
    assert top_rates([0, 4, 0], check)[0] > 0.9
    assert top_rates([0, 0, 4], check)[1] > 0.9


def test_the_place_of_a_top_may_be_compared_with_a_range() -> None:
    curves = {"c": tuple(Place((f"k{x}", "acc"), float(x)) for x in (1, 2, 3))}
    cells: Cells = {
        ("k1", "acc"): [1, 2, 1, 2, 1],
        ("k2", "acc"): [5, 4, 5, 4, 5],
        ("k3", "acc"): [2, 3, 1, 2, 3],
    }
    table = runs(cells, curves)

    def status(check: str) -> str:
        return judge(Claim(text=check, check=check, holds=None), table).status

    assert status('argmax_x("c") == 2') == "holds"
    assert status('argmax_x("c") < 3 and at("c", 1) < 3') == "holds"
    assert status('2 * argmax_x("c") >= 3') == "holds"
    assert status('argmax_x("c") == 1') == "contradicted"
    with pytest.raises(InputError, match="false whatever the runs are"):
        status('argmax_x("c") > 3')


def test_claims_about_scene_are_judged_in_one_view_too() -> None:
    # The paper describes Scene in one view, its released code has two.
    table = load_table("herocon-t2")
    columns = ("scene_f1", "scene_auc", "one_view_f1", "one_view_auc")
    values = (
        RunValue(row, c, seed, 0.6 + seed / 100)
        for row in table.row_names
        for c in columns
        for seed in range(1, 6)
    )
    verdicts = judge_all(TableResults(table, "paper", False, 5, tuple(values)))
    about_scene = {v.claim.text for v in verdicts if v.claim.retest and "On Scene" in v.claim.text}
    again = {v.claim.text for v in verdicts if v.read_in and "Scene in one view, F1" in v.read_in}
    assert len(about_scene) == 3
    assert again == about_scene
