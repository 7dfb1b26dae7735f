"""Verdicts on claims, by paired resamples of the seeds."""

from collections.abc import Mapping

import pytest

from contrasweep.search_spaces.tables import Claim, load_table
from contrasweep.tuning.tables.results import RunValue, TableResults
from contrasweep.tuning.tables.verdict import judge, judge_all

TABLE = load_table("cclk-t3")


def results(cells: Mapping[tuple[str, str], list[float]], **more: object) -> TableResults:
    values = tuple(
        RunValue(row, column, seed, value)
        for (row, column), own in cells.items()
        for seed, value in enumerate(own, start=1)
    )
    return TableResults(TABLE, "paper", False, 5, values, **more)  # type: ignore[arg-type]


def claim(check: str | None, **more: object) -> Claim:
    return Claim(text="a claim", check=check, holds=None, **more)  # type: ignore[arg-type]


HIGHER = claim('row["fair-cclk"].acc > row["infonce"].acc')


def test_a_claim_true_on_every_seed_holds_and_its_opposite_does_not() -> None:
    found = results({("fair-cclk", "acc"): [90, 91, 92], ("infonce", "acc"): [80, 81, 82]})
    assert (judge(HIGHER, found).status, judge(HIGHER, found).share) == ("holds", 1.0)
    below = claim('row["fair-cclk"].acc < row["infonce"].acc')
    assert (judge(below, found).status, judge(below, found).share) == ("does not hold", 0.0)
    assert judge(HIGHER, found).seeds == 3


def test_seeds_are_paired() -> None:
    # Between the seeds lie 10 points, within a seed one: only paired draws see that it is always there.
    found = results({("fair-cclk", "acc"): [71, 81, 91], ("infonce", "acc"): [70, 80, 90]})
    assert judge(HIGHER, found).share == 1.0


def test_a_claim_that_hangs_on_the_seeds_is_undecided() -> None:
    found = results({("fair-cclk", "acc"): [71, 81, 89], ("infonce", "acc"): [70, 80, 90]})
    verdict = judge(HIGHER, found)
    assert verdict.status == "undecided"
    assert 0.5 < (verdict.share or 0) < 0.95
    assert judge(HIGHER, found) == verdict, "the draws are seeded"


def test_fewer_than_three_seeds_decide_nothing() -> None:
    found = results({("fair-cclk", "acc"): [90, 91], ("infonce", "acc"): [80, 81, 82]})
    verdict = judge(HIGHER, found)
    assert (verdict.status, verdict.seeds, verdict.share) == ("undecided", 2, None)
    assert "3 are needed" in verdict.note


def test_only_seeds_that_all_cells_have_are_drawn() -> None:
    # The fourth run of one row would turn the claim around.
    found = results({("fair-cclk", "acc"): [90, 91, 92], ("infonce", "acc"): [80, 81, 82, 900]})
    assert (judge(HIGHER, found).status, judge(HIGHER, found).seeds) == ("holds", 3)


def test_claims_about_printed_figures_or_in_words_are_not_re_testable() -> None:
    found = results({})
    assert judge(claim('approx(row["fair-cclk"].acc, 2.3, 0.05)', retest=False), found).status == (
        "not re-testable"
    )
    assert judge(claim(None), found).status == "not re-testable"


def test_what_was_not_run_is_named_and_what_is_left_out_too() -> None:
    verdict = judge(HIGHER, results({("infonce", "acc"): [1, 2, 3]}))
    assert (verdict.status, verdict.note) == ("not run", "not measured: fair-cclk in acc")
    found = results({("fair-cclk", "acc"): [90, 91, 92], ("infonce", "acc"): [80, 81, 82]})
    both = judge(claim('row["fair-cclk"][:] > row["infonce"][:]'), found)
    assert (both.status, both.note) == ("holds", "without column mse")
    most = judge(claim('argmax(rows[:].acc) == "fair-cclk"'), found)
    assert (most.status, most.note) == ("holds", "without fair-infonce in acc")


def test_a_claim_reads_other_tables_where_they_were_run() -> None:
    across = claim('row["fair-cclk"].acc > table["cclk-t5a"].row["cosine"].acc')
    own = results({("fair-cclk", "acc"): [90, 91, 92]})
    assert judge(across, own).note == "not measured: table cclk-t5a"
    cells = (RunValue("cosine", "acc", seed, 80.0) for seed in (1, 2, 3))
    other = TableResults(load_table("cclk-t5a"), "paper", False, 5, tuple(cells))
    assert judge(across, own, {"cclk-t5a": other}).status == "holds"


def test_deviations_are_those_of_the_drawn_runs() -> None:
    spread = claim('row["infonce"].acc.std < 5')
    assert judge(spread, results({("infonce", "acc"): [80, 81, 82]})).status == "holds"
    assert judge(spread, results({("infonce", "acc"): [0, 50, 100, 150, 200]})).status == "does not hold"


def test_one_seed_drawn_three_times_has_no_spread_and_is_not_drawn() -> None:
    # Rows that are alike beside their spread: only where every draw is the same seed is the spread 0.
    alike = claim('row["infonce"].acc - row["fair-cclk"].acc <= 2 * row["infonce"].acc.std')
    found = results({("infonce", "acc"): [70.03, 80.03, 90.03], ("fair-cclk", "acc"): [70, 80, 90]})
    assert (judge(alike, found).status, judge(alike, found).share) == ("holds", 1.0)


def test_the_best_row_is_not_decided_while_the_one_that_is_named_was_not_run() -> None:
    best = claim('argmax(rows[:].acc) == "fair-cclk"')
    found = results({("infonce", "acc"): [80, 81, 82], ("fair-infonce", "acc"): [83, 84, 85]})
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
    rising = {key: [place + 0.1, place + 0.2, place + 0.3] for place, key in enumerate(keys)}
    assert judge_all(curves(spec.id, rising, []))[0].status == "holds"
    part = judge_all(curves(spec.id, {keys[0]: rising[keys[0]]}, keys[1:]))[0]
    assert part.status == "not run"
    assert keys[1][0] in part.note


def test_a_height_at_a_place_needs_that_place_of_those_curves_alone() -> None:
    spec = load_table("cacr-fig7")
    column = next(iter(spec.run.columns))
    at64 = {row: (row, column) for row in spec.run.rows if row.endswith("-64")}
    names = {row: spec.run.rows[row].series for row in at64}
    cells = {key: [0.1 if row.startswith("cmc") else 0.5] * 3 for row, key in at64.items()}
    first, *others = [row for row in at64 if not row.startswith("cmc")]
    higher = claim(f'max_at(64, ["{names[first]}"]) >= max_at(64, ["{names[others[0]]}"])')
    # One run of a curve that the claim does not name, and places that are not done, change nothing.
    unnamed = next(row for row in at64 if row.startswith("cmc"))
    cells[at64[unnamed]] = [0.9]
    gaps = [(row, column) for row in spec.run.rows if row not in at64]
    verdict = judge(higher, curves(spec.id, cells, gaps))
    assert (verdict.status, verdict.seeds) == ("holds", 3)


def test_claims_are_judged_once_more_on_columns_that_repeat_others() -> None:
    slow = {("fair-cclk", "acc"): [90, 91, 92], ("infonce", "acc"): [80, 81, 82]}
    moving = {("fair-cclk", "acc_moving"): [70, 71, 72], ("infonce", "acc_moving"): [80, 81, 82]}
    own, *_, again = judge_all(results(slow | moving))
    assert (own.status, own.read_in) == ("holds", ())
    assert (again.status, again.claim) == ("does not hold", own.claim)
    assert (again.read_in, again.note) == (("Accuracy at rate 1.5",), "")
    assert all(not verdict.read_in for verdict in judge_all(results(slow)))
    del moving["fair-cclk", "acc_moving"]
    *_, half = judge_all(results(slow | moving))
    assert (half.status, half.note) == ("not run", "not measured: fair-cclk in acc_moving")


def test_a_claim_on_deviations_with_one_seed_is_undecided() -> None:
    verdict = judge(claim('row["infonce"].acc.std < 5'), results({("infonce", "acc"): [80]}))
    assert (verdict.status, verdict.seeds) == ("undecided", 1)


def test_the_claims_of_a_figure_that_shows_rows_of_a_table_are_judged_with_it() -> None:
    table = load_table("fairkl-t3")
    heights = {"ce": 10.0, "eps-supcon": 20.0, "eps-supinfonce": 30.0}
    values = tuple(
        RunValue(row, column, seed, height + seed)
        for row, height in heights.items()
        for column in table.run.columns
        for seed in (1, 2, 3)
    )
    shown = [v for v in judge_all(TableResults(table, "quick", False, 3, values)) if v.shown_in]
    assert {verdict.shown_in for verdict in shown} == {"Figure 2"}
    # Comparable at the weaker biases, clearly ahead at the strongest, both above cross entropy.
    assert [verdict.status for verdict in shown] == ["does not hold", "holds", "holds"]


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


@pytest.mark.parametrize(("beta", "expected"), [(10.0, "holds"), (1.0, "does not hold")])
def test_the_best_place_of_a_map_is_found(beta: float, expected: str) -> None:
    table = load_table("herocon-fig3a")
    values = [
        RunValue(key, "f1", seed, 0.9 if (row.x, row.y) == (0.01, beta) else 0.5)
        for key, row in table.run.rows.items()
        for seed in (1, 2, 3)
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
            ["does not hold", "holds", "does not hold", "does not hold"],
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
            ["does not hold"],
        ),
    ],
)
def test_the_places_of_a_curve_may_be_columns(
    table: str, heights: dict[str, tuple[float, ...]], expected: list[str]
) -> None:
    spec = load_table(table)
    values = tuple(
        RunValue(row, column, seed, height + seed / 1e6)
        for row, own in heights.items()
        for column, height in zip(spec.run.columns, own, strict=True)
        for seed in (1, 2, 3)
    )
    assert [v.status for v in judge_all(TableResults(spec, "paper", False, 3, values))] == expected
