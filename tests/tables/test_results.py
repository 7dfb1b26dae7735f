"""Results from the store: values, gaps, and the small file that keeps them."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.planning.resources import AskedResources
from contrasweep.tuning.store import ResultsStore, open_location, save_study
from contrasweep.tuning.tables.collect import StoredRuns, collect, runs_done
from contrasweep.tuning.tables.outdated import changed_settings
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.planned import DATA, CellPlan
from contrasweep.tuning.tables.render import markdown
from contrasweep.tuning.tables.results import RunValue, TableResults, read_results, save_results
from contrasweep.tuning.tables.run import run_table
from contrasweep.tuning.tables.text import facts
from contrasweep.tuning.tables.verdict import judge_all
from tests.tables.stored import score, store_runs

PLAN = plan_table(load_table("cclk-t3"), scale="quick", seeds=3)


def test_values_come_in_printed_units_with_the_untrained_beside(tmp_path: Path) -> None:
    found = collect(PLAN, StoredRuns(store_runs(PLAN, tmp_path, score)))
    cell = found.of("fair-cclk", "acc")
    assert [round(value.value, 6) for value in cell.values()] == [81.0, 82.0, 83.0]
    assert {value.untrained for value in cell.values()} == {50.0}
    assert found.of("fair-cclk", "mse")[1].value == 0.81  # squared levels, as they are
    assert found.gaps == {}
    assert runs_done(PLAN, StoredRuns(ResultsStore(tmp_path))) == PLAN.runs == 9


def test_a_half_finished_table_says_what_is_missing(tmp_path: Path) -> None:
    store_runs(PLAN, tmp_path, score, seeds=range(1, 3))
    found = collect(PLAN, StoredRuns(ResultsStore(tmp_path)))
    assert set(found.gaps.values()) == {"2 of 3 runs done"}
    assert runs_done(PLAN, StoredRuns(ResultsStore(tmp_path))) == 6
    # The last seeds close the gaps.
    assert collect(PLAN, StoredRuns(store_runs(PLAN, tmp_path, score, seeds=range(3, 4)))).gaps == {}


def test_a_failed_run_leaves_a_gap_with_its_error(tmp_path: Path) -> None:
    store = store_runs(PLAN, tmp_path, lambda cell, seed: None if (cell.row, seed) == ("infonce", 2) else 0.5)
    gaps = collect(PLAN, StoredRuns(store)).gaps
    assert gaps["infonce", "acc"] == "2 of 3 runs done, 1 failed: loss nan at epoch 1"
    assert ("fair-cclk", "acc") not in gaps


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_a_run_without_a_finite_score_is_a_gap_and_counts_neither_here_nor_in_verdicts(
    number: float, tmp_path: Path
) -> None:
    """The table would otherwise show two runs of the row, and its verdicts a doubt about three."""

    def some(cell: CellPlan, seed: int) -> float:
        return number if (cell.row, seed) == ("fair-cclk", 2) else score(cell, seed)

    found = collect(PLAN, StoredRuns(store_runs(PLAN, tmp_path, some)))
    assert found.gaps["fair-cclk", "acc"] == "2 of 3 runs done, 1 without a finite score"
    assert found.of("fair-cclk", "acc").keys() == {1, 3}
    assert {verdict.seeds for verdict in judge_all(found)} == {2, None}


def test_runs_of_another_series_of_contrasweep_do_not_count(tmp_path: Path) -> None:
    store = store_runs(PLAN, tmp_path, score)
    name = "table-cclk-t3-quick-infonce-colour-digits-final"
    record = store.study(name)
    old = record.model_copy(update={"versions": {**record.versions, "contrasweep": "0.0.9"}})
    save_study(open_location(tmp_path, writable=True), old, replace=True)
    found = collect(PLAN, StoredRuns(ResultsStore(tmp_path)))
    assert found.gaps["infonce", "acc"] == (
        "the store holds runs of contrasweep 0.0.9 under this name: use another results folder"
    )
    assert {value.row for value in found.values} == {"fair-infonce", "fair-cclk"}
    with pytest.raises(InputError, match=r"made by contrasweep 0\.0\.9.*: use another results folder"):
        run_table(PLAN, AskedResources(1), results=tmp_path)


def test_an_empty_store_is_all_gaps(tmp_path: Path) -> None:
    found = collect(PLAN, StoredRuns(ResultsStore(tmp_path)))
    assert found.values == ()
    assert set(found.gaps.values()) == {"0 of 3 runs done"}


def test_stored_runs_are_shown_where_their_data_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrasweep.tuning.tables.plan.check_available", lambda name, root: None)
    there = plan_table(PLAN.table, seeds=2)
    store = store_runs(there, tmp_path / "store", lambda cell, seed: None if cell.row == "infonce" else 0.5)
    monkeypatch.undo()
    here = plan_table(PLAN.table, seeds=2, data_root=tmp_path / "no-data")
    assert (here.state, here.runs, here.studies) == (DATA, 0, {})
    found = collect(here, StoredRuns(store))
    assert found.values == collect(there, StoredRuns(store)).values
    assert {value.row for value in found.values} == {"fair-infonce", "fair-cclk"}
    assert {row for row, _ in found.gaps} == {"infonce"}
    assert "colormnist: " in found.gaps["infonce", "acc"]
    assert runs_done(here, StoredRuns(store)) == 0


def test_runs_with_other_settings_are_not_taken_for_ours(tmp_path: Path) -> None:
    store_runs(PLAN, tmp_path, score)
    run = PLAN.table.run
    assert run.quick is not None
    longer = run.quick.model_copy(update={"set": {**run.quick.set, "epochs": 4}})
    table = PLAN.table.model_copy(update={"run": run.model_copy(update={"quick": longer})})
    found = collect(plan_table(table, scale="quick"), StoredRuns(ResultsStore(tmp_path)))
    assert found.values == ()
    assert all("other settings" in why for why in found.gaps.values())


@pytest.mark.parametrize(
    ("seeds", "told"), [((1, 2, 3), "seeds 1 to 3"), ((4, 5), "seeds 4 to 5"), ((1,), "seed 1")]
)
def test_the_seeds_that_are_told_are_those_of_the_runs(seeds: tuple[int, ...], told: str) -> None:
    """A row whose search took three seeds has its final runs on later ones."""
    values = tuple(RunValue("dnn", "scene_f1", seed, 0.5) for seed in seeds)
    found = TableResults(load_table("herocon-t2"), "paper", True, 5, values)
    assert any(f"deviation over {told}, as many as n says" in line for line in facts(found))


def test_results_come_back_from_their_file(tmp_path: Path) -> None:
    found = collect(PLAN, StoredRuns(store_runs(PLAN, tmp_path / "store", score, seeds=range(1, 3))))
    path = save_results(found, tmp_path / "kept")
    assert path.name == "cclk-t3.quick.parquet"
    assert path.stat().st_size < 20_000
    again = read_results(path)
    assert again.values == found.values
    assert again.gaps == found.gaps
    assert again.cells == found.cells
    assert again.common_settings["epochs"] == 20


def test_another_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match=r"x\.parquet holds no results"):
        read_results(tmp_path / "x.parquet")
    # Under another name, a quick form would be shown as the paper's settings.
    found = TableResults(load_table("cclk-t3"), "quick", False, 5)
    renamed = save_results(found, tmp_path).rename(tmp_path / "cclk-t8.parquet")
    with pytest.raises(InputError, match=r"cclk-t8\.parquet holds cclk-t3, .*; rename it cclk-t3"):
        read_results(renamed)


def test_saved_scores_of_other_settings_say_what_has_changed_since(tmp_path: Path) -> None:
    found = collect(PLAN, StoredRuns(store_runs(PLAN, tmp_path, score)))
    saved = read_results(save_results(found, tmp_path / "kept"))
    assert changed_settings(saved) == []
    key, others = ("infonce", "acc"), {"encoder.name": "lenet5"}
    cells = {k: replace(info, settings={**info.settings, **others}) for k, info in saved.cells.items()}
    cells[key] = replace(cells[key], settings={**cells[key].settings, "hyperparameters.temperature": 0.2})
    changed = changed_settings(replace(saved, cells=cells))
    assert set(changed) == {"encoder.name lenet5, now small-conv", "temperature 0.2, now 0.5 (infonce)"}
    assert f"**These runs are older than the table's settings**: {changed[0]}" in markdown(
        saved, [], changed=changed
    )


def test_a_searched_form_compares_only_what_its_search_held_fixed() -> None:
    page = Path(__file__).parents[2] / "docs" / "reproduction" / "results"
    # The ranges of the search were not kept then.
    changed = changed_settings(read_results(page / "cclk-t3.tuned.parquet"))
    assert [phrase.partition(",")[0] for phrase in changed] == ["search space of an earlier version"] * 3
    # Rows of the network with tanh are not taken for rows of the released one.
    stored = read_results(page / "cclk-t5a.parquet")
    assert changed_settings(stored) == []
    with_tanh = {
        key: replace(info, settings={**info.settings, "encoder.name": "lenet5"})
        for key, info in stored.cells.items()
    }
    assert changed_settings(replace(stored, cells=with_tanh)) == ["encoder.name lenet5, now lenet5-linear"]
