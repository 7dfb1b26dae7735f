"""The page, its tables and its figures: for large, tiny and categorical studies, and for several."""

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contrasweep.tuning.sensitivity import forest
from contrasweep.tuning.sensitivity.analyse import Sensitivity, analyse_observations
from contrasweep.tuning.sensitivity.paper import draw_paper_figures
from contrasweep.tuning.sensitivity.tables import as_records, sensitivity_tables, write_csv
from tests.sensitivity.analysed_studies import page_of, study
from tests.sensitivity.synthetic import observed, space_of


@pytest.fixture(scope="module", autouse=True)
def small_forests() -> Iterator[None]:
    """A page shows what a forest of any size says."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forest, "TREES", 25)
        yield


@pytest.fixture(scope="module")
def found() -> Sensitivity:
    return analyse_observations([study()])


def test_the_page_has_every_section_and_figure(found: Sensitivity) -> None:
    page = page_of(found)
    for text in ("Importance", "sigma2, by kernel", "Tunability", "Robust region", "What a budget buys"):
        assert text in page
    assert "too few to tell" in page.lower()  # seeds
    for told in (
        "one: 60 trials, 60 completed, seeds 0; trials are compared by val.accuracy on the validation split",
        "ran on here (cpu, 1 cores and 0 GPUs a trial); contrasweep 0.1.0, torch 2.9; revision 0123abc",
        "Made by: contrasweep sensitivity",
    ):
        assert told in page


def test_tables_are_whole_and_are_read_back(found: Sensitivity, tmp_path: Path) -> None:
    tables = sensitivity_tables(found)
    for table in tables.values():
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
    json.dumps(as_records(tables), allow_nan=False)
    paths = {path.stem: path for path in write_csv(tables, tmp_path / "csv")}
    with paths["marginals"].open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    curve = next(m for m in found.studies[0].marginals if m.axis.name == "lr")
    read = [float(row["mean"]) for row in rows if row["parameter"] == "lr"]
    assert read == curve.mean.tolist()
    assert {row["condition"] for row in rows if row["parameter"] == "sigma2"} == {"kernel rbf"}


def test_paper_figures_are_drawn_as_pdf_and_png(found: Sensitivity, tmp_path: Path) -> None:
    paths = draw_paper_figures(found.studies[0], tmp_path / "figures")
    assert sorted(path.name for path in paths) == sorted(
        f"one-{name}.{ending}"
        for name in ("marginals", "importance", "budget", "fidelity")
        for ending in ("pdf", "png")
    )
    assert all(path.stat().st_size > 3000 for path in paths)


def test_several_studies_are_compared_with_equal_budgets_stated() -> None:
    studies = [study(40, "one"), study(45, "two", 1, "other")]
    found = analyse_observations(studies)
    page = page_of(found)
    assert "Every study is allowed 20 trials" in page
    assert "Best default over the datasets" in page
    assert "0 datasets, 6 needed" in page
    (default,) = found.defaults
    assert default.values["kernel"] == "cosine"
    assert all(gain.unseen > 0.2 for gain in default.gains)


@pytest.mark.parametrize("trials", [1, 3, 25])
def test_few_trials_make_a_page(trials: int) -> None:
    assert "oo few to tell" in page_of(analyse_observations([study(trials)]))


@pytest.mark.filterwarnings("error")
def test_categories_only_nan_and_a_constant_score_make_a_page() -> None:
    kernels = {"choice": ["rbf", "cosine", "linear"], "default": "rbf"}
    space = space_of(kernel=kernels, flip={"choice": [True, False], "default": True})
    one = observed(space, lambda x: 0 * x["kernel"], 45)
    assert "oo few to tell" in page_of(analyse_observations([one]))
    mixed = replace(
        one,
        score=np.where(np.arange(45) % 3 == 0, np.nan, np.arange(45.0)),
        ending=np.where(np.arange(45) % 3 == 0, "no score", "completed"),
    )
    assert "15 ended trials without a score" in page_of(analyse_observations([mixed]))


def test_a_study_without_searched_parameters_makes_a_page() -> None:
    one = observed(space_of(), lambda x: np.zeros(1), 30, noise=0.1, seeds=3)
    assert "Seed noise" in page_of(analyse_observations([one]))
