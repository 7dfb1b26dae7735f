"""The lengths and the columns of the forms of a table other than the paper's settings."""

from typing import Any

import pytest

from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.tables.plan import plan_table


@pytest.fixture(autouse=True)
def all_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat every dataset as present; a plan opens no file."""
    monkeypatch.setattr("contrasweep.tuning.tables.plan.check_available", lambda name, root: None)


def test_a_form_that_trains_a_share_of_the_epochs_keeps_the_columns_lengths_apart() -> None:
    cells = plan_table(load_table("cl-infonce-t4"), scale="quick").running
    lengths = {(cell.column[:-7], cell.planned.epochs) for cell in cells if cell.column.endswith("_linear")}
    assert lengths == {("e550", 28), ("e750", 38), ("e1000", 50)}
    ramps = {cell.settings["schedule.warmup_epochs"] for cell in cells if cell.row == "cl-infonce-kmeans"}
    assert {round(ramp, 1) for ramp in ramps} == {9.3, 12.7, 16.7}, "a third, as in the paper's settings"


def test_a_column_of_the_papers_settings_alone_is_in_no_other_form() -> None:
    def rates(**form: Any) -> set[object]:
        cells = plan_table(load_table("cclk-t3"), **form).cells
        return {(cell.column, cell.settings.get("optimizer.lr")) for cell in cells}

    assert rates() == {("acc", 1e-3), ("mse", 1e-3), ("acc_moving", 1.5), ("mse_moving", 1.5)}
    assert rates(scale="released") == {("acc", 1e-3), ("mse", 1e-3)}
    assert rates(scale="quick") == {("acc", 0.1), ("mse", 0.1)}
    assert rates(tune=True) == {("acc", None), ("mse", None)}
