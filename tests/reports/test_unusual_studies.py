"""What a page claims of studies without a best trial, an untrained score or a single metric."""

import math
from dataclasses import replace

import pytest

from contrasweep.tuning.reports import sections
from contrasweep.tuning.reports.comparison import comparison_section
from contrasweep.tuning.reports.figures import better_in_words, draw_front, front_of
from contrasweep.tuning.reports.sections import footer_lines, state_line
from contrasweep.tuning.results.study import read_study
from tests.reports.test_sections import by_title
from tests.studies import Run, scored

TRADED = ("val.alignment", "val.rankme")


@pytest.fixture
def traded(write_study):
    """Write a study of alignment, which is minimised, and RankMe; trial 4 is beaten by trial 1."""
    scores = [(1.0, 10.0), (2.0, 20.0), (1.5, 12.0), (0.5, 5.0), (2.5, 8.0)]
    start = dict.fromkeys(TRADED, 3.0)
    runs = [
        Run(curve={0: start, 1: final}, final=final, values={"kernel": "cosine", "optimizer.lr": 0.1})
        for final in (dict(zip(TRADED, each, strict=True)) for each in scores)
    ]
    search = {"metric": ",".join(TRADED), "rung_metric": "val.alignment"}
    return write_study(runs, "traded", metrics=TRADED, search=search)


def test_only_lines_that_are_there_are_explained(write_study, store) -> None:
    write_study([scored([0.5, 0.6], "stopped")], "stopped")
    write_study([replace(scored([0.5, 0.6]), curve={1: {"val.ridge_accuracy": 0.6}})], "no-control")
    told = {name: by_title(read_study(store, name))["Progress"].text for name in ("stopped", "no-control")}
    assert "The line is" not in told["stopped"]
    assert "The dashed line is the untrained encoder." in told["stopped"]
    assert "The line is the best final val.accuracy" in told["no-control"]
    assert "dashed" not in told["no-control"]
    assert "of trials that did not complete, the mark is its last value" in told["no-control"]


def test_trials_that_completed_without_a_number_have_completed(write_study, store) -> None:
    write_study([scored([math.nan, math.nan])])
    found = by_title(read_study(store, "demo"))
    why = "No completed trial has a number for val.accuracy"
    assert f"{why}: there is no best configuration." in found["In short"].text
    assert f"{why}, so there is no best one." in found["Best trials"].text


def test_a_metric_that_only_stops_trials_is_not_taken_for_the_goal(write_study, store) -> None:
    runs = [
        Run(
            curve={1: {"val.ridge_accuracy": 0.9 - n / 10, "val.rankme": 5.0 + n}},
            final={"val.accuracy": 0.9 - n / 10},
            status="completed" if n else "stopped",
            values={"kernel": "cosine", "optimizer.lr": 0.1},
        )
        for n in range(5)
    ]
    metrics = ("val.ridge_accuracy", "val.accuracy", "val.rankme")
    search = {"asha_metric": "val.rankme", "rung_metric": "val.rankme"}
    write_study(runs, metrics=metrics, search=search)
    found = by_title(read_study(store, "demo"))
    stopped = found["Progress"].figures[0].data[0]
    assert (stopped.name, stopped.y) == ("stopped: last val.ridge_accuracy", (0.9,))
    assert "val.rankme decides which trials are stopped early." in found["Progress"].text
    (figure,) = found["Searched parameters"].figures
    assert {trace.name: trace.customdata[0] for trace in figure.data}["best fifth: 0.9 to 0.9"] == 0
    assert found["Learning curves"].figures[0].layout.yaxis.title.text == "val.rankme"
    write_study(runs[1:], "whole", metrics=metrics, search={**search, "scheduler": "none"})
    assert "are stopped early" not in by_title(read_study(store, "whole"))["Progress"].text


def test_one_trial_is_over(write_study, store) -> None:
    write_study([scored()])
    assert "1 of 1 trial is over" in state_line(read_study(store, "demo"))


def test_the_order_and_the_goals_of_several_metrics_are_told(traded, write_study, store) -> None:
    data = read_study(store, traded)
    order = "trials on the Pareto front come first, then the others, both by the first metric."
    assert order in by_title(data)["Best trials"].text
    assert any(
        line.startswith("Selection: val.alignment and val.rankme, by") for line in footer_lines([data], "")
    )
    write_study([scored()], "one")
    one = read_study(store, "one")
    assert order not in by_title(one)["Best trials"].text
    section = comparison_section([one, data])
    goals = "Several goals (val.accuracy; val.alignment and val.rankme): each row of the table has its own."
    assert goals in section.text
    table = section.tables[0]
    assert [row[table.columns.index("goal")] for row in table.rows] == [
        "val.accuracy",
        "val.alignment and val.rankme",
    ]
    assert "validation scores are those of the first" in table.note
    assert "those of the first" not in comparison_section([one, one]).tables[0].note


def test_the_stairs_of_a_front_run_through_scores_that_a_trial_reaches(traded, store) -> None:
    front = front_of(read_study(store, traded))
    assert front is not None
    (figure,) = draw_front(front, front.others)
    stairs = next(trace for trace in figure.data if trace.name == "Pareto front")
    points = list(zip(stairs.x, stairs.y, strict=True))
    assert points == [(0.5, 5.0), (1.0, 10.0), (1.5, 12.0), (2.0, 20.0)]
    # With "hv", a step goes across and then up: (1.0, 5.0), say, which (0.5, 5.0) beats.
    assert stairs.line.shape == "hv"


def test_the_direction_of_each_metric_is_told_and_decides_the_fifths(traded, store) -> None:
    found = by_title(read_study(store, traded))
    # A smaller score is "below" that of the untrained encoder, which must not read as worse.
    assert "val.alignment (smaller is better) 0.5" in found["In short"].text
    better = "smaller is better in val.alignment, larger in the other"
    assert f"By val.alignment, val.rankme: {better}." in found["Pareto front"].text
    assert found["Pareto front"].figures[0].layout.title.text == f"The trade: {better}"
    (figure,) = found["Searched parameters"].figures
    assert "coloured by val.alignment from 2.5 to 0.5" in figure.layout.meta["alt"]
    by_band = {trace.name: trace.customdata[0] for trace in figure.data}
    assert (by_band["worst fifth: 2.5 to 2.5"], by_band["best fifth: 0.5 to 0.5"]) == (4, 3)
    assert better_in_words(("val.alignment", "val.accuracy", "val.f1"), "all") == f"{better}s"
    assert better_in_words(("val.accuracy", "val.f1"), "both") == "larger is better in both"


def test_of_many_trials_behind_the_front_a_sample_is_drawn_and_all_are_counted(
    write_study, store, monkeypatch
) -> None:
    monkeypatch.setattr(sections, "MAX_FRONT", 4)
    write_study([scored([0.5, 0.6 + n / 100], colour=float(n)) for n in range(11)])
    section = by_title(read_study(store, "demo"))["Pareto front"]
    assert "Drawn: the front, and 4 of the 10 other trials." in section.text
    (figure,) = section.figures
    assert figure.data[0].customdata == (0, 3, 6, 9), "evenly spaced by number"
    assert figure.layout.meta["alt"].startswith("1 of 11 completed trials are on the Pareto front")


def test_long_tables_say_how_many_rows_they_leave_out(write_study, store, monkeypatch) -> None:
    monkeypatch.setattr(sections, "MAX_ROWS", 2)
    completed = [scored([0.5, 0.6 + n / 100], colour=300.0 - n) for n in range(12)]
    failed = [scored([0.5], "failed", error=f"{n} lost") for n in range(3)]
    write_study([*completed, scored([0.5, 0.9], "stopped"), *failed])
    found = by_title(read_study(store, "demo"))
    (best,) = found["Best trials"].tables
    assert best.columns[:4] == ("trial", "epochs", "val.accuracy", "val.colour_mse")
    assert [row[0] for row in best.rows] == [*range(11, 1, -1), "untrained encoder"]
    assert best.rows[-1][:4] == ("untrained encoder", None, 0.5, 10.0)
    assert best.note == "The 10 best; 2 more completed."
    (front,) = found["Pareto front"].tables
    assert ([row[0] for row in front.rows], front.note) == ([11, 10], "The first 2; 10 more.")
    kinds, each = found["Failed trials"].tables
    assert (kinds.rows, [row[0] for row in each.rows]) == ([(3, "0 lost")], [13, 14])
    assert each.note.startswith("The first 2; `contrasweep show demo")


def test_only_trials_that_ran_at_once_can_take_another_path(write_study, store) -> None:
    for slots in (1, 3):
        name = write_study([scored()], f"slots-{slots}", search={"concurrency": slots, "trials": 4})
        text = by_title(read_study(store, name))["Reproduce"].text
        assert ("3 trials ran at once: " in text) == ("--concurrency 1 always" in text) == (slots == 3)
