"""The section that compares studies: its table, its lines, and what makes the comparison unequal."""

from contrasweep.tuning.reports.comparison import comparison_section
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.store import Heartbeat
from tests.studies import Run, WrittenStudy, make_final_record, scored


def test_each_study_has_its_best_beside_its_untrained_encoder(write_study, store) -> None:
    write_study([scored([0.4, 0.6]), scored([0.4, 0.9], "stopped"), scored([0.4, 0.5])], "one")
    write_study([scored([0.5, 0.8])], "two", search={"trials": 3})
    write_study([scored([0.5], "failed", error="lost")], "none")
    table = comparison_section([read_study(store, name) for name in ("one", "two", "none")]).tables[0]
    columns = ("study", "trials", "epochs trained", "best, validation", "untrained, validation")
    places = [list(table.columns).index(name) for name in columns]
    assert [tuple(row[place] for place in places) for row in table.rows] == [
        ("one", "3 of 3", 3, 0.6, 0.4),
        ("two", "1 of 3", 1, 0.8, 0.5),
        ("none", "1 of 1", 0, None, None),
    ]


def test_the_best_so_far_reaches_the_last_trial(write_study, store) -> None:
    scores = (0.6, 0.8, 0.7, 0.7)
    write_study([scored([0.5, score]) for score in scores], "one")
    (figure,) = comparison_section([read_study(store, "one")]).figures
    (line,) = figure.data
    assert (line.x, line.y, line.line.shape) == ((0, 1, 3), (0.6, 0.8, 0.8), "hv")


def test_a_title_has_the_name_of_a_dataset_as_it_is_written(write_study, store) -> None:
    path = "/a/rather/long/path/to/images"
    # No dataset is called so here: a study may come from a machine with other plug-ins.
    for name, dataset in (("one", "digits"), ("two", "folder:path=a<b>&c"), ("three", f"folder:path={path}")):
        write_study([scored()], name, dataset=dataset)
    figures = comparison_section([read_study(store, name) for name in ("one", "two", "three")]).figures
    assert [figure.layout.title.text for figure in figures] == [
        "Best so far, on digits",
        # Plotly reads this as the name; "<b>" would make the rest of the title bold.
        "Best so far, on folder:path=a&lt;b&gt;&amp;c",
        "Best so far, on folder:path…th/to/images",
    ]
    assert path in figures[2].layout.meta["alt"], "a reader who cannot see the figure has the whole name"


def test_studies_that_have_not_ended_are_named(write_study, store, location) -> None:
    for name in ("ended", "cut-off"):
        write_study([scored()], name)
    with Heartbeat(location, "ended", interval=3600):
        pass
    text = comparison_section([read_study(store, name) for name in ("ended", "cut-off")]).text
    assert "Not ended: cut-off." in text


def test_final_runs_of_different_lengths_are_told(write_study, store, location) -> None:
    for name, epochs in (("one", 2), ("two", 30)):
        write_study([scored()], name)
        final = f"{name}-final" if epochs == 2 else f"{name}-{epochs}-epochs-final"
        record = make_final_record(final, search={"searched": name}, experiment={"epochs": epochs})
        runs = [Run(0, seed, final={"test.accuracy": 0.8}, phase="final") for seed in (1, 2, 3)]
        WrittenStudy(location, record).write(*runs)
    both = [read_study(store, name) for name in ("one", "two")]
    told = "The final runs train for different numbers of epochs (one 2; two 30)."
    assert told in comparison_section(both).text
    assert "different numbers of epochs" not in comparison_section(both[:1]).text


def test_final_runs_on_different_datasets_have_no_differences(write_study, store, location) -> None:
    for name, dataset in (("one", "colour-digits"), ("two", "digits"), ("three", "colour-digits")):
        write_study([scored()], name, dataset=dataset)
        record = make_final_record(f"{name}-final", dataset=dataset)
        runs = [Run(0, seed, final={"test.accuracy": 0.8}, phase="final") for seed in (1, 2, 3)]
        WrittenStudy(location, record).write(*runs)
    one, two, three = (read_study(store, name) for name in ("one", "two", "three"))
    assert len(comparison_section([one, three]).tables) == 2
    assert len(comparison_section([one, two]).tables) == 1
