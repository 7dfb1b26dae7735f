"""The searched form of a table: rows are searched with equal budgets; the best trial runs on fresh seeds."""

from pathlib import Path
from typing import Any

import pytest

import contrasweep.tuning.tables.run as running
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.errors import InputError, SweepFailed
from contrasweep.tuning.planning.best_config import BestConfig
from contrasweep.tuning.planning.plan import SweepPlan
from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.results.final_runs import FinalRuns
from contrasweep.tuning.store import ResultsStore, open_location, save_study
from contrasweep.tuning.tables.collect import StoredRuns, collect, plan_search
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.results import read_results, save_results
from contrasweep.tuning.tables.run import run_table
from contrasweep.tuning.tables.text import selection
from tests.tables.stored import store_search

PLAN = plan_table(load_table("cclk-t5a"), scale="quick", tune=True, trials=2, seeds=1)


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[Any]]:
    """Replace searches (the second trial is better) and final runs by stand-ins that note each call."""
    made: dict[str, list[Any]] = {"new": [], "again": [], "final": []}

    def search(plan: SweepPlan, **_: Any) -> None:
        made["new"].append(plan)
        store_search(plan)

    def finish(configs: list[BestConfig], **more: Any) -> FinalRuns:
        made["final"] += configs
        return FinalRuns(configs[0].study, [], 0)

    monkeypatch.setattr(running, "run_sweep", search)
    monkeypatch.setattr(running, "resume_sweep", lambda name, *_, **__: made["again"].append(name))
    monkeypatch.setattr(running, "final_runs", finish)
    return made


def test_every_row_is_searched_with_the_same_budget(calls: dict[str, list[Any]], tmp_path: Path) -> None:
    assert run_table(PLAN, results=tmp_path) == {}
    assert [plan.name for plan in calls["new"]] == [
        f"table-cclk-t5a-quick-tuned-{kernel}-colour-digits"
        for kernel in ("rbf", "polynomial", "laplacian", "cosine")
    ]
    assert {plan.search.trials for plan in calls["new"]} == {2}
    assert {plan.metric for plan in calls["new"]} == {"val.accuracy"}
    many = [plan_search(PLAN, cell, str(tmp_path), concurrency=8) for cell in PLAN.running[:1]]
    schedulers = {plan.search.scheduler for plan in [*calls["new"], *many]}
    assert schedulers == {"asha"}, "whatever runs at once: budgets are equal, and a search is found again"
    searched = [{parameter.name for parameter in plan.space.searched} for plan in calls["new"]]
    assert "sigma2" in searched[0]
    assert not any("kernel" in names for names in searched)
    # The better trial is what runs on fresh seeds.
    assert [(config.trial, config.values["temperature"]) for config in calls["final"]] == [(1, 0.2)] * 4


def test_searches_and_runs_take_what_is_given(
    calls: dict[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []

    def finish(configs: list[BestConfig], **more: Any) -> FinalRuns:
        given.append(more)
        return FinalRuns(configs[0].study, [], 0)

    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_cores", lambda: 8)
    monkeypatch.setattr("contrasweep.tuning.planning.resources.available_gpus", lambda: 2)
    monkeypatch.setattr(running, "final_runs", finish)
    asked = AskedResources(1, 3, 2, 0.5, "cuda")
    run_table(PLAN, asked, results=tmp_path)
    resources = calls["new"][0].resources
    assert (resources.workers, resources.gpus, resources.cpus) == (2, 0.5, 3)
    assert asked.given("cpus_per_run").items() <= given[0].items()
    with pytest.raises(InputError, match="batch_size 128 does not divide among 3 workers"):
        run_table(PLAN, AskedResources(workers=3), results=tmp_path)


def test_a_stored_search_is_continued(calls: dict[str, list[Any]], tmp_path: Path) -> None:
    run_table(PLAN, results=tmp_path)
    run_table(PLAN, results=tmp_path)
    assert len(calls["new"]) == 4
    assert len(calls["again"]) == 4


def test_the_selection_rule_is_stated(calls: dict[str, list[Any]], tmp_path: Path) -> None:
    run_table(PLAN, results=tmp_path)
    found = collect(PLAN, StoredRuns(ResultsStore(tmp_path)))
    info = found.cells["rbf", "acc"]
    assert info.settings["hyperparameters.temperature"] == 0.2
    assert "highest val.accuracy" in selection(found)
    assert "of 2" in selection(found)
    assert found.gaps["rbf", "acc"] == "0 of 1 runs done"


def test_the_stated_budget_is_that_of_the_stored_search(calls: dict[str, list[Any]], tmp_path: Path) -> None:
    run_table(PLAN, results=tmp_path)
    usual = plan_table(load_table("cclk-t5a"), scale="quick", tune=True)
    found = collect(usual, StoredRuns(ResultsStore(tmp_path)))
    assert (usual.trials, "of 2, on" in selection(found)) == (24, True)
    assert found.command == "contrasweep table cclk-t5a --scale quick --tune --trials 2"
    assert {info.search.study for info in found.cells.values() if info.search} == set(usual.studies)
    again = read_results(save_results(found, tmp_path / "kept"))
    assert again.cells == found.cells
    assert again.search_seconds == found.search_seconds


def test_a_table_is_read_where_its_searches_could_not_run(
    calls: dict[str, list[Any]], tmp_path: Path
) -> None:
    run_table(PLAN, results=tmp_path)
    here = collect(PLAN, StoredRuns(ResultsStore(tmp_path)))
    location, store = open_location(tmp_path, writable=True), ResultsStore(tmp_path)
    for study in PLAN.studies:
        record = store.study(study)
        hardware = {"concurrency": 64, "cpus": 4096, "gpus": 1.0, "workers": 512}
        search = record.require_search().model_copy(update=hardware)
        save_study(location, record.model_copy(update={"search": search}), replace=True)
    assert collect(PLAN, StoredRuns(ResultsStore(tmp_path))) == here
    assert here.cells["rbf", "acc"].settings["hyperparameters.temperature"] == 0.2
    # A table that shares the search finds it too.
    shared = plan_table(load_table("cclk-t3"), scale="quick", tune=True, trials=2, seeds=1)
    found = collect(shared, StoredRuns(ResultsStore(tmp_path)))
    search_of_row = found.cells["fair-cclk", "acc"].search
    assert search_of_row is not None
    assert search_of_row.study == "table-cclk-t5a-quick-tuned-cosine-colour-digits"


def test_a_row_that_fails_does_not_stop_the_others(
    calls: dict[str, list[Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_laplacian(configs: list[BestConfig], **more: Any) -> FinalRuns:
        if "laplacian" in configs[0].study:
            raise SweepFailed("no final run completed")
        calls["final"] += configs
        return FinalRuns(configs[0].study, [], 0)

    monkeypatch.setattr(running, "final_runs", fail_laplacian)
    failed = run_table(PLAN, results=tmp_path)
    assert list(failed) == ["table-cclk-t5a-quick-tuned-laplacian-colour-digits"]
    assert len(calls["final"]) == 3
