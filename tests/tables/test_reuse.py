"""No table repeats a run or a search of another table, and each table says where its numbers come from."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import contrasweep.tuning.ray.final_driver as driver
import contrasweep.tuning.tables.run as running
from contrasweep.search_spaces import Space
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.store import (
    Heartbeat,
    ResultsStore,
    open_location,
    save_study,
    study_names,
)
from contrasweep.tuning.tables.collect import StoredRuns, collect, runs_done, search_held
from contrasweep.tuning.tables.outdated import changed_settings
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.planned import CellPlan, TablePlan
from contrasweep.tuning.tables.results import read_results, save_results
from contrasweep.tuning.tables.run import TableProgress, run_table
from contrasweep.tuning.tables.text import facts
from contrasweep.tuning.trials.trial import TrialReport, TrialRequest
from tests.studies import Run, write_run
from tests.tables.stored import store_runs, store_search


def quick(table: str, **more: Any) -> TablePlan:
    return plan_table(load_table(table), scale="quick", **more)


FAIR, KERNELS = quick("cclk-t3", seeds=3), quick("cclk-t5a", seeds=3)
"""The third row of the first table is the cosine row of the second."""
COSINE = "table-cclk-t5a-quick-fair-cclk-colour-digits"


def score(cell: CellPlan, seed: int) -> float:
    return 0.7 + seed / 100


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The final runs that were made, as (study, trial, seed); each one returns an accuracy of 0.5 at once."""
    made: list[tuple[str, int, int]] = []

    def run_one(request: TrialRequest, tell: object = None) -> TrialReport:
        experiment, record = request.experiment, request.study
        scores = {name: 0.5 for name in record.columns.metrics if name.startswith("test.")}
        run = Run(request.trial, experiment.seed, request.values, final=scores, phase="final")
        write_run(request.location, record, replace(run, config=experiment.identity()))
        made.append((record.name, request.trial, experiment.seed))
        return TrialReport(experiment.epochs, scores, 1.0, finished=True)

    monkeypatch.setattr(driver, "run_one", run_one)
    return made


@pytest.mark.parametrize(
    ("table", "row", "other", "other_row"),
    [
        ("cclk-t3", "fair-cclk", "cclk-t5a", "cosine"),
        ("cclk-t3", "fair-infonce", "cclk-t8", "c10"),
        ("cclk-t5a", "rbf", "cclk-t7", "s1"),
    ],
)
@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_rows_that_two_tables_print_are_the_same_experiment(
    table: str, row: str, other: str, other_row: str, scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.tables.plan.check_available", lambda name, root: None)

    def identity(table: str, row: str) -> set[str]:
        cells = plan_table(load_table(table), scale=scale).running
        return {
            cell.experiment.identity()
            for cell in cells
            if (cell.row, cell.metric) == (row, "colour_mse") and cell.column == "mse" and cell.experiment
        }

    assert identity(table, row) == identity(other, other_row)
    assert len(identity(table, row)) == 1


def test_what_another_table_ran_counts_and_its_study_is_named(tmp_path: Path) -> None:
    runs = StoredRuns(store_runs(KERNELS, tmp_path / "store", score))
    found = collect(FAIR, runs)
    assert [round(v.value, 6) for v in found.of("fair-cclk", "acc").values()] == [71.0, 72.0, 73.0]
    assert {v.study for v in found.values} == {COSINE}
    assert set(found.gaps) == {
        (row, column) for row in ("infonce", "fair-infonce") for column in ("acc", "mse")
    }
    assert runs_done(FAIR, runs) == 3
    told = f"From study {COSINE}-final, run for another table with the same settings and seeds: fair-cclk."
    assert told in facts(found)
    # The file says so too.
    assert told in facts(read_results(save_results(found, tmp_path / "kept")))
    assert not any("From study" in line for line in facts(collect(KERNELS, runs)))


def test_runs_from_before_a_fingerprint_count(tmp_path: Path) -> None:
    runs = StoredRuns(store_runs(FAIR, tmp_path, score))
    cells = (
        replace(cell, experiment=cell.planned.with_values({"data_fingerprint": "0f"})) for cell in FAIR.cells
    )
    later = replace(FAIR, cells=tuple(cells))
    assert runs_done(later, runs) == runs_done(FAIR, runs) == 9
    assert collect(later, runs).gaps == {}


def test_a_table_prefers_its_own_runs(tmp_path: Path) -> None:
    store_runs(FAIR, tmp_path, score)  # whose study comes first by name
    found = collect(KERNELS, StoredRuns(store_runs(KERNELS, tmp_path, lambda cell, seed: 0.9)))
    assert {v.value for v in found.values if v.column == "acc"} == {90.0}
    assert not any("From study" in line for line in facts(found))


def test_only_what_no_table_has_run_is_run(tmp_path: Path, trained: list[tuple[str, int, int]]) -> None:
    store_runs(KERNELS, tmp_path, score, seeds=range(1, 3))
    shown: list[TableProgress] = []
    assert run_table(FAIR, AskedResources(1), results=tmp_path, show=shown.append) == {}
    study = "table-cclk-t3-quick-{}-colour-digits-final"
    assert trained == [
        *((study.format("infonce"), 0, seed) for seed in (1, 2, 3)),
        *((study.format("fair-infonce"), 0, seed) for seed in (1, 2, 3)),
        (study.format("fair-cclk"), 0, 3),
    ]
    assert (shown[-1].done, shown[-1].runs) == (9, 9)
    found = collect(FAIR, StoredRuns(ResultsStore(tmp_path)))
    assert found.gaps == {}
    mixed = found.of("fair-cclk", "acc")
    assert [mixed[seed].study for seed in (1, 2, 3)] == [COSINE, COSINE, study[:-6].format("fair-cclk")]
    # The other table takes the third seed from here, and now lacks only its other rows.
    trained.clear()
    run_table(KERNELS, AskedResources(1), results=tmp_path)
    assert [(trial, seed) for _, trial, seed in trained] == [(0, 3), (1, 3), (2, 3)]


def test_a_table_that_others_have_run_makes_no_study(
    tmp_path: Path, trained: list[tuple[str, int, int]]
) -> None:
    store_runs(KERNELS, tmp_path, score)
    only = [cell for cell in FAIR.cells if cell.row == "fair-cclk"]
    alone = TablePlan(FAIR.table, FAIR.scale, False, FAIR.seeds, 0, tuple(only))
    assert run_table(alone, AskedResources(1), results=tmp_path) == {}
    assert trained == []
    assert study_names(open_location(tmp_path)) == [f"{COSINE}-final"]


def test_runs_with_other_seeds_and_failed_runs_do_not_count(
    tmp_path: Path, trained: list[tuple[str, int, int]]
) -> None:
    store_runs(KERNELS, tmp_path, lambda cell, seed: None, seeds=range(1, 3))
    store_runs(KERNELS, tmp_path, score, seeds=range(7, 9))
    run_table(FAIR, AskedResources(1), results=tmp_path)
    assert len(trained) == FAIR.runs == 9


def test_a_study_that_another_driver_runs_is_left_to_it(
    tmp_path: Path, trained: list[tuple[str, int, int]]
) -> None:
    study = "table-cclk-t3-quick-infonce-colour-digits"
    with Heartbeat(open_location(tmp_path, writable=True), f"{study}-final"):
        failed = run_table(FAIR, AskedResources(1), results=tmp_path)
    assert list(failed) == [study]
    assert "is being run by process" in failed[study]
    assert len(trained) == 6


def test_a_run_that_fails_again_leaves_those_that_are_done(
    tmp_path: Path, trained: list[tuple[str, int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_one = driver.run_one

    def fails_on_three(request: TrialRequest, tell: object = None) -> TrialReport:
        if request.experiment.seed == 3:
            return TrialReport(0, {}, 0.0, finished=True)  # and nothing in the store
        return run_one(request)

    monkeypatch.setattr(driver, "run_one", fails_on_three)
    for _ in range(2):
        assert run_table(FAIR, AskedResources(1), results=tmp_path) == {}
    assert len(trained) == 6


TUNED = quick("cclk-t3", tune=True, trials=2, seeds=1)
"""The search of its third row is the search of the cosine row of the kernels' table."""
SEARCH = "table-cclk-t5a-quick-tuned-cosine-colour-digits"


@pytest.fixture
def searched(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    made: dict[str, list[str]] = {"new": [], "again": []}

    def search(plan: SweepPlan, progress: object) -> None:
        made["new"].append(plan.name)
        store_search(plan)

    monkeypatch.setattr(running, "run_sweep", search)
    monkeypatch.setattr(running, "resume_sweep", lambda name, *_, **__: made["again"].append(name))
    return made


def test_the_same_search_of_another_table_is_taken(
    tmp_path: Path, searched: dict[str, list[str]], trained: list[tuple[str, int, int]]
) -> None:
    run_table(quick("cclk-t5a", tune=True, trials=2, seeds=1), AskedResources(1), results=tmp_path)
    assert len(trained) == 4
    searched["new"].clear()
    trained.clear()
    assert run_table(TUNED, AskedResources(1), results=tmp_path) == {}
    assert searched["new"] == [
        "table-cclk-t3-quick-tuned-infonce-colour-digits",
        "table-cclk-t3-quick-tuned-fair-infonce-colour-digits",
    ]
    assert searched["again"] == [SEARCH]
    assert [study for study, _, _ in trained] == [f"{name}-final" for name in searched["new"]]
    found = collect(TUNED, StoredRuns(ResultsStore(tmp_path)))
    assert found.gaps == {}
    assert {(v.study, v.trial) for v in found.of("fair-cclk", "acc").values()} == {(SEARCH, 1)}
    assert any(f"From study {SEARCH}-final" in line for line in facts(found))


def test_a_search_by_another_series_of_contrasweep_is_not_taken(
    tmp_path: Path, searched: dict[str, list[str]], trained: list[tuple[str, int, int]]
) -> None:
    run_table(quick("cclk-t5a", tune=True, trials=2, seeds=1), AskedResources(1), results=tmp_path)
    (cell,) = [cell for cell in TUNED.running if (cell.row, cell.column) == ("fair-cclk", "acc")]
    store = ResultsStore(tmp_path)
    assert search_held(TUNED, cell, store) == SEARCH
    record = store.study(SEARCH)
    old = record.model_copy(update={"versions": {**record.versions, "contrasweep": "0.0.9"}})
    save_study(open_location(tmp_path, writable=True), old, replace=True)
    assert search_held(TUNED, cell, store) is None


def test_studies_of_another_table_that_cannot_be_read_are_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = store_runs(KERNELS, tmp_path, score)
    for name in ("table-other-final", "table-other"):
        (tmp_path / "studies" / f"{name}.json").write_text("{}")
    assert len(collect(FAIR, StoredRuns(store)).of("fair-cclk", "acc")) == 3
    for cell in TUNED.running:
        assert search_held(TUNED, cell, store) is None
    for name in ("table-other-final", "table-other"):
        assert caplog.text.count(f"Skipped the study {name}: ") == 1


def test_a_search_in_an_earlier_space_is_not_shown_and_not_continued(
    tmp_path: Path, searched: dict[str, list[str]], trained: list[tuple[str, int, int]]
) -> None:
    kernels = quick("cclk-t5a", tune=True, trials=2, seeds=1)
    run_table(kernels, AskedResources(1), results=tmp_path)
    found = collect(kernels, StoredRuns(ResultsStore(tmp_path)))
    kept = save_results(found, tmp_path / "kept")
    assert changed_settings(read_results(kept)) == []
    record = ResultsStore(tmp_path).study(SEARCH)
    narrow = {**record.space.forms()["temperature"], "log": [0.1, 0.5]}
    old = record.model_copy(update={"space": Space.parse({**record.space.forms(), "temperature": narrow})})
    save_study(open_location(tmp_path, writable=True), old, replace=True)
    again = collect(kernels, StoredRuns(ResultsStore(tmp_path)))
    assert not again.of("cosine", "acc")
    assert "other settings under this name" in again.gaps["cosine", "acc"]
    with pytest.raises(InputError, match=SEARCH):
        run_table(kernels, AskedResources(1), results=tmp_path)


@pytest.mark.parametrize(("trials", "epochs"), [(3, 3), (2, 4)])
def test_a_search_with_another_budget_or_experiment_is_another_search(
    trials: int,
    epochs: int,
    tmp_path: Path,
    searched: dict[str, list[str]],
    trained: list[tuple[str, int, int]],
) -> None:
    run_table(quick("cclk-t5a", tune=True, trials=2, seeds=1), AskedResources(1), results=tmp_path)
    searched["new"].clear()
    run = TUNED.table.run
    assert run.quick is not None
    set_ = run.quick.model_copy(update={"set": {**run.quick.set, "epochs": epochs}})
    table = TUNED.table.model_copy(update={"run": run.model_copy(update={"quick": set_})})
    plan = plan_table(table, scale="quick", tune=True, trials=trials, seeds=1)
    run_table(plan, AskedResources(1), results=tmp_path)
    assert len(searched["new"]) == 3
