"""Runs of one table from several machines meet in one file, and none of them is lost."""

from dataclasses import replace
from pathlib import Path

import pytest

from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.errors import InputError
from contrasweep.tuning.tables.collect import StoredRuns, collect
from contrasweep.tuning.tables.merge_saved import (
    counting,
    joined,
    not_replaced,
    replaced_rows,
    saved_before,
    saved_seeds,
)
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.results import RowSearch, RunValue, TableResults, save_results
from tests.tables.stored import score, store_runs

PLAN = plan_table(load_table("cclk-t3"), scale="quick", seeds=3)


def made(folder: Path, seeds: range) -> TableResults:
    """The results of a machine that has run these seeds."""
    return collect(PLAN, StoredRuns(store_runs(PLAN, folder, score, seeds=seeds)))


def test_the_seeds_of_two_machines_are_those_of_one(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one", range(1, 3)), made(tmp_path / "other", range(3, 4))
    whole = made(tmp_path / "whole", range(1, 4))
    save_results(one, tmp_path / "kept")
    found = joined(other, saved_before(other, tmp_path / "kept"))
    assert [(v.row, v.column, v.seed, v.value) for v in found.values] == [
        (v.row, v.column, v.seed, v.value) for v in whole.values
    ]
    assert found.cells == whole.cells
    assert found.gaps == {}


def test_a_file_with_more_planned_seeds_keeps_its_plan_and_a_shared_run_needs_all_its_columns(
    tmp_path: Path,
) -> None:
    one, other = made(tmp_path / "one", range(1, 3)), made(tmp_path / "other", range(3, 4))
    assert joined(other, replace(one, seeds=5)).gaps["infonce", "acc"] == "3 of 5 runs done"
    (cell,) = [cell for cell in PLAN.running if (cell.row, cell.column) == ("infonce", "acc")]
    known = {("infonce", "acc"): {1, 2}, ("infonce", "mse"): {2, 3}}
    assert PLAN.known_seeds(cell, known) == {2}


def test_a_cell_that_only_one_has_stays_and_gaps_say_what_is_missing(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one", range(1, 2)), made(tmp_path / "other", range(2, 3))
    alone = replace(other, values=tuple(v for v in other.values if v.row == "infonce"))
    alone = replace(alone, gaps={("fair-cclk", "acc"): "the data are not here"})
    found = joined(alone, one)
    assert {(v.row, v.seed) for v in found.values if v.column == "acc"} == {
        ("infonce", 1),
        ("infonce", 2),
        ("fair-cclk", 1),
        ("fair-infonce", 1),
    }
    assert found.gaps["fair-cclk", "acc"] == "1 of 3 runs done"
    empty = replace(one, values=())
    assert joined(replace(alone, values=()), empty).gaps["fair-cclk", "acc"] == "the data are not here"


def test_runs_of_other_settings_are_replaced(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one", range(1, 3)), made(tmp_path / "other", range(3, 4))
    key = ("infonce", "acc")
    cell = replace(one.cells[key], settings={**one.cells[key].settings, "data_fingerprint": "these"})
    other = replace(other, cells={**other.cells, key: cell})
    longer = replace(cell, settings={**cell.settings, "epochs": 7})
    # Of runs of an earlier version the images are not known.
    older = replace(cell, settings={**cell.settings, "data_fingerprint": ""})
    images = replace(cell, settings={**cell.settings, "data_fingerprint": "those"})
    searched = replace(cell, search=RowSearch("table-other", 12, 1.0))
    for changed, seeds in ((longer, {3}), (images, {3}), (searched, {3}), (older, {1, 2, 3})):
        found = joined(other, replace(one, cells={**one.cells, key: changed}))
        assert {v.seed for v in found.values if (v.row, v.column) == key} == seeds
        assert {v.seed for v in found.values if v.row == "fair-cclk"} == {1, 2, 3}


def test_a_setting_that_is_younger_than_the_file_has_its_default_there(tmp_path: Path) -> None:
    old, planned = made(tmp_path / "one", range(1, 3)), made(tmp_path / "other", range(3, 4))
    key = ("infonce", "acc")
    settings = dict(planned.cells[key].settings)
    without = {name: value for name, value in settings.items() if name != "encoder.name"}
    assert settings["encoder.name"] != "resnet18"

    def seeds(now: dict[str, object], then: dict[str, object]) -> set[int | None]:
        ours = replace(planned, cells={**planned.cells, key: replace(planned.cells[key], settings=now)})
        saved = replace(old, cells={**old.cells, key: replace(old.cells[key], settings=then)})
        return set(joined(ours, saved).of(*key))

    assert seeds(settings, {**settings, "optimizer.clip_norm": 0.0}) == {1, 2, 3}
    assert seeds({**settings, "optimizer.clip_norm": 1.0}, settings) == {3}
    assert seeds({**settings, "data_revision": 2}, settings) == {3}
    assert seeds(settings, without) == {3}
    assert seeds(settings, {**settings, "data_fingerprint": ""}) == {1, 2, 3}
    assert seeds({**settings, "data_fingerprint": "a"}, {**settings, "data_fingerprint": "b"}) == {3}


def test_what_is_known_of_a_cell_are_the_seeds_that_ran_with_its_settings(tmp_path: Path) -> None:
    planned, saved = made(tmp_path / "one", range(3, 4)), made(tmp_path / "other", range(1, 3))
    key = ("infonce", "acc")
    changed = replace(saved.cells[key], settings={**saved.cells[key].settings, "epochs": 7})
    known = saved_seeds(planned, replace(saved, cells={**saved.cells, key: changed}))
    assert known.keys() == planned.cells.keys() - {key}
    assert set(known.values()) == {frozenset({1, 2})}
    assert saved_seeds(planned, None) == saved_seeds(replace(planned, tuned=True), saved) == {}
    assert replaced_rows(planned, replace(saved, cells={**saved.cells, key: changed})) == ["InfoNCE"]
    assert replaced_rows(planned, saved) == replaced_rows(planned, None) == []


def test_saved_runs_of_other_settings_are_neither_shown_nor_judged(tmp_path: Path) -> None:
    planned, saved = made(tmp_path / "one", range(3, 4)), made(tmp_path / "other", range(1, 3))
    planned, key = replace(planned, values=()), ("infonce", "acc")
    changed = replace(saved.cells[key], settings={**saved.cells[key].settings, "epochs": 7})
    saved = replace(saved, cells={**saved.cells, key: changed})
    shown = joined(planned, not_replaced(planned, saved))
    assert {v.row for v in shown.values if v.column == "acc"} == {"fair-cclk", "fair-infonce"}
    assert shown.gaps[key] == "0 of 3 runs done"
    assert key in {(v.row, v.column) for v in joined(planned, saved).values}, "the file keeps them"
    elsewhere = replace(planned, cells={})
    assert joined(elsewhere, not_replaced(elsewhere, saved)).values, "its data are on another machine"
    tuned = replace(planned, tuned=True)
    assert not_replaced(tuned, saved) is saved
    assert (replaced_rows(planned, saved), replaced_rows(tuned, saved)) == (["InfoNCE"], [])
    assert counting(tuned, saved) is None, "a search runs again where the store does not hold it"


def test_what_went_wrong_is_still_told(tmp_path: Path) -> None:
    one, other = made(tmp_path / "one", range(1, 2)), made(tmp_path / "other", range(2, 3))
    key, why = ("infonce", "acc"), "runs done, 1 failed: loss nan at epoch 1"
    failed = replace(other, gaps={**other.gaps, key: f"1 of 3 {why}"})
    assert joined(failed, one).gaps[key] == f"2 of 3 {why}"
    assert joined(one, failed).gaps[key] == "2 of 3 runs done", "what failed there is not wrong here"
    nothing = replace(one, values=(), gaps=dict.fromkeys(one.gaps, "0 of 3 runs done"))
    there = replace(other, values=(), gaps={key: "0 of 3 runs done, 3 failed: loss nan at epoch 1"})
    assert joined(nothing, there).gaps[key] == there.gaps[key]


def test_facts_of_the_data_are_not_joined() -> None:
    table = load_table("cl-infonce-fig4a")
    curves = tuple(RunValue(f"k{k}", "I(Z;T)", None, 1.0) for k in (1, 2))
    here, saved = (TableResults(table, "paper", False, 0, values) for values in (curves, curves[:1]))
    assert joined(here, saved) is here
    assert replaced_rows(here, saved) == []


def test_both_machines_are_named(tmp_path: Path) -> None:
    one = replace(made(tmp_path / "one", range(1, 3)), provenance={"device": "cpu", "torch": "2.15.0"})
    other = replace(made(tmp_path / "other", range(3, 4)), provenance={"device": "cuda", "torch": "2.15.0"})
    found = joined(other, one)
    assert found.provenance == {"device": "cuda, cpu", "torch": "2.15.0"}
    assert joined(other, found).provenance == found.provenance


def test_a_folder_without_the_form_adds_nothing_and_a_foreign_file_is_refused(tmp_path: Path) -> None:
    found = made(tmp_path / "one", range(1, 3))
    assert saved_before(found, None) is saved_before(found, tmp_path) is None
    assert joined(found, None) is found
    (tmp_path / f"{found.name}.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError, match="holds no results of a table"):
        saved_before(found, tmp_path)
