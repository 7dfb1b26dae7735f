"""`contrasweep tables` and `contrasweep table`: the list, the runs, the output, the errors."""

import json
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

import contrasweep.tuning.planning.resources as resources
import contrasweep.tuning.ray.final_driver as driver
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.store import ResultsStore
from contrasweep.tuning.tables.collect import StoredRuns, collect
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.results import read_results, save_results
from contrasweep.tuning.trials.trial import TrialReport
from tests.tables.stored import score, store_runs

Run = Callable[..., Result]
SAVED = Path(__file__).parents[2] / "docs" / "reproduction" / "results"
QUICK = plan_table(load_table("cclk-t3"), scale="quick")


def test_tables_lists_all_with_what_they_need(run: Run) -> None:
    rows = {row["table"]: row for row in json.loads(run("tables", "--json").stdout)}
    assert len(rows) == 70
    assert rows["cclk-t3"]["state"] == "data missing"
    assert rows["cclk-t3"]["data"] == "colormnist (not here)"
    assert rows["cclk-t2a"]["state"] == "data missing"
    assert "cub (not here)" in rows["cclk-t2a"]["data"]
    assert rows["cacr-t5"]["state"] == "cannot run"
    assert "COCO" in rows["cacr-t5"]["why"]


def test_tables_fit_a_narrow_terminal(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("tables").output.splitlines()
    start = next(i for i, line in enumerate(lines) if line.strip().startswith("fairkl-t4"))
    entry = " ".join(line.strip() for line in lines[start : start + 5])
    assert "Corrupted CIFAR-10 at four bias-conflicting ratios" in entry
    assert "data missing · not here: corrupted-cifar10 (4 forms), bffhq" in entry
    assert "0 of 0" not in entry


def test_tables_tells_how_far_each_is(run: Run) -> None:
    store_runs(QUICK, Path("results"), score, seeds=range(1, 3))
    rows = {row["table"]: row for row in json.loads(run("tables", "--scale", "quick", "--json").stdout)}
    assert (rows["cclk-t3"]["state"], rows["cclk-t3"]["done"]) == ("runs here", "6 of 15 runs")
    assert rows["cacr-t7"]["state"] == "no quick form"
    assert rows["cclk-t3"]["cost"] == "not measured"
    store_runs(QUICK, Path("results"), score, seeds=range(3, 6))
    shown = run("tables", "--scale", "quick").output
    assert "done · cost not measured" in shown
    assert "?" not in shown


def test_a_dry_run_refuses_a_device_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "available_gpus", lambda: 0)
    refused = run("table", "cclk-t3", "--scale", "quick", "--dry-run", "--device", "cuda")
    assert refused.exit_code == 2
    assert "no GPU that torch can use" in refused.output


def test_a_dry_run_writes_no_file_and_a_table_has_one_format(run: Run) -> None:
    for refused, why in (
        (("--dry-run", "-o", "table.md"), "--dry-run writes no file; given -o"),
        (("--no-run", "--json", "--format", "csv"), "--json and --format csv: give one of them"),
    ):
        found = run("table", "cclk-t3", *refused)
        assert (found.exit_code, why in found.output) == (2, True)


def test_a_dry_run_shows_every_cell_and_starts_nothing(run: Run, tmp_path: Path) -> None:
    found = json.loads(run("table", "cclk-t3", "--scale", "quick", "--dry-run", "--json").stdout)
    assert (found["runs"], len(found["cells"])) == (15, 6)
    assert found["cells"][0]["study"] == "table-cclk-t3-quick-infonce-colour-digits"
    assert "15 final runs, 5 of each cell" in run("table", "cclk-t3", "--scale", "quick", "--dry-run").output
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_counts_the_cells_whose_data_are_not_here(run: Run) -> None:
    told = "0 here, 0 missing; not counted: 2 cells whose data are not here"
    assert (
        told
        in run(
            "table", "cclk-t3", "--row", "infonce", "--column", "acc", "--column", "mse", "--dry-run"
        ).output
    )
    assert "not counted" not in run("table", "cclk-t3", "--scale", "quick", "--dry-run").output


def test_what_is_stored_is_shown_without_a_run(run: Run, tmp_path: Path) -> None:
    store_runs(QUICK, tmp_path / "results", score, seeds=range(1, 3))
    arguments = ("table", "cclk-t3", "--scale", "quick", "--no-run")
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    assert "| FairCCLK (ours) | 86.4 ± 0.9 | 81.5 ± 0.7 (2) | 2 of 5 runs done |" in result.output.replace(
        " |  | 2", " | 2"
    )
    assert "undecided" in result.output
    for name in ("latex", "csv"):
        written = run(*arguments, "--format", name, "-o", f"out/{name}")
        assert f"Wrote out/{name}" in written.output
        assert (tmp_path / "out" / name).read_text()
    assert run(*arguments, "-o", "row.tex").exit_code == 0
    assert (tmp_path / "row.tex").read_text() == (tmp_path / "out" / "latex").read_text()
    found = json.loads(run(*arguments, "--json").stdout)
    assert [claim["verdict"] for claim in found["claims"]][:2] == ["undecided", "not re-testable"]
    assert run(*arguments, "--save", "kept").exit_code == 0
    kept = tmp_path / "kept" / "cclk-t3.quick.parquet"
    before = kept.read_bytes()
    # With a results folder that lacks the runs, the file's are shown, and it keeps its content.
    again = run(*arguments, "--save", "kept", "--results", "elsewhere")
    assert "81.5 ± 0.7 (2)" in again.output
    assert kept.read_bytes() == before
    assert "nothing was measured" in run(*arguments, "--save", "new", "--results", "elsewhere").output
    assert not (tmp_path / "new").exists()


def test_a_dry_run_says_what_is_stored_and_what_the_rest_costs(run: Run, tmp_path: Path) -> None:
    arguments = ("table", "cclk-t3", "--scale", "quick", "--dry-run")
    nothing = json.loads(run(*arguments, "--json").stdout)
    assert (nothing["stored"], nothing["missing"], nothing["seconds_missing"]) == (0, 15, None)
    assert "5 of each cell: 0 here, 15 missing; cost on one core: not measured" in run(*arguments).output
    store_runs(QUICK, tmp_path / "results", score, seeds=range(1, 3))
    found = json.loads(run(*arguments, "--json").stdout)
    assert (found["runs"], found["stored"], found["missing"]) == (15, 6, 9)
    # A stored run of 20 epochs took 8 s.
    assert found["seconds_missing"] == pytest.approx(9 * 8.0)
    told = "6 here, 9 missing; cost on one core: 1.2 min, by the time that stored runs took"
    assert told in run(*arguments).output
    one = json.loads(run(*arguments, "--json", "--seeds", "2").stdout)
    assert (one["runs"], one["stored"], one["missing"], one["seconds_missing"]) == (6, 6, 0, 0.0)


def test_rows_that_do_not_beat_the_untrained_encoder_are_named(run: Run, tmp_path: Path) -> None:
    arguments = ("table", "cclk-t3", "--scale", "quick", "--no-run")
    below = {"infonce": 0.4, "fair-infonce": 0.7, "fair-cclk": 0.8}
    store_runs(QUICK, tmp_path / "some", lambda cell, seed: below[cell.row])
    said = " ".join(run(*arguments, "--results", "some").stderr.split())
    told = "Warning: training did not beat the untrained encoder in"
    assert f"{told} Top-1 Accuracy (InfoNCE), MSE (InfoNCE)." in said
    store_runs(QUICK, tmp_path / "all", lambda cell, seed: 0.5)
    said = " ".join(run(*arguments, "--results", "all").stderr.split())
    assert f"{told} Top-1 Accuracy (all rows), MSE (all rows)." in said
    store_runs(QUICK, tmp_path / "none", score)
    assert "did not beat" not in run(*arguments, "--results", "none").output


def test_one_column_runs_alone_and_the_others_are_shown_and_kept(run: Run, tmp_path: Path) -> None:
    store_runs(QUICK, tmp_path / "results", score)
    plan = plan_table(load_table("cclk-t7"), columns=["mse"], scale="quick")
    assert {cell.column for cells in plan.studies.values() for cell in cells} == {"mse"}
    arguments = ("table", "cclk-t3", "--scale", "quick", "--no-run", "--save", "kept")
    assert run(*arguments).exit_code == 0
    kept = tmp_path / "kept" / "cclk-t3.quick.parquet"
    before = kept.read_bytes()
    assert run(*arguments, "--column", "mse").exit_code == 0
    assert kept.read_bytes() == before


def test_a_column_that_measures_nothing_fails_whatever_the_others_have(run: Run, tmp_path: Path) -> None:
    plan = plan_table(load_table("cclk-t7"), scale="quick")
    store_runs(plan, tmp_path / "results", lambda cell, seed: 0.5)
    assert run("table", "cclk-t7", "--scale", "quick").exit_code == 0
    result = run("table", "cclk-t7", "--scale", "quick", "--column", "cub")
    assert result.exit_code == 1, result.output
    assert "nothing of table cclk-t7 was measured: cub: " in " ".join(result.output.split())


def test_an_output_that_cannot_be_written_is_refused_and_a_device_is_not(run: Run, tmp_path: Path) -> None:
    store_runs(QUICK, tmp_path / "results", score)
    arguments = ("table", "cclk-t3", "--scale", "quick", "--no-run")
    assert run(*arguments, "-o", "/dev/null").exit_code == 0
    assert run(*arguments, "-o", f"{sys.executable}/t.md").exit_code == 2


def test_what_is_printed_for_machines_is_alone_on_its_stream(run: Run, tmp_path: Path) -> None:
    store_runs(QUICK, tmp_path / "results", score)
    arguments = ("table", "cclk-t3", "--scale", "quick", "--no-run", "--save", "kept")
    result = run(*arguments, "--json")
    assert json.loads(result.stdout)["table"] == "cclk-t3"
    assert "Scores: kept" in result.stderr
    assert run(*arguments, "--json", "-o", "out.json").stdout == ""
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads(result.stdout)


def test_a_figure_of_clusterings_says_whether_their_file_is_here(run: Run) -> None:
    rows = {row["table"]: row for row in json.loads(run("tables", "--json").stdout)}
    assert rows["cl-infonce-fig4a"]["state"] == "data missing"
    assert rows["cl-infonce-fig4a"]["why"]


def test_each_row_of_a_searched_table_says_that_it_searches(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    import contrasweep.tuning.tables.run as running
    from contrasweep.tuning.progress.display import Shown

    shown: list[str] = []

    def two_rows(*_: Any, show: Any, **more: Any) -> dict[str, str]:
        for study, done in (("one", 0), ("two", 5)):
            show(running.TableProgress(study, done, 10, searching=True))
        return {}

    monkeypatch.setattr(running, "run_table", two_rows)
    monkeypatch.setattr(Shown, "_show", lambda line, text, now, **_: shown.append(text(now)))
    run("table", "cclk-t5a", "--tune", "--scale", "quick")
    assert [text.partition(" ·")[0] for text in shown] == [
        "one: searching, 0/10 final runs",
        "two: searching, 5/10 final runs",
    ]


def test_a_quick_table_continues_after_an_interruption_and_is_judged(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = tuple(cell for cell in QUICK.cells if cell.row == "fair-cclk")
    done = tuple(cell for cell in QUICK.cells if cell not in begun)
    store_runs(replace(QUICK, cells=done), tmp_path / "results", score)
    store_runs(replace(QUICK, cells=begun), tmp_path / "results", score, seeds=range(1, 5))
    trained: list[tuple[str, int]] = []
    run_one = driver.run_one

    def counted(request: Any, tell: Any = None) -> Any:
        trained.append((request.study.method, request.experiment.seed))
        return run_one(request)

    monkeypatch.setattr(driver, "run_one", counted)
    result = run("table", "cclk-t3", "--scale", "quick", "--concurrency", "1")
    assert result.exit_code == 0, result.output
    assert trained == [("fair-cclk", 5)]
    assert "QUICK" in result.output
    assert "(5)" in result.output
    assert "untrained encoder (control)" in result.output
    rows = ResultsStore(tmp_path / "results").trials("table-cclk-t3-quick-fair-cclk-colour-digits-final")
    real = rows.to_pylist()[-1]
    assert real["status"] == "completed"
    assert 0.1 < real["metric.test.accuracy"] < 1
    # Now nothing is missing.
    trained.clear()
    again = run("table", "cclk-t3", "--scale", "quick", "--concurrency", "1")
    assert again.exit_code == 0
    assert trained == []
    assert "Nothing was left to train: the store held all" in again.output
    assert "Nothing was left to train" not in result.output


def test_a_table_goes_on_where_another_machine_stopped(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other machine has all but one run of each of two rows; of one of these, a column lacks one more."""
    store_runs(QUICK, tmp_path / "there", score)
    arguments = ("table", "cclk-t3", "--scale", "quick", "--save", "kept")
    assert run(*arguments, "--no-run", "--results", "there").exit_code == 0
    path = tmp_path / "kept" / "cclk-t3.quick.parquet"
    whole = read_results(path)
    gone = {("fair-cclk", "acc", 5), ("fair-cclk", "mse", 5), ("infonce", "acc", 5), ("infonce", "mse", 4)}
    left = tuple(one for one in whole.values if (one.row, one.column, one.seed) not in gone)
    save_results(replace(whole, values=left), tmp_path / "kept")
    told = "12 here, 3 missing; cost on one core: 0.4 min, by the time that stored runs took"
    assert told in " ".join(run(*arguments, "--dry-run").output.split())
    save_results(replace(whole, values=left, provenance={"device": "cpu, cuda"}), tmp_path / "kept")
    told = "cost, one after the other: 0.4 min, by the time that stored runs took on cpu, cuda"
    assert told in " ".join(run(*arguments, "--dry-run").output.split())
    # Rows and columns that the table had once are shown, and cost nothing.
    older = replace(left[0], row="earlier", untrained=0.9), replace(left[0], column="earlier")
    cells = {(one.row, one.column): whole.cells[left[0].row, left[0].column] for one in older}
    save_results(replace(whole, values=(*older, *left), cells={**whole.cells, **cells}), tmp_path / "kept")
    assert "12 here, 3 missing" in run(*arguments, "--dry-run").output
    shown = run(*arguments, "--no-run")
    assert (shown.exit_code, "earlier" in shown.output) == (0, True)
    save_results(replace(whole, values=left), tmp_path / "kept")
    trained: list[tuple[str, int]] = []
    more = tuple(replace(one, seed=9) for one in left if one.seed == 1)

    def at_once(request: Any, tell: Any = None) -> Any:
        trained.append((request.study.method, request.experiment.seed))
        # Meanwhile another command adds to the file.
        save_results(replace(whole, values=(*left, *more)), tmp_path / "kept")
        return TrialReport(1, {}, 1.0, finished=True)

    monkeypatch.setattr(driver, "run_one", at_once)
    run(*arguments, "--concurrency", "1")
    assert trained == [("infonce", 4), ("infonce", 5), ("fair-cclk", 5)]
    assert {9} < {value.seed for value in read_results(path).values}
    save_results(whole, tmp_path / "kept")
    trained.clear()
    again = run(*arguments, "--concurrency", "1")
    assert "the store and the saved scores held all 15 runs" in " ".join(again.output.split())
    assert (again.exit_code, trained) == (0, [])


def test_saved_runs_of_other_settings_are_told_and_made_again(run: Run, tmp_path: Path) -> None:
    store_runs(QUICK, tmp_path / "there", score)
    arguments = ("table", "cclk-t3", "--scale", "quick", "--save", "kept")
    run(*arguments, "--no-run", "--results", "there")
    saved = read_results(tmp_path / "kept" / "cclk-t3.quick.parquet")
    cells = {
        key: replace(one, settings={**one.settings, "epochs": 7}) if key[0] == "infonce" else one
        for key, one in saved.cells.items()
    }
    save_results(replace(saved, cells=cells), tmp_path / "kept")
    planned = run(*arguments, "--dry-run")
    assert "kept: its runs of InfoNCE have other settings than the table has here" in planned.stderr
    assert "10 here, 5 missing" in planned.output


def test_a_searched_row_counts_no_saved_run(run: Run, tmp_path: Path) -> None:
    tuned = plan_table(load_table("cclk-t3"), scale="quick", tune=True)
    saved = collect(QUICK, StoredRuns(store_runs(QUICK, tmp_path / "there", score)))
    save_results(replace(saved, tuned=True), tmp_path / "kept")
    arguments = ("table", "cclk-t3", "--scale", "quick", "--tune", "--save", "kept", "--dry-run")
    assert f"0 here, {tuned.runs} missing" in run(*arguments).output


def test_claims_read_what_other_tables_have_saved(run: Run, tmp_path: Path) -> None:
    arguments = ("table", "fairkl-fig2", "--scale", "quick", "--no-run", "--json", "--save", "kept")
    claims = json.loads(run(*arguments).stdout)["claims"]
    assert {claim["verdict"] for claim in claims} == {"not run"}
    (tmp_path / "kept").mkdir()
    shutil.copy(SAVED / "fairkl-t3.quick.parquet", tmp_path / "kept")
    claims = json.loads(run(*arguments).stdout)["claims"]
    assert "not run" not in {claim["verdict"] for claim in claims}


def test_a_final_run_that_failed_is_tried_again_by_the_same_command(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = ("infonce", 3)
    run_one = driver.run_one

    def shortly(request: Any, tell: Any = None) -> Any:
        return run_one(replace(request, experiment=request.experiment.model_copy(update={"epochs": 1})))

    monkeypatch.setattr(driver, "run_one", shortly)
    store_runs(QUICK, tmp_path / "results", lambda c, s: None if (c.row, s) == broken else score(c, s))
    result = run("table", "cclk-t3", "--scale", "quick", "--concurrency", "1")
    assert result.exit_code == 0, result.output
    rows = ResultsStore(tmp_path / "results").trials("table-cclk-t3-quick-infonce-colour-digits-final")
    assert {row["seed"]: row["status"] for row in rows.to_pylist()} == dict.fromkeys(range(1, 6), "completed")
    assert "failed" not in result.output


def test_nothing_measured_is_a_failure_that_says_why(run: Run) -> None:
    result = run("table", "cclk-t3")
    assert result.exit_code == 1
    assert "nothing of table cclk-t3 was measured: colormnist: " in " ".join(result.output.split())
    assert run("table", "cacr-t5").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cclk-t33"], "Did you mean 'cclk-t3'?"),
        (["cclk-t3", "--format", "latx"], "Did you mean 'latex'?"),
        (["cclk-t3", "--scale", "quik"], "Did you mean 'quick'?"),
        (["cclk-t3", "--column", "acu"], "Did you mean 'acc'?"),
        (["cclk-t3", "--scale", "quick", "--column", "acc_moving"], "is not in this form"),
        (["cclk-t3", "-o", ".."], "is a folder"),
        (["cclk-t3", "--save", sys.executable], "is a file"),
        (["cclk-t3", "-o", f"{sys.executable}/x/t.md"], "cannot be written"),
        (["cclk-t3", "--figure", "x.png"], "sweeps no parameter"),
        (["cclk-t8", "--figure", "x.gif"], "--figure x.gif: give a file that ends in .png"),
        (["cclk-t3", "--trials", "3"], "--trials goes with --tune"),
        (["cacr-t8", "--tune"], "no searched form"),
        (["cclk-t3", "--seeds", "0"], "seeds must be at least 1"),
    ],
)
def test_wrong_input_is_refused_before_any_work(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    result = run("table", *arguments)
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.split())
    assert list(tmp_path.iterdir()) == []
