"""What is known of a planned table: the store and the saved file together, and what is left."""

from pathlib import Path

import pytest

from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.errors import SweepFailed
from contrasweep.tuning.tables.held import HeldTable
from contrasweep.tuning.tables.plan import plan_table
from contrasweep.tuning.tables.results import save_results
from tests.tables.stored import score, store_runs

PLAN = plan_table(load_table("cclk-t3"), scale="quick", seeds=3)


def test_the_store_and_the_saved_file_count_together(tmp_path: Path) -> None:
    here, there, folder = tmp_path / "here", tmp_path / "there", tmp_path / "saved"
    store_runs(PLAN, there, score, seeds=range(1, 3))
    save_results(HeldTable.of(PLAN, there).stored, folder)
    store_runs(PLAN, here, score, seeds=range(3, 4))
    held = HeldTable.of(PLAN, here, folder)
    key = "infonce", "acc"
    assert held.saved_seeds[key] == {1, 2}
    assert held.replaced_rows == []
    assert {run.seed for run in held.shown.values if (run.row, run.column) == key} == {1, 2, 3}
    assert held.kept.values == held.shown.values
    assert held.remaining.missing == 0
    assert len(held.verdicts()) == len(PLAN.table.claims)
    held.refuse_nothing()


def test_a_table_without_a_number_is_refused(tmp_path: Path) -> None:
    held = HeldTable.of(PLAN, tmp_path)
    assert held.remaining.stored == 0
    with pytest.raises(SweepFailed, match="nothing of table cclk-t3 was measured: 0 of 3 runs done"):
        held.refuse_nothing()
