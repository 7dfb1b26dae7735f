"""Where claims stand, the scoreboard, the heat map, forest plots and findings, on made-up scores."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest

from contrasweep.search_spaces.papers import PAPERS
from contrasweep.search_spaces.tables import available_tables, load_table
from contrasweep.tuning.tables.findings import bullets, findings
from contrasweep.tuning.tables.forest_plot import draw_forest, forest
from contrasweep.tuning.tables.heatmap import LOOKS, cell_of, draw_heatmap, shown_forms
from contrasweep.tuning.tables.offline import offline_page
from contrasweep.tuning.tables.results import CellInfo, RunValue, TableResults
from contrasweep.tuning.tables.scoreboard import HEADINGS, scoreboard, scoreboard_rows
from contrasweep.tuning.tables.standings import OUTCOMES, JudgedForm, Standing, standings
from contrasweep.tuning.tables.summary import in_short, older_runs
from contrasweep.tuning.tables.verdict import VerdictStatus, judge_all

BEATS = "FairCCLK beats InfoNCE on both metrics."
SPREAD = (-0.002, -0.001, 0.0, 0.001, 0.002)
Rows = Mapping[str, float]


def stored(rows: Rows, *, untrained: float = 80.0, seeds: int = 5, **form: object) -> JudgedForm:
    """Return runs of CCL-K's Table 3: a row has one mean in both metrics, all have one relative spread."""
    values = [
        RunValue(row, column, seed + 1, mean * (1 + SPREAD[seed]), untrained=untrained)
        for row, mean in rows.items()
        for column in ("acc", "mse")
        for seed in range(seeds)
    ]
    results = replace(TableResults(load_table("cclk-t3"), "paper", False, seeds, tuple(values)), **form)
    return JudgedForm(results, tuple(judge_all(results)))


def claim(stands: Sequence[Standing], text: str = BEATS) -> Standing:
    return next(stand for stand in stands if stand.claim.text == text and stand.table.id == "cclk-t3")


@pytest.mark.parametrize(
    ("rows", "outcome"),
    [
        ({"infonce": 84.0, "fair-cclk": 88.0}, "confirmed"),
        ({"infonce": 88.0, "fair-cclk": 84.0}, "contradicted"),
        ({"infonce": 84.0, "fair-cclk": 84.0}, "equal"),
    ],
)
def test_runs_as_printed_decide_a_claim(rows: Rows, outcome: str) -> None:
    stand = claim(standings([stored(rows)]))
    assert stand.outcome == outcome
    assert stand.confirmed_by_holm == (outcome == "confirmed")


def test_rows_that_did_not_move_are_inert() -> None:
    stand = claim(standings([stored({"infonce": 84.0, "fair-cclk": 84.0}, untrained=84.0)]))
    cell = cell_of(stand, "paper's")
    assert stand.outcome == "inert"
    assert cell is not None
    assert cell.hatched


@pytest.mark.parametrize("form", [{"tuned": True}, {"scale": "quick"}])
def test_other_forms_decide_no_claim(form: Mapping[str, object]) -> None:
    stand = claim(standings([stored({"infonce": 84.0, "fair-cclk": 88.0}, **form)]))
    assert stand.outcome == "other form"
    assert stand.decisive is None
    assert [found.verdict.status for found in stand.found.values()] == ["holds"]


def test_columns_that_repeat_others_under_other_settings_decide_no_claim() -> None:
    own = stored({"infonce": 84.0, "fair-cclk": 88.0})
    moving = tuple(
        replace(value, column="acc_moving") for value in own.results.values if value.column == "acc"
    )
    results = replace(own.results, values=moving)
    stand = claim(standings([JudgedForm(results, tuple(judge_all(results)))]))
    found = stand.found["paper's, repeated"].verdict
    assert (found.status, found.note) == ("holds", "without MSE")
    assert stand.outcome == "other form"


def test_a_claim_that_reads_paper_and_other_data_is_not_decided() -> None:
    own = stored({"infonce": 84.0, "fair-cclk": 88.0})
    table = own.results.table
    other = table.run.columns["mse"].model_copy(update={"stands_in": "other images", "other_data": True})
    run = table.run.model_copy(update={"columns": {**table.run.columns, "mse": other}})
    results = replace(own.results, table=table.model_copy(update={"run": run}))
    stands = standings([JudgedForm(results, tuple(judge_all(results)))])
    assert claim(stands).outcome == "other form"
    assert claim(stands).found["paper's"].hatched


def test_claims_without_runs_say_why() -> None:
    stands = standings([])
    outcomes = {(stand.table.id, stand.claim.check is None): stand.outcome for stand in stands}
    assert outcomes["cclk-t3", False] in ("data missing", "not re-testable")
    assert {stand.outcome for stand in stands if stand.table.run.never} <= {"cannot run", "not re-testable"}
    assert len(stands) == sum(len(load_table(name).claims) for name in available_tables())


def test_every_claim_counts_once_on_the_scoreboard() -> None:
    judged = [stored({"infonce": 84.0, "fair-cclk": 88.0}), stored({"infonce": 84.0}, tuned=True)]
    stands = standings(judged)
    lines = scoreboard(stands, judged)
    assert [line.name for line in lines] == [*(paper.short for paper in PAPERS.values()), "all"]
    assert [line.claims for line in lines[:-1]] == [
        sum(stand.table.paper == paper for stand in stands) for paper in PAPERS
    ]
    first, total = lines[0], lines[-1]
    assert (first.outcomes["confirmed"], first.by_holm) == (1, 1)
    assert total.claims == len(stands)
    rows = scoreboard_rows(lines)
    assert {len(row) for row in rows} == {len(HEADINGS)}
    assert rows[0][HEADINGS.index("confirmed")] == "1 (1)"


def test_printed_values_are_counted_in_our_interval_and_in_the_untrained_encoders() -> None:
    # The paper prints 84.1 and 86.4 in accuracy, 48.8 and 64.7 in colour error.
    alike = stored({"infonce": 84.1, "fair-cclk": 70.0}, untrained=86.4)
    spread = [replace(run, untrained=86.4 + SPREAD[(run.seed or 1) - 1]) for run in alike.results.values]
    judged = [replace(alike, results=replace(alike.results, values=tuple(spread)))]
    covered = scoreboard(standings(judged), judged)[-1].covered
    assert (covered.ours, covered.untrained, covered.compared) == (1, 1, 4)
    # Scores that are equal on all seeds have no interval.
    assert scoreboard(standings([alike]), [alike])[-1].covered.untrained == 0


def test_the_untrained_encoder_is_compared_with_print_as_ours_are() -> None:
    """HeroCon prints deviations of five runs, so both intervals are Welch's."""
    # 0.5902 ± 0.0122 is printed: 0.6 lies outside of the interval of runs that deviate by 0.0016 alone.
    values = tuple(
        RunValue("dnn", "scene_f1", seed, 0.598 + seed / 1000, untrained=0.598 + seed / 1000)
        for seed in range(5)
    )
    table = load_table("herocon-t2")
    results = TableResults(table, "paper", False, 5, values)
    judged = [JudgedForm(results, ())]
    covered = scoreboard(standings(judged), judged)[-1].covered
    assert (covered.ours, covered.untrained, covered.compared) == (1, 1, 1)


def test_each_verdict_has_a_look_and_each_outcome_a_meaning() -> None:
    assert set(LOOKS) == set(get_args(VerdictStatus))
    assert len({(look.sign, look.fill) for look in LOOKS.values()}) == len(LOOKS)
    assert all(OUTCOMES.values())


def test_figures_are_drawn(tmp_path: Path) -> None:
    judged = stored({"infonce": 84.0, "fair-cclk": 88.0})
    stands = standings([judged])
    draw_heatmap(stands, tmp_path / "claims.png")
    draw_forest(judged.results, tmp_path / "forest.png")
    for path in tmp_path.iterdir():
        assert path.stat().st_size > 5_000
    assert shown_forms(stands) == ["paper's"]


def test_a_forest_shows_ours_minus_printed_beside_the_untrained_encoder() -> None:
    (accuracy, _) = forest(stored({"infonce": 84.1, "fair-cclk": 90.0}).results)
    assert accuracy.printed
    same, other = accuracy.lines
    assert (same.apart, other.apart) == (False, True)
    assert other.mean == pytest.approx(90.0 - 86.4)
    assert other.band == pytest.approx((80.0 - 86.4, 80.0 - 86.4))


def test_a_forest_of_a_quick_form_shows_ours_minus_the_untrained_encoder() -> None:
    (accuracy, _) = forest(stored({"infonce": 84.0}, scale="quick").results)
    assert not accuracy.printed
    assert accuracy.lines[0].mean == pytest.approx(4.0)
    assert accuracy.lines[0].band == (-0.5, 0.5)


def test_findings_name_what_was_confirmed_and_what_was_not() -> None:
    for rows, heading in (
        ({"infonce": 84.0, "fair-cclk": 88.0}, "Reproduced"),
        ({"infonce": 88.0, "fair-cclk": 84.0}, "Not reproduced"),
    ):
        judged = [stored(rows)]
        stands = standings(judged)
        said = findings(stands, judged, scoreboard(stands, judged))
        (named,) = [one.title for one in said if any(BEATS in line for line in one.sentences)]
        assert named.startswith(heading)
        assert f"**{named}**\n\n- " in bullets(said)
        assert "80.0 without training; the paper prints 84.1 to 86.4" in bullets(said)


def test_a_finding_of_too_few_runs_says_how_many_are_needed() -> None:
    judged = [stored({"infonce": 84.0, "fair-cclk": 88.0}, seeds=3)]
    stands = standings(judged)
    said = bullets(findings(stands, judged, scoreboard(stands, judged)))
    assert f"{BEATS} Undecided (n = 3, 5 are needed)." in said


def test_all_claims_in_short() -> None:
    for rows, untrained, told in (
        ({"infonce": 84.0, "fair-cclk": 88.0}, 80.0, "1 is confirmed and none is contradicted."),
        ({"infonce": 88.0, "fair-cclk": 84.0}, 80.0, "none is confirmed and 1 is contradicted."),
        (
            {"infonce": 84.0, "fair-cclk": 84.0},
            84.0,
            "settings on its data: 1 inert (",
        ),
    ):
        judged = [stored(rows, untrained=untrained)]
        stands = standings(judged)
        total = scoreboard(stands, judged)[-1]
        said = in_short(stands, total)
        assert said.startswith(f"**In short.** Of {len(stands)} claims, ")
        assert told in said
        assert f"({total.outcomes['data missing']} of them need data that no stored run has read)" in said


def test_the_scoreboard_names_runs_that_are_older_than_their_table() -> None:
    judged = stored({"infonce": 84.0, "fair-cclk": 88.0})
    assert older_runs([judged]) == ""
    old = CellInfo("infonce", "colormnist", {"encoder.name": "lenet5"})
    results = replace(judged.results, cells={("infonce", "acc"): old})
    assert "(CCL-K: Table 3)" in older_runs([replace(judged, results=results)])
    assert older_runs([replace(judged, results=replace(results, scale="quick"))]) == ""


def test_the_offline_page_has_filters_and_a_cell_for_each_verdict() -> None:
    judged = [stored({"infonce": 84.0, "fair-cclk": 88.0}), stored({"infonce": 84.0}, scale="quick")]
    stands = standings(judged)
    lines = scoreboard(stands, judged)
    page = offline_page(stands, judged, lines, findings(stands, judged, lines))
    for name in ("paper", "form", "verdict", "comes to"):
        assert f"<label>{name} <select" in page
    verdicts = sum(len(stand.found) for stand in stands)
    assert f"<output>{verdicts} of {verdicts}</output>" in page
    assert 'class="toned blue"' in page
