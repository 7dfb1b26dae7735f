"""Verdicts on claims, from seeds that are paired."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from contrasweep.search_spaces.tables import Claim, Scale, load_table
from contrasweep.tuning.tables.results import RunValue, TableResults
from contrasweep.tuning.tables.runs import runs_of
from contrasweep.tuning.tables.verdict import Verdict, judge_all
from contrasweep.tuning.tables.verdict import judge as judge_runs

TABLE = load_table("cclk-t3")


def results(
    cells: Mapping[tuple[str, str], list[float]], untrained: float | None = None, **more: object
) -> TableResults:
    values = tuple(
        RunValue(row, column, seed, value, untrained)
        for (row, column), own in cells.items()
        for seed, value in enumerate(own, start=1)
    )
    return TableResults(TABLE, "paper", False, 5, values, **more)  # type: ignore[arg-type]


def judge(claim: Claim, own: TableResults, others: Mapping[str, TableResults] | None = None) -> Verdict:
    beside = {name: runs_of(found) for name, found in (others or {}).items()}
    return judge_runs(claim, runs_of(own), beside)


def claim(check: str | None, **more: object) -> Claim:
    return Claim(text="a claim", check=check, holds=None, **more)  # type: ignore[arg-type]


HIGHER = claim('row["fair-cclk"].acc > row["infonce"].acc')
SEEDS = range(1, 6)
HIGH, LOW = [90, 91, 92, 94, 95], [80, 82, 81, 83, 84]


def test_a_claim_true_on_every_seed_holds_and_its_opposite_is_contradicted() -> None:
    found = results({("fair-cclk", "acc"): HIGH, ("infonce", "acc"): LOW})
    verdict = judge(HIGHER, found)
    assert (verdict.status, verdict.seeds) == ("holds", 5)
    assert verdict.false is not None
    assert verdict.false < 0.001
    below = judge(claim('row["fair-cclk"].acc < row["infonce"].acc'), found)
    assert (below.status, below.true) == ("contradicted", pytest.approx(verdict.false))
    (only,) = below.comparisons
    assert (only.text, only.finding) == ("infonce.acc > fair-cclk.acc", "contradicts")
    assert only.low < only.margin < only.high < 0


def test_seeds_are_paired() -> None:
    # Between the seeds lie 10 points, within a seed about one: only pairs see that it is always there.
    found = results(
        {("fair-cclk", "acc"): [71, 81, 92, 101, 111], ("infonce", "acc"): [70, 80, 90, 100, 110]}
    )
    assert judge(HIGHER, found).status == "holds"


def test_a_claim_that_hangs_on_the_seeds_is_undecided() -> None:
    found = results(
        {("fair-cclk", "acc"): [71, 81, 89, 101, 109], ("infonce", "acc"): [70, 80, 90, 100, 110]}
    )
    verdict = judge(HIGHER, found)
    assert verdict.status == "undecided"
    assert 0.05 < (verdict.false or 0) < 0.5
    assert judge(HIGHER, found) == verdict, "the shuffles are seeded"


def test_rows_that_differ_by_less_than_what_counts_are_equal() -> None:
    even = {("fair-cclk", "acc"): [90.1, 91, 92, 94, 95], ("infonce", "acc"): [90, 91.1, 92.1, 94, 95]}
    assert judge(HIGHER, results(even)).status == "equal"
    # Beside a comparison that is supported, too; not beside one that is open.
    both = claim('row["fair-cclk"].acc > max(row["infonce"].acc, row["fair-infonce"].acc)')
    assert judge(both, results({**even, ("fair-infonce", "acc"): LOW})).status == "equal"
    wild = {("fair-infonce", "acc"): [80.0, 99, 80, 99, 99]}
    assert judge(both, results({**even, **wild})).status == "undecided"


def test_one_of_two_that_is_nearly_shown_is_not_equal() -> None:
    """Each of two comparisons has p = 0.037, and either would do: corrected, the claim has p = 0.07."""
    nearly = [80 + 1.7 + step for step in (-2, -1, 0, 1, 2)]
    cells = {("infonce", "acc"): [80.0] * 5, ("fair-cclk", "acc"): nearly, ("fair-infonce", "acc"): nearly}
    one = claim('max(row["fair-cclk"].acc, row["fair-infonce"].acc) > row["infonce"].acc')
    verdict = judge(one, results(cells))
    assert [found.finding for found in verdict.comparisons] == ["supports", "supports"]
    assert verdict.false == pytest.approx(0.074, abs=0.001)
    assert verdict.status == "undecided"
    equal = [79.9, 80.1, 80, 80.1, 79.9]
    cells |= {("fair-cclk", "acc"): equal, ("fair-infonce", "acc"): equal}
    assert judge(one, results(cells)).status == "equal"
    assert judge(one, results({**cells, ("fair-cclk", "acc"): nearly})).status == "undecided"


def test_a_contradicted_claim_names_what_contradicts_it_after_the_correction() -> None:
    """Two of three comparisons are below 5 %, one of them below a third of that."""
    base = [80.0] * 5
    gaps = {"fair-infonce": 5.0, "infonce": 1.7, "fair-cclk": -5.0}
    cells = {(row, "acc"): [80 + gap + step for step in (-2, -1, 0, 1, 2)] for row, gap in gaps.items()}
    order = claim('min(row["fair-infonce"].acc, row["infonce"].acc) < 80 and row["fair-cclk"].acc > 80')
    assert judge(order, results(cells)).against == ("fair-cclk.acc > 80",)
    every = claim(" and ".join(f'row["{row}"].acc < 80' for row in gaps))
    verdict = judge(every, results(cells))
    assert [one.finding for one in verdict.comparisons].count("contradicts") == 2
    assert (verdict.status, verdict.against) == ("contradicted", ("80 > fair-infonce.acc",))
    alone = claim('row["infonce"].acc < 80')
    assert judge(alone, results({("infonce", "acc"): base})).against == ()


def test_what_did_not_leave_its_untrained_encoder_is_inert() -> None:
    cells = {("fair-cclk", "acc"): [80.2, 80.1, 80.2, 80.1, 80.2], ("infonce", "acc"): [80.0] * 5}
    assert judge(HIGHER, results(cells)).status == "holds"
    assert judge(HIGHER, results(cells, untrained=80.0)).status == "inert"
    lower = claim('row["infonce"].acc > row["fair-cclk"].acc')
    assert judge(lower, results(cells, untrained=80.0)).against == ()
    # A row whose control lacks a seed may have moved.
    alike = results(cells, untrained=80.0)
    alike = replace(alike, values=(replace(alike.values[0], untrained=None), *alike.values[1:]))
    assert judge(HIGHER, alike).status == "holds"
    # One row that has moved is enough, in either direction.
    cells["infonce", "acc"] = [70.0, 71, 72, 70, 71]
    assert judge(HIGHER, results(cells, untrained=80.0)).status == "holds"


def test_the_more_cells_a_claim_reads_the_clearer_one_must_have_moved() -> None:
    # Beyond the margin by t = 3.26: p is 0.016 on one side, and must be at most 5 % / 2k for k cells.
    moved = [80.5 + gap for gap in (0, 2, 3, 4, 5)]
    found = results({("fair-cclk", "acc"): moved, ("infonce", "acc"): [80.0] * 5}, untrained=80.0)
    assert judge(claim('row["fair-cclk"].acc > 50'), found).status == "holds"
    assert judge(HIGHER, found).status == "inert"


def test_chance_is_how_often_the_claim_holds_with_the_rows_shuffled() -> None:
    found = results({("fair-cclk", "acc"): HIGH, ("infonce", "acc"): LOW})
    pair = judge(HIGHER, found).chance
    # The rows of five seeds lie one way by chance in one case of 32.
    assert pair == pytest.approx(1 / 32, abs=0.04)
    either = claim(f"{HIGHER.check} or row['fair-cclk'].acc <= row['infonce'].acc")
    assert (judge(either, found).chance or 0) > (pair or 0)
    assert judge(claim('row["infonce"].acc > 50'), found).chance is None, "a single row has no others"


def test_a_claim_of_many_comparisons_holds_if_all_do_and_names_the_one_that_fails() -> None:
    order = claim('order_desc(row["fair-cclk"].acc, row["fair-infonce"].acc, row["infonce"].acc)')
    between = [float(value) for value in (85, 86, 87, 88, 91)]
    cells = {("fair-cclk", "acc"): HIGH, ("infonce", "acc"): LOW, ("fair-infonce", "acc"): between}
    assert judge(order, results(cells)).status == "holds"
    cells["fair-infonce", "acc"] = [72, 74, 73, 74, 76]
    verdict = judge(order, results(cells))
    assert verdict.status == "contradicted"
    found = {one.text: one.finding for one in verdict.comparisons}
    assert found == {
        "fair-cclk.acc > fair-infonce.acc": "supports",
        "fair-infonce.acc > infonce.acc": "contradicts",
    }


def test_fewer_than_five_seeds_decide_nothing() -> None:
    found = results({("fair-cclk", "acc"): HIGH[:4], ("infonce", "acc"): LOW})
    verdict = judge(HIGHER, found)
    assert (verdict.status, verdict.seeds, verdict.false, verdict.chance) == ("undecided", 4, None, None)
    assert verdict.note == "too few seeds in common: 5 are needed; only 4 of fair-cclk.acc"
    best = judge(claim('argmax(rows[:].acc) == "fair-cclk"'), found)
    assert best.note == f"{verdict.note}; without fair-infonce in acc"
    short = results({("fair-cclk", "acc"): HIGH[:4], ("infonce", "acc"): LOW[:4]})
    assert judge(HIGHER, short).note == "too few seeds in common: 5 are needed"


def test_only_seeds_that_all_cells_have_are_used() -> None:
    # The sixth run of one row would turn the claim around.
    found = results({("fair-cclk", "acc"): HIGH, ("infonce", "acc"): [*LOW, 900]})
    assert (judge(HIGHER, found).status, judge(HIGHER, found).seeds) == ("holds", 5)


def test_claims_about_printed_figures_or_in_words_are_not_re_testable() -> None:
    found = results({})
    assert judge(claim('approx(row["fair-cclk"].acc, 2.3, 0.05)', retest=False), found).status == (
        "not re-testable"
    )
    assert judge(claim(None), found).status == "not re-testable"


def test_what_was_not_run_is_named_and_what_is_left_out_too() -> None:
    verdict = judge(HIGHER, results({("infonce", "acc"): LOW}))
    assert (verdict.status, verdict.note) == ("not run", "not measured: fair-cclk in acc")
    found = results({("fair-cclk", "acc"): HIGH, ("infonce", "acc"): LOW})
    both = judge(claim('row["fair-cclk"][:] > row["infonce"][:]'), found)
    assert (both.status, both.note) == ("holds", "without column mse")
    most = judge(claim('argmax(rows[:].acc) == "fair-cclk"'), found)
    assert (most.status, most.note) == ("holds", "without fair-infonce in acc")


def test_a_claim_reads_other_tables_where_they_were_run() -> None:
    across = claim('row["fair-cclk"].acc > table["cclk-t5a"].row["cosine"].acc')
    own = results({("fair-cclk", "acc"): HIGH})
    assert judge(across, own).note == "not measured: table cclk-t5a"
    cells = (RunValue("cosine", "acc", seed, 80.0) for seed in SEEDS)
    other = TableResults(load_table("cclk-t5a"), "paper", False, 5, tuple(cells))
    assert judge(across, own, {"cclk-t5a": other}).status == "holds"


def test_deviations_are_judged_by_leaving_out_runs() -> None:
    spread = claim('row["infonce"].acc.std < 5')
    assert judge(spread, results({("infonce", "acc"): LOW})).status == "holds"
    assert judge(spread, results({("infonce", "acc"): [0, 50, 100, 150, 200]})).status == "contradicted"


def test_a_claim_on_a_difference_and_a_deviation_is_judged_on_both() -> None:
    alike = claim('row["infonce"].acc - row["fair-cclk"].acc <= 2 * row["infonce"].acc.std')
    own = [70.0, 80.0, 90.0, 75.0, 85.0]
    found = results({("infonce", "acc"): [value + 0.03 for value in own], ("fair-cclk", "acc"): own})
    assert judge(alike, found).status == "holds"
    found = results({("infonce", "acc"): [value + 90 for value in own], ("fair-cclk", "acc"): own})
    assert judge(alike, found).status == "contradicted"


def test_the_best_row_is_not_decided_while_the_one_that_is_named_was_not_run() -> None:
    best = claim('argmax(rows[:].acc) == "fair-cclk"')
    found = results({("infonce", "acc"): LOW, ("fair-infonce", "acc"): HIGH})
    assert judge(best, found).status == "not run"
    assert judge(best, found).note == "not measured: fair-cclk in acc"


def curves(
    table: str, heights: Mapping[tuple[str, str], list[float]], gaps: list[tuple[str, str]]
) -> TableResults:
    values = tuple(
        RunValue(row, column, seed, height)
        for (row, column), own in heights.items()
        for seed, height in enumerate(own, start=1)
    )
    return TableResults(load_table(table), "paper", False, 3, values, gaps=dict.fromkeys(gaps, "not done"))


def test_the_shape_of_a_curve_is_not_judged_before_all_its_places_were_run() -> None:
    spec = load_table("herocon-fig3b")
    keys = [(row, next(iter(spec.run.columns))) for row in spec.run.rows]
    rising = {key: [place + seed / 10 for seed in SEEDS] for place, key in enumerate(keys)}
    assert judge_all(curves(spec.id, rising, []))[0].status == "holds"
    part = judge_all(curves(spec.id, {keys[0]: rising[keys[0]]}, keys[1:]))[0]
    assert part.status == "not run"
    assert keys[1][0] in part.note


def test_a_height_at_a_place_needs_that_place_of_those_curves_alone() -> None:
    spec = load_table("cacr-fig7")
    column = next(iter(spec.run.columns))
    at64 = {row: (row, column) for row in spec.run.rows if row.endswith("-64")}
    names = {row: spec.run.rows[row].series for row in at64}
    cells = {key: [0.1 if row.startswith("cmc") else 0.5] * 5 for row, key in at64.items()}
    first, *others = [row for row in at64 if not row.startswith("cmc")]
    higher = claim(f'max_at(64, ["{names[first]}"]) >= max_at(64, ["{names[others[0]]}"])')
    # One run of a curve that the claim does not name, and places that are not done, change nothing.
    unnamed = next(row for row in at64 if row.startswith("cmc"))
    cells[at64[unnamed]] = [0.9]
    gaps = [(row, column) for row in spec.run.rows if row not in at64]
    verdict = judge(higher, curves(spec.id, cells, gaps))
    assert (verdict.status, verdict.seeds) == ("holds", 5)


def test_curves_over_levels_and_rows_without_a_level_are_judged() -> None:
    table = load_table("cl-infonce-fig6a")
    levels = list(table.run.columns)
    heights = {"cl-infonce": 3.0, "clusters-ce": 2.0}
    cells = {
        (row, level): [height + place + 0.01 * seed for seed in range(5)]
        for row, height in heights.items()
        for place, level in enumerate(levels)
    }
    cells |= {
        ("supcon", "level14"): [12.0, 12.1, 12.2, 12.3, 12.4],
        ("infonce", "level2"): [1.0, 1.1, 1.2, 1.3, 1.4],
    }
    values = [RunValue(*key, seed, value) for key, own in cells.items() for seed, value in enumerate(own)]
    found = judge_all(TableResults(table, "paper", False, 5, tuple(values)))
    assert [verdict.status for verdict in found] == ["holds", "holds", "holds", "not re-testable"]


def test_claims_are_judged_once_more_on_columns_that_repeat_others() -> None:
    slow = {("fair-cclk", "acc"): HIGH, ("infonce", "acc"): LOW}
    moving = {("fair-cclk", "acc_moving"): LOW, ("infonce", "acc_moving"): HIGH}
    own, *_, again, _ = judge_all(results(slow | moving))
    assert (own.status, own.read_in) == ("holds", ())
    assert (again.status, again.claim) == ("contradicted", own.claim)
    assert (again.read_in, again.note) == (("Accuracy at rate 1.5",), "without MSE")
    assert all(not verdict.read_in for verdict in judge_all(results(slow)))
    del moving["fair-cclk", "acc_moving"]
    *_, half, _ = judge_all(results(slow | moving))
    assert (half.status, half.note) == ("not run", "not measured: fair-cclk in acc_moving")


def test_a_bound_of_the_papers_data_is_read_neither_in_a_quick_form_nor_on_other_data() -> None:
    table = load_table("cclk-t7")
    collapse = next(claim for claim in table.claims if claim.absolute)
    heights = {"s1": 2.0, "s10": 32.0, "s100": 33.0, "s500": 31.0, "s1000": 30.0}

    def of(column: str, scale: Scale) -> TableResults:
        cells = heights.items()
        values = (RunValue(row, column, seed, height + seed / 10) for row, height in cells for seed in SEEDS)
        return TableResults(table, scale, False, 5, tuple(values))

    assert judge(collapse, of("cub", "paper")).status == "holds"
    quick = judge(collapse, of("cub", "quick"))
    assert (quick.status, quick.note) == ("not re-testable", "its bound is a number of the paper's data")
    elsewhere = [verdict for verdict in judge_all(of("colormnist", "paper")) if verdict.read_in]
    assert elsewhere
    assert collapse not in [verdict.claim for verdict in elsewhere]


def test_a_claim_on_deviations_with_one_seed_is_undecided() -> None:
    verdict = judge(claim('row["infonce"].acc.std < 5'), results({("infonce", "acc"): [80]}))
    assert (verdict.status, verdict.seeds) == ("undecided", 1)


def test_the_claims_of_a_figure_that_shows_rows_of_a_table_are_judged_with_it() -> None:
    table = load_table("fairkl-t3")
    heights = {"ce": 10.0, "eps-supcon": 20.0, "eps-supinfonce": 30.0}
    values = tuple(
        RunValue(row, column, seed, height * (1 + seed / 100))
        for row, height in heights.items()
        for column in table.run.columns
        for seed in SEEDS
    )
    shown = [v for v in judge_all(TableResults(table, "quick", False, 3, values)) if v.shown_in]
    assert {verdict.shown_in for verdict in shown} == {"Figure 2"}
    # Comparable at the weaker biases, clearly ahead at the strongest, both above cross entropy.
    assert [verdict.status for verdict in shown] == ["contradicted", "holds", "holds"]


def test_facts_of_the_data_need_no_seeds() -> None:
    heights = {"I(Z;T)": [1, 2, 3], "H(Z|T)": [1, 2, 4], "-H(Z|T)": [-1, -2, -4], "clusters": [2, 4, 8]}
    values = tuple(
        RunValue(f"k{k}", name, None, height)
        for name, own in heights.items()
        for k, height in zip((1, 2, 3), own, strict=True)
    )
    found = TableResults(load_table("cl-infonce-fig4a"), "paper", False, 0, values)
    verdicts = judge_all(found)
    assert [verdict.status for verdict in verdicts] == ["holds", "holds", "not run", "not run"]
    assert verdicts[0].seeds is None


@pytest.mark.parametrize(("beta", "expected"), [(10.0, "holds"), (1.0, "contradicted")])
def test_the_best_place_of_a_map_is_found(beta: float, expected: str) -> None:
    table = load_table("herocon-fig3a")
    values = [
        RunValue(key, "f1", seed, (0.9 if (row.x, row.y) == (0.01, beta) else 0.5) * (1 + seed / 100))
        for key, row in table.run.rows.items()
        for seed in SEEDS
    ]
    found = TableResults(table, "paper", False, 5, tuple(values))
    assert judge(table.claims[1], found).status == expected


@pytest.mark.parametrize(
    ("table", "heights", "expected"),
    [
        # One view is worse for the two losses that compare views, and HeroCon-s is best in both.
        (
            "herocon-fig2a",
            {"dnn": (0.5, 0.5), "herocon-u": (0.7, 0.6), "herocon-s": (0.9, 0.9), "herocon": (0.8, 0.6)},
            ["holds", "holds", "holds", "holds"],
        ),
        (
            "herocon-fig2a",
            {"dnn": (0.5, 0.5), "herocon-u": (0.6, 0.7), "herocon-s": (0.7, 0.7), "herocon": (0.8, 0.8)},
            ["contradicted", "holds", "contradicted", "contradicted"],
        ),
        (
            "herocon-fig2b",
            {
                "dnn": (0.9, 0.8, 0.7, 0.6, 0.5),
                "herocon-s": (0.9,) * 5,
                "herocon": (0.9, 0.9, 0.9, 0.9, 0.89),
            },
            ["holds"],
        ),
        (
            "herocon-fig2b",
            {"dnn": (0.9,) * 5, "herocon-s": (0.9,) * 5, "herocon": (0.9, 0.8, 0.7, 0.6, 0.5)},
            ["contradicted"],
        ),
    ],
)
def test_the_places_of_a_curve_may_be_columns(
    table: str, heights: dict[str, tuple[float, ...]], expected: list[str]
) -> None:
    spec = load_table(table)
    values = tuple(
        RunValue(row, column, seed, height * (1 + seed / 1e6))
        for row, own in heights.items()
        for column, height in zip(spec.run.columns, own, strict=True)
        for seed in SEEDS
    )
    assert [v.status for v in judge_all(TableResults(spec, "paper", False, 3, values))] == expected
