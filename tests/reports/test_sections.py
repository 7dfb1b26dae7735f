"""The sections of reports on studies of different sizes and outcomes."""

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from contrasweep.tuning.reports import sections
from contrasweep.tuning.reports.comparison import comparison_section
from contrasweep.tuning.reports.figures import MAX_POINTS, sampled, thinned
from contrasweep.tuning.reports.final import selected_runs
from contrasweep.tuning.reports.page import Section
from contrasweep.tuning.reports.parallel import MOST_ROWS
from contrasweep.tuning.reports.sections import state_line, study_sections
from contrasweep.tuning.results.candidates import candidates_of
from contrasweep.tuning.results.study import StudyData, read_study
from contrasweep.tuning.results.trials import Curve
from tests.studies import Run, WrittenStudy, make_final_record, make_record, scored

CATEGORICAL = {
    "kernel": {"choice": ["rbf", "cosine", "linear"], "default": "rbf"},
    "flip": {"choice": [True, False], "default": True},
}


def by_title(data: StudyData) -> Mapping[str, Section]:
    return {section.title: section for section in study_sections(data)}


def row_names(figure: go.Figure) -> list[str]:
    """Return the names above the rows of parallel coordinates, from the top."""
    named = [a for a in figure.layout.annotations if a.text.startswith("<b>")]
    return [a.text.removeprefix("<b>").removesuffix("</b>") for a in sorted(named, key=lambda a: a.y)]


def many(count: int, **changes: object) -> list[Run]:
    """Trials that differ in score and value; the best is the middle one."""
    return [
        scored(
            [0.5, 0.5 + 0.4 * (1 - abs(n / count - 0.5))], values={"kernel": "cosine", "optimizer.lr": 0.1}
        )
        for n in range(count)
    ]


def test_one_trial(write_study, store) -> None:
    write_study([scored([0.5, 0.6, 0.7])])
    found = by_title(read_study(store, "demo"))
    assert "Too few to tell how good the search could get: 1 trial completed." in found["Best trials"].text
    assert "Each trial ran with one seed: neighbours" in found["Best trials"].text
    assert "Too few to tell" in found["Searched parameters"].text
    assert found["Searched parameters"].figures == ()
    assert found["Failed trials"].text == "None."
    assert "Pareto front" not in found
    assert "Final runs" not in found


def test_before_the_first_trial(write_study, store) -> None:
    write_study([])
    found = by_title(read_study(store, "demo"))
    assert "No trial has completed yet" in found["Best trials"].text
    assert found["Progress"].figures == []
    assert "contrasweep sweep fair-cclk --data colour-digits" in found["Reproduce"].text


@pytest.mark.parametrize(
    ("command", "best"),
    [
        ("contrasweep run best.yaml --seeds 3", "best.yaml"),
        ("contrasweep run infonce.yaml of-demo.yml", "of-demo.yml"),
        ("contrasweep run one.yaml two.yaml", None),
        ("contrasweep run demo --seeds 3", None),
        ("", None),
    ],
)
def test_the_file_that_final_runs_take_is_written_first(
    write_study, write_final, store, command: str, best: str | None
) -> None:
    write_study([scored([0.5, 0.7])])
    write_final([(0.7, 0.5)], command=command)
    text = by_title(read_study(store, "demo"))["Reproduce"].text
    commands = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    where = f" --results {store.location.uri}"
    written = [] if best is None else [f"contrasweep best demo{where} -o {best}"]
    assert commands[1:] == [*written, command or f"contrasweep run demo --seeds 5{where}"]


def test_all_failed(write_study, store) -> None:
    write_study([scored([0.5, math.nan], "failed", error=f"loss nan at step {n}") for n in range(3)])
    found = by_title(read_study(store, "demo"))
    kinds, each = found["Failed trials"].tables
    # The same error three times: it differs in a number alone.
    assert kinds.rows == [(3, "loss nan at step 0")]
    assert [row[2] for row in each.rows] == [f"loss nan at step {n}" for n in range(3)]
    assert "No trial has completed yet" in found["Best trials"].text


def test_the_best_beside_the_untrained_encoder_and_the_rule(write_study, store) -> None:
    write_study([scored([0.5, 0.6]), scored([0.5, 0.8]), scored([0.5, 0.9], "stopped")])
    best = by_title(read_study(store, "demo"))["Best trials"]
    assert "highest val.accuracy at the last epoch among completed trials" in best.text
    assert "Trial 1 is the best of 2 completed: val.accuracy 0.8, against 0.5 before training." in best.text
    (table,) = best.tables
    assert [row[0] for row in table.rows] == [1, 0, "untrained encoder"]
    assert table.rows[-1][2] == 0.5


def test_training_that_helped_nothing_is_said(write_study, store) -> None:
    write_study([scored([0.8, 0.6])])
    assert (
        "val.accuracy 0.6. Training did not beat the untrained encoder (0.8)."
        in by_title(read_study(store, "demo"))["Best trials"].text
    )


def test_final_runs_with_their_control(write_study, write_final, store) -> None:
    write_study([scored()])
    write_final([(0.90, 0.80), (0.92, 0.82), (0.94, 0.84)])
    final = by_title(read_study(store, "demo"))["Final runs"]
    table, differences = final.tables
    assert table.rows == [
        ("fair-cclk, trial 0", "0.920 ± 0.020", "0.8703 to 0.9697", 3),
        ("untrained", "0.820 ± 0.020", "0.7703 to 0.8697", 3),
    ]
    assert final.text.startswith("The selected configuration (trial 0) on fresh seeds (1, 2, 3)")
    assert [row[:2] for row in differences.rows] == [("untrained", "+0.1 ± 0")]
    assert "Too few" not in final.text


def test_the_final_runs_that_are_compared_are_those_of_the_best_trial_that_has_any(
    write_study, write_final, store
) -> None:
    write_study([scored([0.5, 0.6]), scored([0.5, 0.9]), scored([0.5, 0.8])])
    write_final([(0.6, 0.5)] * 3)
    data = read_study(store, "demo")
    later = [{**row, "trial": 2, "metric.test.accuracy": 0.8} for row in data.final_rows]
    final, control = selected_runs(replace(data, final_rows=[*data.final_rows, *later]))
    assert final is not None
    assert control is not None
    assert final.encoder == "fair-cclk, trial 2"
    assert final.scores["accuracy"].mean == pytest.approx(0.8)
    assert control.scores["accuracy"].mean == 0.5


def test_final_runs_of_the_defaults_are_told_from_those_of_the_best(write_study, store, location) -> None:
    defaults = {"kernel": "rbf", "sigma2": 100.0, "optimizer.lr": 0.1}
    write_study([scored([0.5, 0.7], values=defaults), scored([0.5, 0.8])])
    names = ("test.accuracy", "test.untrained_accuracy")
    runs = [
        Run(trial, seed, final=dict(zip(names, (score + seed / 100, 0.5), strict=True)), phase="final")
        for trial, score in ((0, 0.7), (1, 0.8))
        for seed in (1, 2, 3)
    ]
    WrittenStudy(location, make_final_record(metrics=names)).write(*runs)
    found = study_sections(read_study(store, "demo"))
    (beaten, _) = found[0].tables
    assert [row[::2] for row in beaten.rows] == [
        ("best: trial 1", "0.820 ± 0.010 (n = 3)"),
        ("defaults: trial 0", "0.720 ± 0.010 (n = 3)"),
        ("untrained encoder", "0.5 ± 0 (n = 3)"),
    ]
    final = next(one for one in found if one.title == "Final runs")
    assert final.text.startswith("The selected configuration (trial 1), the defaults (trial 0) on fresh")
    table, differences = final.tables
    assert [row[0] for row in table.rows] == [
        "fair-cclk, trial 1",
        "fair-cclk, trial 0 (the defaults)",
        "untrained",
    ]
    assert differences.title == "Test accuracy: fair-cclk, trial 1 minus each baseline, seed by seed"
    assert [row[0] for row in differences.rows] == ["fair-cclk, trial 0", "untrained"]
    assert "Holm's correction for 2 comparisons" in differences.note
    assert [str(name) for name in dict.fromkeys(trace.name for trace in final.figures[0].data)] == [
        "trial 1",
        "trial 0",
        "untrained",
    ]


def test_two_final_runs_are_too_few(write_study, write_final, store) -> None:
    write_study([scored()])
    write_final([(0.9, 0.8), (0.92, 0.82)])
    assert "Too few to tell: 2 trained" in by_title(read_study(store, "demo"))["Final runs"].text


def test_final_runs_that_lost_to_their_control(write_study, write_final, store) -> None:
    write_study([scored()])
    write_final([(0.7, 0.8)] * 3)
    assert "did not beat the untrained" in by_title(read_study(store, "demo"))["Final runs"].text


def test_the_front_of_accuracy_and_colour(write_study, store) -> None:
    write_study(
        [scored([0.5, score], colour=colour) for score, colour in ((0.9, 50.0), (0.8, 300.0), (0.7, 200.0))]
        + [scored([0.5, 0.99], "stopped", colour=999.0)]
    )
    front = by_title(read_study(store, "demo"))["Pareto front"]
    (table,) = front.tables
    assert [row[:3] for row in table.rows] == [(0, 0.9, 50.0), (1, 0.8, 300.0)]
    control = next(trace for trace in front.figures[0].data if trace.name == "untrained encoder")
    assert (control.x[0], control.y[0]) == (0.5, 10.0)


def test_the_front_of_the_metrics_that_the_study_searched(write_study, store) -> None:
    names = ("val.f1", "val.auc", "val.accuracy")
    scores = [(0.7, 0.6, 0.5), (0.6, 0.7, 0.5), (0.6, 0.6, 0.5), (0.5, 0.5, 0.9), (0.5, 0.5, 0.9)]
    runs = [
        Run(curve={0: dict.fromkeys(names, 0.3)}, final=dict(zip(names, each, strict=True)))
        for each in scores
    ]
    write_study(
        [*runs, replace(runs[0], status="stopped")],
        metrics=(*names, "val.colour_mse"),
        search={"metric": ",".join(names), "rung_metric": "val.f1"},
    )
    front = by_title(read_study(store, "demo"))["Pareto front"]
    (table,) = front.tables
    assert table.columns[:4] == ("trial", *names)
    assert [row[:4] for row in table.rows] == [(n, *scores[n]) for n in (0, 1, 3, 4)]
    assert {row[0] for row in table.rows} == candidates_of(store.trials("demo"), store.study("demo")).front
    assert "colour" not in front.text
    planes = [(figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) for figure in front.figures]
    assert planes == list(itertools.combinations(names, 2))
    for figure, (across, up) in zip(front.figures, itertools.combinations(range(3), 2), strict=True):
        drawn = next(trace for trace in figure.data if trace.name == "Pareto front")
        at = dict(zip(drawn.customdata, zip(drawn.x, drawn.y, strict=True), strict=True))
        assert at == {n: (scores[n][across], scores[n][up]) for n in (0, 1, 3, 4)}
        control = next(trace for trace in figure.data if trace.name == "untrained encoder")
        assert (control.x[0], control.y[0]) == (0.3, 0.3)


def test_one_metric_without_a_colour_error_has_no_front(write_study, store) -> None:
    final = {"val.f1": 0.7, "val.auc": 0.6}
    write_study(
        [Run(final=final)], metrics=tuple(final), search={"metric": "val.f1", "rung_metric": "val.f1"}
    )
    assert "Pareto front" not in by_title(read_study(store, "demo"))


def test_stopped_and_failed_curves_are_marked_and_the_selected_one_stands_out(write_study, store) -> None:
    write_study(
        [
            scored([0.5, 0.7, 0.8]),
            scored([0.5, 0.6], "stopped"),
            scored([0.5, 0.6, math.nan], "failed"),
        ]
    )
    (figure,) = by_title(read_study(store, "demo"))["Learning curves"].figures
    traces = {trace.name.partition(" ")[0]: trace for trace in figure.data}
    assert set(traces) == {"stopped", "completed", "failed", "selected:", "untrained"}
    assert len({traces[name].marker.symbol for name in ("stopped", "completed", "failed")}) == 3
    # The mark of the failed one sits at its last score that is a number.
    assert [bool(size) for size in traces["failed"].marker.size] == [False, True, False, False]
    assert traces["selected:"].line.width > traces["completed"].line.width


def test_categories_only(write_study, store) -> None:
    values = [
        {"kernel": kernel, "flip": flip} for kernel in ("rbf", "cosine", "linear") for flip in (True, False)
    ]
    write_study([scored([0.5, 0.6 + n / 100], values=v) for n, v in enumerate(values)], space=CATEGORICAL)
    (figure,) = by_title(read_study(store, "demo"))["Searched parameters"].figures
    assert row_names(figure) == ["kernel", "flip", "val.ridge_accuracy"]
    assert {"rbf", "cosine", "linear", "True", "False"} <= {a.text for a in figure.layout.annotations}


def test_a_parameter_that_a_trial_does_not_have_is_beside_the_row(write_study, store) -> None:
    rbf = {"kernel": "rbf", "sigma2": 100.0, "optimizer.lr": 0.3}
    write_study([scored([0.5, 0.6 + n / 100], values=rbf) for n in range(4)] + [scored([0.5, 0.9])])
    (figure,) = by_title(read_study(store, "demo"))["Searched parameters"].figures
    best = next(trace for trace in figure.data if trace.name.startswith("best fifth"))
    # Rows: kernel, sigma2, lr, score; the best trial is cosine, without a sigma2, lr 0.1 of 0.01..0.3.
    assert best.x[1] < 0
    assert best.x[2:4] == (pytest.approx((0.1 - 0.01) / 0.29, abs=1e-4), 1.0)
    others = [trace for trace in figure.data if trace.name and trace is not best]
    assert all(trace.x[1] == 0.5 for trace in others)
    assert "unused" in {a.text for a in figure.layout.annotations}


def test_the_parameters_that_tell_good_trials_from_bad_ones_have_the_rows(write_study, store) -> None:
    # Two of seven decide the score: one along its log range, and one, a word, by itself. One never varies.
    space = {f"p{n}": {"uniform": [0.0, 1.0], "default": 0.5} for n in range(5)}
    space |= {"width": {"log": [0.001, 10.0], "default": 1.0}, "word": {"choice": ["a", "b"], "default": "a"}}
    runs = []
    for n in range(24):
        noise = {f"p{k}": (n * (5 + 2 * k) % 24) / 24 for k in range(4)}
        values = {**noise, "p4": 0.5, "width": 10 ** (4 * n / 23 - 3), "word": "b" if n > 11 else "a"}
        runs.append(scored([0.5, 0.6 + n / 100], values=values))
    write_study(runs, space=space)
    section = by_title(read_study(store, "demo"))["Searched parameters"]
    (figure,) = section.figures
    names = row_names(figure)
    assert len(names) == MOST_ROWS + 1
    assert names[-3:] == ["width (log)", "word", "val.ridge_accuracy"]
    assert "p4" not in names
    (told,) = (line for line in section.text.split("\n\n") if "without a row" in line)
    assert set(re.findall(r"p\d\b", told)) == {f"p{n}" for n in range(5)} - set(names)
    assert f"`contrasweep sensitivity demo --results {store.location.uri}` says how surely" in told
    under = {a.text for a in figure.layout.annotations if a.y == names.index("width (log)")}
    assert {"0.001", "0.01", "0.1", "1", "10"} <= under


def test_equal_scores_can_be_drawn(write_study, store) -> None:
    write_study([scored([0.5, 0.7])] * 6)
    assert by_title(read_study(store, "demo"))["Searched parameters"].figures


def test_of_many_trials_a_sample_is_drawn_and_stated(write_study, store, monkeypatch) -> None:
    monkeypatch.setattr(sections, "MAX_CURVES", 20)
    write_study(many(60))
    data = read_study(store, "demo")
    curves = by_title(data)["Learning curves"]
    assert "Drawn: 20 of 60 trials, the 2 best and the others evenly spaced by number." in curves.text
    (figure,) = curves.figures
    drawn = {int(n) for trace in figure.data if trace.customdata is not None for n in trace.customdata}
    assert len(drawn) == 20
    assert {trial.number for trial in data.ranked[:2]} <= drawn
    assert sampled(data, data.trials, 20) == sampled(data, data.trials, 20)
    for limit in range(10, 60):
        drawn_then = [trial.number for trial in sampled(data, data.trials, limit).trials]
        assert len(drawn_then) == len(set(drawn_then)) == limit
    assert sampled(data, data.trials, 60).said == ""


def test_a_long_curve_keeps_its_ends() -> None:
    import numpy as np

    epochs = np.arange(1001.0)
    x, y = thinned(Curve(0, epochs, epochs / 1000))
    assert len(x) == MAX_POINTS
    assert (x[0], x[-1], y[-1]) == (0, 1000, 1.0)


def test_an_interrupted_study_says_how_to_go_on(write_study, store) -> None:
    write_study([scored(), scored(status="running")])
    line = state_line(read_study(store, "demo"))
    assert "interrupted; --resume goes on" in line
    assert "1 of 2 trials are over" in line


def test_a_comparison_warns_where_the_shown_configuration_has_few_final_runs(
    write_study, store, location
) -> None:
    write_study([scored((0.5, 0.7)), scored((0.5, 0.8))])
    names = ("test.accuracy", "test.untrained_accuracy")
    final = dict(zip(names, (0.8, 0.5), strict=True))
    runs = [Run(trial, seed, final=final, phase="final") for trial, seed in ((1, 1), (0, 2), (0, 3), (0, 4))]
    WrittenStudy(location, make_final_record(metrics=names)).write(*runs)
    data = read_study(store, "demo")
    assert "fewer than 3 final runs" in comparison_section([data, data]).text


def test_a_comparison_has_the_differences_of_the_final_runs(write_study, store, location) -> None:
    names = ("test.accuracy", "test.untrained_accuracy")
    for study, gain in (("demo", 0.2), ("other", 0.1)):
        record = make_record(study)
        WrittenStudy(location, record).write(scored((0.5, 0.8)))
        runs = [
            Run(
                0,
                seed,
                final=dict(zip(names, (0.5 + gain + seed**2 / 1000, 0.5), strict=True)),
                phase="final",
            )
            for seed in (1, 2, 3)
        ]
        WrittenStudy(location, make_final_record(f"{study}-final", metrics=names)).write(*runs)
    first, second = (read_study(store, name) for name in ("demo", "other"))
    _, differences = comparison_section([first, second]).tables
    assert differences.title.startswith("Test accuracy: fair-cclk, trial 0 of demo minus each baseline")
    assert [row[:2] for row in differences.rows] == [
        ("fair-cclk, trial 0 of other", "+0.1 ± 0"),
        ("untrained", "+0.2047 ± 0.0040"),
    ]


def test_trials_without_a_score_are_counted_below_the_progress(write_study, store) -> None:
    write_study([scored(), scored(status="stopped"), scored([0.5, math.nan], "failed", error="nan")])
    data = read_study(store, "demo")
    assert "Without a score and a mark: 1 trial." in by_title(data)["Progress"].text
    write_study([scored()], "whole")
    assert "Without a score" not in by_title(read_study(store, "whole"))["Progress"].text
