"""What is known of a planned table: the store and the saved file together, and what is left."""

from pathlib import Path

import pytest

from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.results import save_results
from contrasweep.tuning.tables.table_state import TableState
from tests.tables.stored import score, store_runs

PLAN = plan_table(load_table("cclk-t3"), scale="quick", seeds=3)


def test_the_store_and_the_saved_file_count_together(tmp_path: Path) -> None:
    here, there, folder = tmp_path / "here", tmp_path / "there", tmp_path / "saved"
    store_runs(PLAN, there, score, seeds=range(1, 3))
    save_results(TableState.of(PLAN, there).stored, folder)
    store_runs(PLAN, here, score, seeds=range(3, 4))
    state = TableState.of(PLAN, here, folder)
    key = "infonce", "acc"
    assert state.saved_seeds[key] == {1, 2}
    assert state.replaced_rows == []
    assert {run.seed for run in state.shown.values if (run.row, run.column) == key} == {1, 2, 3}
    assert state.kept.values == state.shown.values
    assert state.remaining.missing == 0
    assert len(state.verdicts()) == len(PLAN.table.claims)
    state.refuse_nothing()


def test_a_table_without_a_number_is_refused(tmp_path: Path) -> None:
    state = TableState.of(PLAN, tmp_path)
    assert state.remaining.stored == 0
    with pytest.raises(SweepFailed, match="nothing of table cclk-t3 was measured: 0 of 3 runs done"):
        state.refuse_nothing()
