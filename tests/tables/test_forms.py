"""What a table says of the runs that it shows: of this form and this number of seeds, and of no other."""

import re
from dataclasses import replace

import pytest

from contrasweep.search_spaces.tables import available_tables, load_table
from contrasweep.tuning.tables.render import latex, markdown
from contrasweep.tuning.tables.results import RunValue, TableResults


@pytest.mark.parametrize("seeds", [2, 5])
def test_a_small_form_says_its_own_number_of_seeds_and_nothing_of_other_forms(seeds: int) -> None:
    values = tuple(RunValue("fair-cclk", "acc", seed, 80.0) for seed in range(1, seeds + 1))
    results = TableResults(load_table("cclk-t3"), "quick", False, seeds, values)
    text = markdown(results, [])
    assert f"no flips; {seeds} seeds." in text
    assert f"over seeds 1 to {seeds}, " in text
    assert "234 steps" not in text
    assert "LeNet-5" not in text
    full = markdown(replace(results, scale="paper"), [])
    assert "234 steps" in full
    assert "LeNet-5" in full


@pytest.mark.parametrize("name", available_tables())
def test_the_text_of_a_form_names_no_number_of_seeds(name: str) -> None:
    run = load_table(name).run
    for form in filter(None, (run.quick, run.released)):
        assert not re.search(r"\b\d+ (seeds|folds|runs)\b", form.what)


def test_the_column_of_these_runs_is_told_from_the_rows_that_the_paper_calls_its_own() -> None:
    values = tuple(RunValue("fair-cclk", "acc", seed, 83.0 + seed) for seed in (1, 2, 3))
    results = TableResults(load_table("cclk-t3"), "paper", False, 3, values)
    text = markdown(results, [])
    assert "| Top-1 Accuracy | printed | these runs (n) | difference |" in text
    assert "| FairCCLK (ours) | 86.4 ± 0.9 | 85.0 ± 1.0 (3) |" in text
    assert " & these runs (n) & " in latex(results, [])
