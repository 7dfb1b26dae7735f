"""The section of a report on final runs."""

import math
from dataclasses import replace

from contrasweep.tuning.reports.answer import answer_section, next_commands
from contrasweep.tuning.reports.comparison import comparison_section
from contrasweep.tuning.reports.report import report
from contrasweep.tuning.reports.sections import footer_lines, study_sections
from contrasweep.tuning.results.final_runs import summarise_runs, summary_rows
from contrasweep.tuning.results.study import read_study
from tests.reports.test_sections import by_title
from tests.studies import Run, WrittenStudy, make_final_record, scored


def test_longer_final_runs_have_tables_of_their_own(write_study, write_final, location, store) -> None:
    write_study([scored([0.5, 0.7])])
    names = ("test.accuracy", "test.untrained_accuracy")
    record = make_final_record(
        "demo-30-epochs-final",
        metrics=names,
        search={"searched": "demo"},
        experiment={"epochs": 30},
        command="contrasweep run demo --epochs 30",
    )
    runs = [
        Run(0, seed, final=dict(zip(names, (0.9 + seed / 1000, 0.5), strict=True)), phase="final")
        for seed in (1, 2, 3)
    ]
    WrittenStudy(location, record).write(*runs)
    found = study_sections(read_study(store, "demo"))
    assert "(accuracy) when trained for 30 epochs, against 0.5" in found[0].text
    short = replace(read_study(store, "demo"), final_rows=[], state="ended")
    assert any("--seeds 5 --epochs 30" in command for command in next_commands(short))
    assert "all training data for 30 epochs; the" in by_title(read_study(store, "demo"))["Final runs"].text
    write_final([(0.7, 0.5)] * 3)
    data = read_study(store, "demo")
    text, final = study_sections(data)[0].text, by_title(data)["Final runs"]
    assert "(accuracy), against 0.5" in text
    assert "all training data; the" in final.text
    assert final.tables[2].title == "Trained for 30 epochs (demo-30-epochs-final)"
    assert final.tables[2].rows[0][:2] == ("fair-cclk, trial 0", "0.9020 ± 0.0010")
    commands = by_title(data)["Reproduce"].text
    assert commands.count("contrasweep run demo --epochs 30") == 1
    ((longer, runs),) = data.other_finals
    from_python = longer.model_copy(update={"command": ""})
    commands = by_title(replace(data, other_finals=[(from_python, runs)]))["Reproduce"].text
    assert "contrasweep run demo --seeds 5 --epochs 30" in commands


def test_a_page_names_the_scores_of_final_runs_as_the_command_does(write_study, store, location) -> None:
    write_study([scored()])
    scores = {"accuracy": 0.9, "colour_mse": 5000.0, "f1": 0.8}
    final = {f"test.{name}": score for name, score in scores.items()}
    record = make_final_record(metrics=[*final])
    WrittenStudy(location, record).write(*(Run(0, n, final=final, phase="final") for n in (1, 2, 3)))
    data = read_study(store, "demo")
    table = by_title(data)["Final runs"].tables[0]
    assert table.columns == (
        "encoder",
        "test accuracy",
        "95 % interval",
        "colour MSE",
        "95 % interval of colour MSE",
        "F1",
        "95 % interval of F1",
        "n",
    )
    assert [*table.columns] == [*summary_rows(summarise_runs(data.final_rows))[0]]
    assert "Student's t" in table.note
    assert "squared 8-bit levels" in table.note


def test_final_runs_of_two_networks_are_beside_their_own_controls(write_study, store, location) -> None:
    write_study([scored(), scored((0.5, 0.8))])
    names = ("test.accuracy", "test.untrained_accuracy")
    runs = [
        Run(trial, seed, final=dict(zip(names, (score, control + seed / 1000), strict=True)), phase="final")
        for trial, score, control in ((0, 0.78, 0.80), (1, 0.79, 0.90))
        for seed in (1, 2, 3)
    ]
    WrittenStudy(location, make_final_record(metrics=names)).write(*runs)
    final = by_title(read_study(store, "demo"))["Final runs"]
    # Neither beats its own; the other network's control is higher than both trained ones.
    assert "did not beat the untrained" in final.text
    drawn = {trace.name: [round(x, 3) for x in trace.x] for trace in final.figures[0].data}
    assert drawn["untrained"] == [0.901, 0.902, 0.903]
    assert drawn["untrained of trial 0"] == [0.801, 0.802, 0.803]


def test_longer_final_runs_begin_with_the_best_trial_of_the_search(
    write_study, write_final, location, store
) -> None:
    write_study([scored([0.5, 0.7]), scored([0.5, 0.8])])
    write_final([(0.7, 0.5)] * 3)
    names, search = ("test.accuracy", "test.untrained_accuracy"), {"searched": "demo"}
    runs = [
        Run(trial, seed, final=dict(zip(names, (0.8 + seed / 100, 0.5), strict=True)), phase="final")
        for trial in (0, 1)
        for seed in (1, 2, 3)
    ]
    WrittenStudy(location, make_final_record("demo-30-epochs-final", metrics=names, search=search)).write(
        *runs
    )
    tables = by_title(read_study(store, "demo"))["Final runs"].tables
    assert [row[0] for row in tables[2].rows] == ["fair-cclk, trial 1", "fair-cclk, trial 0", "untrained"]
    assert tables[3].title.startswith("Test accuracy: fair-cclk, trial 1 minus each baseline")


def test_the_score_of_an_untrained_encoder_is_not_taken_for_that_of_a_run_without_one(
    write_study, write_final, store
) -> None:
    write_study([scored()])
    write_final([(math.nan, 0.5)] * 3)
    data = read_study(store, "demo")
    none = "None of 3 final runs has completed with a test score."
    assert answer_section(data).text.startswith(none)
    assert answer_section(data).tables[0].columns == ("configuration", "val.accuracy")
    assert by_title(data)["Final runs"].text == none
    assert "fewer than 3 final runs (demo 0)" in comparison_section([data, data]).text


def test_final_runs_without_any_score_have_a_page(write_study, write_final, store) -> None:
    write_study([scored()])
    write_final([(math.nan, math.nan)])
    assert "None of 1 final run has completed with a test score." in report(store, ["demo"])


def test_final_runs_that_are_not_counted_are_told(write_study, location, store) -> None:
    write_study([scored()])
    final = {"test.accuracy": 0.8}
    runs = [
        Run(0, 1, final=final, phase="final"),
        Run(0, 2, final={"test.accuracy": math.nan}, phase="final"),
        Run(0, 3, status="failed", error="lost", phase="final"),
        Run(0, 4, status="running", phase="final"),
    ]
    WrittenStudy(location, make_final_record()).write(*runs)
    data = read_study(store, "demo")
    assert "final runs: n = 1, seeds 1" in footer_lines([data], "")[0]
    text = by_title(data)["Final runs"].text
    assert "on fresh seeds (1), trained on" in text
    assert "Not counted: 1 completed without a score, 1 failed, 1 interrupted." in text


def test_final_runs_of_other_epochs_are_pointed_to_where_the_usual_ones_failed(
    write_study, location, store
) -> None:
    write_study([scored()])
    assert "No final run yet: nothing was read" in answer_section(read_study(store, "demo")).text
    search = {"searched": "demo"}
    longer = make_final_record("demo-30-epochs-final", search=search, experiment={"epochs": 30})
    WrittenStudy(location, longer).write(Run(final={"test.accuracy": 0.8}, phase="final"))
    WrittenStudy(location, make_final_record()).write(Run(status="failed", error="lost", phase="final"))
    text = answer_section(read_study(store, "demo")).text
    assert text.startswith(
        "None of 1 final run has completed with a test score. Those of other numbers of epochs are below."
    )


def test_three_runs_with_two_untrained_scores_are_too_few(write_study, store, location) -> None:
    write_study([scored()])
    names = ("test.accuracy", "test.untrained_accuracy")
    scores = [dict(zip(names, pair, strict=False)) for pair in ((0.8, 0.7), (0.8, 0.7), (0.8,))]
    runs = [Run(0, seed, final=one, phase="final") for seed, one in enumerate(scores, 1)]
    WrittenStudy(location, make_final_record(metrics=names)).write(*runs)
    text = by_title(read_study(store, "demo"))["Final runs"].text
    assert text.endswith("Too few to tell: 3 trained, 2 untrained runs.")
