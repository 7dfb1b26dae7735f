"""docs/released-command.md shows what the kept scores say."""

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from benchmarks.filled import filled
from benchmarks.trajectory import page

SCORES = {"accuracy": 0.875, "colour_mse": 1234.5, "seconds": 1.0}


def row(epoch: int, *, seed: int = 1, epochs: int = 1000, **given: float) -> dict:
    return {
        "row": "infonce",
        "epochs": epochs,
        "rate": 0.001,
        "seed": seed,
        "epoch": epoch,
        **SCORES,
        **given,
    }


def test_the_page_is_what_the_scores_say() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert text == filled(text, page.tables(page.kept([]))), "python -m benchmarks.trajectory.page fills it"


def test_each_seed_has_a_table_of_its_epochs_and_rates_are_averaged_over_seeds() -> None:
    other = {"seed": 2, "accuracy": 0.885, "colour_mse": 12.0}
    rows = [row(0), row(5), row(5, **other), row(5, epochs=5), row(5, epochs=5, **other)]
    found = page.tables(rows)
    assert list(found) == ["seed-1", "seed-2", "rates"]
    assert "| 0 | 87.5 / 1,234 |" in found["seed-1"]
    assert "| 5 | 87.5 / 1,234 |" in found["seed-1"]
    assert "| 0 |" not in found["seed-2"]
    assert "| 5 | 88.5 / 12.0 |" in found["seed-2"]
    assert "| printed | 84.1±1.8 / 48.8±4.5 |" in found["seed-1"]
    assert "| 0.001 | 88.0 / 623.2 (n = 2) |" in found["rates"]


def test_later_scores_of_a_run_take_the_place_of_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "RECORDS", tmp_path / "kept.parquet")
    for accuracy in (0.1, 0.2):
        folder = tmp_path / str(accuracy)
        folder.mkdir()
        parquet.write_table(pa.Table.from_pylist([row(0), row(5, accuracy=accuracy)]), folder / "a.parquet")
        page.kept([folder])
    assert [(one["epoch"], one["accuracy"]) for one in page.kept([])] == [(0, 0.875), (5, 0.2)]
