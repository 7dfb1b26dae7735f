"""The whole page: several studies, a running sweep, and files."""

import os
from pathlib import Path

import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan_sweep import plan_sweep
from contrasweep.tuning.reports.comparison import comparison_section
from contrasweep.tuning.reports.report import report, watch_report, write_report
from contrasweep.tuning.reports.rows import write_rows
from contrasweep.tuning.results.budgets import budget_line
from contrasweep.tuning.results.study import read_study
from contrasweep.tuning.store import Heartbeat, Location, ResultsStore
from tests.studies import PlannedStudy, Run, scored


def test_a_page_says_where_its_numbers_come_from(write_study, write_final, store, tmp_path: Path) -> None:
    write_study([scored(), scored([0.5, 0.6], "stopped")])
    write_final([(0.9, 0.8)])
    write_report(store, ["demo"], tmp_path / "demo.html")
    html = (tmp_path / "demo.html").read_text()
    for told in (
        "n = 2 trials, search seeds 0; final runs: n = 1, seeds 1",
        "Selection: val.accuracy, by val.ridge_accuracy after every epoch; sampler tpe, scheduler asha",
        "contrasweep 0.1.0, torch 2.9; revision 0123abc",
        "1 core and 0 GPUs a trial",
        "Reproduce",
    ):
        assert told in html
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("_")] == []


def test_a_damaged_file_is_named(write_study, store, tmp_path: Path) -> None:
    write_study([scored(), scored()])
    damaged = min((tmp_path / "results" / "trials" / "study=demo").glob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    assert f"Left out, damaged: {damaged}" in report(store, ["demo"])


def test_a_sweep_from_python_gets_its_command(store, tmp_path: Path) -> None:
    asked = {"trials": 9, "epochs": 2, "concurrency": 1, "seeds": 2, "keep_weights": 3, "name": "demo"}
    plan = plan_sweep("fair-cclk", "colour-digits", results=tmp_path / "results", **asked)
    PlannedStudy(plan).write(scored(values={}))
    html = report(store, ["demo"])
    command = "contrasweep sweep fair-cclk --data colour-digits --trials 9 --metric val.accuracy"
    assert (
        f"{command} --sampler curves --scheduler asha --seeds 2 --epochs 2 --concurrency 1 --keep-weights 3"
        in html
    )
    assert "The sweep was started from Python; this is the same as a command." in html


def test_a_sweep_from_python_with_a_space_of_its_own_has_no_command(write_study, store) -> None:
    write_study([scored()], command="", experiment={"epochs": 3})
    html = report(store, ["demo"])
    assert "with a search space or with configurations of its own" in html
    assert "contrasweep sweep fair-cclk --data" not in html
    assert "contrasweep run demo" in html


def test_equal_budgets_are_stated(write_study, store) -> None:
    write_study([scored()] * 2, "one")
    write_study([scored()] * 2, "two", method="infonce")
    studies = [read_study(store, name) for name in ("one", "two")]
    assert (
        budget_line([data.record for data in studies])
        == "Equal budgets: 2 trials of at most 2 epochs each, scheduler asha."
    )
    html = report(store, ["one", "two"])
    assert "2 studies compared" in html
    assert "one: learning curves" in html
    assert "Too few to tell the studies apart: fewer than 3 final runs (one 0, two 0)" in html


def test_unequal_budgets_and_datasets_are_stated(write_study, write_final, store) -> None:
    write_study([scored()] * 2, "one")
    write_study([scored()] * 3, "two", dataset="digits")
    write_final([(0.9, 0.8)] * 3, of="one")
    section = comparison_section([read_study(store, name) for name in ("one", "two")])
    assert "budgets differ" in section.text
    assert "one 2 trials of at most 2 epochs; two 3 trials" in section.text
    assert "Several datasets (colour-digits, digits)" in section.text
    assert "final runs (two 0)" in section.text
    first, second = section.tables[0].rows
    assert first[-2:] == ("0.9 ± 0 (n = 3)", "0.8 ± 0")
    assert second[-2:] == (None, None)


def test_wrong_studies(write_study, store) -> None:
    write_study([scored()])
    with pytest.raises(InputError, match="each study once"):
        report(store, ["demo", "demo"])
    with pytest.raises(InputError, match="given no study; allowed: one or more"):
        report(store, [])


@pytest.mark.parametrize("name", ["demo.pdf", "a-file/demo.html", "folder.html"])
def test_a_file_that_cannot_be_written_is_refused(write_study, store, tmp_path: Path, name: str) -> None:
    write_study([scored()])
    (tmp_path / "folder.html").mkdir()
    (tmp_path / "a-file").write_text("")
    with pytest.raises(InputError, match="-o"):
        write_report(store, ["demo"], tmp_path / name)


def test_a_page_that_cannot_be_replaced_leaves_the_old_one(write_study, store, tmp_path, monkeypatch) -> None:
    write_study([scored()])
    page = tmp_path / "demo.html"
    page.write_text("old")

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(store, ["demo"], page)
    assert page.read_text() == "old"
    assert [path.name for path in tmp_path.glob("*demo.html*")] == ["demo.html"]


def test_watching_ends_with_the_sweep(write_study, location: Location, tmp_path: Path) -> None:
    write_study([scored(), scored(status="running")])
    page, seen = tmp_path / "demo.html", []
    driver = Heartbeat(location, "demo", interval=3600)
    driver.__enter__()

    def wait(seconds: float) -> None:
        seen.append((seconds, page.read_text()))
        if len(seen) == 2:
            driver.__exit__(None, None, None)

    assert watch_report(ResultsStore(location), ["demo"], page, 7, wait) == 3
    assert [seconds for seconds, _ in seen] == [7, 7]
    assert all('http-equiv="refresh" content="7"' in html for _, html in seen)
    assert "The sweep is running" in seen[0][1]
    last = page.read_text()
    assert "The sweep has ended" in last
    assert 'http-equiv="refresh"' not in last


def test_ctrl_c_leaves_a_page_that_stands_still(write_study, location: Location, tmp_path: Path) -> None:
    write_study([scored(status="running")])

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    with Heartbeat(location, "demo", interval=3600), pytest.raises(KeyboardInterrupt):
        watch_report(ResultsStore(location), ["demo"], tmp_path / "demo.html", 7, interrupt)
    assert 'http-equiv="refresh"' not in (tmp_path / "demo.html").read_text()


def test_too_short_a_watch(write_study, store, tmp_path: Path) -> None:
    write_study([scored()])
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match="--watch"):
            watch_report(store, ["demo"], tmp_path / "demo.html", seconds, lambda _: None)


def test_rows_as_files(write_study, write_final, store, tmp_path: Path) -> None:
    write_study([scored(), scored([0.5], "failed", error='loss, "nan"')])
    write_final([(0.9, 0.8)])
    written = write_rows(store, "demo", tmp_path / "rows")
    names = [
        f"demo{part}-{kind}.{end}"
        for part in ("", "-final")
        for kind in ("trials", "epochs")
        for end in ("csv", "parquet")
    ]
    assert sorted(path.name for path in written) == sorted(names)
    assert pq.read_table(tmp_path / "rows" / "demo-trials.parquet").equals(store.trials("demo"))
    table = pa_csv.read_csv(tmp_path / "rows" / "demo-trials.csv")
    assert table["trial"].to_pylist() == [0, 1]
    assert table["error"].to_pylist()[1] == 'loss, "nan"'
    assert table["metric.val.accuracy"].to_pylist()[0] == 0.7
    assert pa_csv.read_csv(tmp_path / "rows" / "demo-epochs.csv").num_rows == 4


def test_scores_that_do_not_compare_are_drawn_in_figures_of_their_own(write_study, store) -> None:
    smaller = {"metric": "val.alignment", "rung_metric": "val.alignment"}
    runs = [Run(curve={0: {"val.alignment": 2.0}}, final={"val.alignment": 1.0})]
    write_study([scored()], "one")
    write_study([scored()], "two", method="infonce")
    write_study([scored()], "three", dataset="digits")
    write_study(runs, "four", search=smaller, metrics=("val.alignment",))
    names = ("one", "two", "three", "four")
    figures = comparison_section([read_study(store, name) for name in names]).figures
    drawn = [[trace.name for trace in figure.data] for figure in figures]
    assert drawn == [["one", "two"], ["three"], ["four"]]
    assert [figure.layout.title.text for figure in figures] == [
        "Best so far, on colour-digits",
        "Best so far, on digits",
        "Best so far, on colour-digits",
    ]
    assert figures[2].layout.yaxis.title.text == "best final val.alignment"
    assert len({trace.line.color for figure in figures for trace in figure.data}) == 4
