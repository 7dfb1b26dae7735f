"""Differences from the printed values, their intervals, and the cells that are not compared."""

import math

import pytest
from scipy import stats

from contrasweep.search_spaces.tables import Scale, available_tables, load_table
from contrasweep.tuning.results.final_runs import UNTRAINED
from contrasweep.tuning.statistics import Summary
from contrasweep.tuning.tables.compare import compare, difference, not_beaten
from contrasweep.tuning.tables.results import CellInfo, RunValue, TableResults


def test_the_interval_is_welchs_where_the_print_states_runs_and_deviation() -> None:
    ours, theirs = [85.0, 86.5, 84.0, 86.0, 85.5], [80.0, 81.5, 80.5]
    mean, std = sum(theirs) / 3, math.sqrt(sum((x - sum(theirs) / 3) ** 2 for x in theirs) / 2)
    found = difference(Summary(85.4, _std(ours), 5), mean, std, 3)
    expected = stats.ttest_ind(ours, theirs, equal_var=False).confidence_interval()
    assert found.method == "Welch"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert difference(Summary(85.4, _std(ours), 5), mean, std, 1).method == "ours alone", (
        "one has no deviation"
    )


def test_without_the_number_of_printed_runs_the_interval_is_ours_alone() -> None:
    ours = [85.0, 86.5, 84.0]
    found = difference(Summary(sum(ours) / 3, _std(ours), 3), 80.0, 1.5, None)
    expected = stats.ttest_1samp([x - 80.0 for x in ours], 0).confidence_interval()
    assert found.method == "ours alone"
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_single_run_has_a_difference_and_no_interval() -> None:
    # Equal scores do not say how far those of other seeds would be away, if the print does not either.
    found = difference(Summary(85.0, 0.0, 5), 80.0, 1.0, None)
    assert (found.mean, found.low, found.high, found.method, found.apart) == (5.0, None, None, "", False)
    assert difference(Summary(85.0, 0.0, 5), 80.0, 1.0, 5).method == "Welch"
    found = difference(Summary(85.0, None, 1), 80.0, 1.0, 5)
    assert (found.mean, found.low, found.method) == (5.0, None, "")


def test_the_untrained_encoder_counts_once_a_seed() -> None:
    values = tuple(
        RunValue(row, "acc", seed, 80.0, untrained=50.0 + seed)
        for row in ("infonce", "fair-cclk")
        for seed in (1, 2, 3)
    )
    cells = compare(TableResults(load_table("cclk-t3"), "paper", False, 3, values))
    control = next(cell for cell in cells if cell.row == UNTRAINED)
    assert control.ours == Summary(52.0, 1.0, 3)


def test_rows_of_other_networks_have_controls_of_their_own() -> None:
    heights = {"dnn": 50.0, "supcon": 50.0, "herocon-u": 40.0, "herocon": 40.0}
    values = tuple(
        RunValue(row, "scene_auc", seed, 90.0, untrained=height + seed)
        for row, height in heights.items()
        for seed in (1, 2, 3)
    )
    cells = compare(TableResults(load_table("herocon-t2"), "paper", False, 3, values))
    controls = {cell.row: cell for cell in cells if cell.control_of}
    assert list(controls) == [f"{UNTRAINED}:dnn+supcon", f"{UNTRAINED}:herocon-u+herocon"]
    assert [cell.ours for cell in controls.values()] == [Summary(52.0, 1.0, 3), Summary(42.0, 1.0, 3)]
    assert "of DNN, SupCon" in controls[f"{UNTRAINED}:dnn+supcon"].row_name


def test_rows_without_a_seed_in_common_are_not_taken_for_one_network() -> None:
    values = (
        RunValue("dnn", "scene_auc", 2, 90.0, untrained=52.0),
        RunValue("dnn", "scene_auc", 3, 90.0, untrained=53.0),
        RunValue("herocon", "scene_auc", 1, 90.0, untrained=41.0),
    )
    cells = compare(TableResults(load_table("herocon-t2"), "paper", False, 3, values))
    means = {cell.control_of: cell.ours.mean for cell in cells if cell.control_of and cell.ours}
    assert means == {("dnn",): 52.5, ("herocon",): 41.0}


def test_runs_on_other_data_are_not_compared_with_print() -> None:
    table = load_table("cclk-t7")
    cub = table.run.columns["cub"].model_copy(update={"stands_in": "other images"})
    run = table.run.model_copy(update={"columns": {**table.run.columns, "cub": cub}})
    stood_in = table.model_copy(update={"run": run})
    values = tuple(RunValue("s10", "cub", seed, 80.0 + seed) for seed in (1, 2, 3))
    cell = next(c for c in compare(TableResults(stood_in, "paper", False, 3, values)) if c.row == "s10")
    assert (cell.printed, cell.ours is not None, cell.difference) == ("30.9±0.3", True, None)


def test_a_quick_form_is_not_compared_with_print_whatever_its_data() -> None:
    values = tuple(RunValue("infonce", "acc", seed, 80.0) for seed in (1, 2, 3))
    forms: tuple[tuple[Scale, bool], ...] = (("quick", False), ("paper", True))
    for scale, compared in forms:
        for dataset in ("colour-digits", "colormnist"):
            info = {("infonce", "acc"): CellInfo(dataset, "infonce", {})}
            found = compare(TableResults(load_table("cclk-t3"), scale, False, 3, values, info))
            assert (found[0].difference is not None) == compared, (scale, dataset)


def _std(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def test_a_column_that_is_not_printed_shows_two_digits_of_its_deviation() -> None:
    def digits(spread: float) -> int:
        values = tuple(RunValue("rbf", "mse_moving", seed, 100.0 + spread * seed) for seed in (1, 2, 3))
        cells = compare(TableResults(load_table("cclk-t5a"), "paper", False, 3, values))
        return next(cell.digits for cell in cells if cell.column == "mse_moving")

    assert [digits(spread) for spread in (300.0, 8.0, 0.4, 0.03, 0.0)] == [0, 1, 2, 3, 3]


def test_a_column_has_the_label_of_the_runs_or_of_the_print() -> None:
    assert load_table("cclk-t3").column_name("acc") == "Top-1 Accuracy"
    assert load_table("cclk-t3").column_name("acc_moving") == "Accuracy at rate 1.5"


@pytest.mark.parametrize("name", available_tables())
def test_no_two_rows_of_a_table_have_one_name_and_none_has_an_empty_one(name: str) -> None:
    names = list(load_table(name).row_names.values())
    assert len(set(names)) == len(names)
    assert all(names)


def test_a_column_that_is_not_run_any_more_is_a_cell_and_beats_nothing() -> None:
    values = tuple(RunValue("infonce", "gone", seed, 80.0, untrained=80.0) for seed in (1, 2, 3))
    results = TableResults(load_table("cclk-t3"), "paper", False, 3, values)
    assert [cell.column for cell in compare(results) if cell.ours] == ["gone", "gone"]
    assert not_beaten(results) == ""


@pytest.mark.parametrize(("name", "cited"), [("herocon-t1", False), ("fairkl-t3", True)])
def test_only_what_a_paper_quotes_is_marked_as_cited(name: str, cited: bool) -> None:
    assert any(cell.cited for cell in compare(TableResults(load_table(name), "paper", False, 5))) == cited


def test_facts_of_the_data_are_cells_too() -> None:
    table = load_table("cl-infonce-fig4a")
    facts = (RunValue("k = 1", "I(Z;T)", None, 0.5), RunValue("k = 2", "I(Z;T)", None, 0.7))
    found = compare(TableResults(table, "paper", False, 1, facts))
    assert [(cell.row_name, cell.ours and cell.ours.mean) for cell in found] == [
        ("k = 1", 0.5),
        ("k = 2", 0.7),
    ]


@pytest.mark.parametrize("name", available_tables())
def test_no_two_columns_of_a_table_have_one_name(name: str) -> None:
    table = load_table(name)
    keys = dict.fromkeys([*(column.key for column in table.columns), *table.run.columns])
    names = [table.column_name(key) for key in keys]
    assert len(set(names)) == len(names)
