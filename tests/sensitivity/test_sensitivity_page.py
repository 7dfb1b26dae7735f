"""The page, its tables and its figures: for large, tiny and categorical studies, and for several."""

import csv
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from contrasweep.tuning.cli.rendering import json_text
from contrasweep.tuning.reports.page import Table
from contrasweep.tuning.sensitivity import forest
from contrasweep.tuning.sensitivity.analyse import Sensitivity, analyse_observations
from contrasweep.tuning.sensitivity.page import sensitivity_sections
from contrasweep.tuning.sensitivity.paper import draw_paper_figures
from contrasweep.tuning.sensitivity.scores import stages
from contrasweep.tuning.sensitivity.tables import as_records, sensitivity_tables, write_csv
from tests.sensitivity.analysed_studies import page_of, study
from tests.sensitivity.learning_curves import searched
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
        "ran on here (cpu, 1 core and 0 GPUs a trial); contrasweep 0.1.0, torch 2.9; revision 0123abc",
        "Made by: contrasweep sensitivity",
    ):
        assert told in page


def test_tables_are_whole_and_are_read_back(found: Sensitivity, tmp_path: Path) -> None:
    tables = sensitivity_tables(found)
    for table in tables.values():
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
    json_text(as_records(tables))
    paths = {path.stem: path for path in write_csv(tables, tmp_path / "csv")}
    with paths["marginals"].open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    curve = next(m for m in found.studies[0].end.forest.marginals if m.axis.name == "lr")
    read = [float(row["mean"]) for row in rows if row["parameter"] == "lr"]
    assert read == curve.mean.tolist()
    assert {row["condition"] for row in rows if row["parameter"] == "sigma2"} == {"kernel rbf"}


def test_a_table_that_cannot_be_written_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    class Broken:
        def __str__(self) -> str:
            raise ZeroDivisionError

    kept = write_csv({"one": Table("One", ("a",), [(1,)])}, tmp_path)[0].read_bytes()
    with pytest.raises(ZeroDivisionError):
        write_csv({"one": Table("One", ("a",), [(2,), (Broken(),)])}, tmp_path)
    assert (tmp_path / "one.csv").read_bytes() == kept == b"a\r\n1\r\n"


def test_paper_figures_are_drawn_as_pdf_and_png(found: Sensitivity, tmp_path: Path) -> None:
    paths = draw_paper_figures(found.studies[0], tmp_path / "figures")
    assert sorted(path.name for path in paths) == sorted(
        f"one-{name}.{ending}"
        for name in ("marginals", "importance", "budget", "fidelity")
        for ending in ("pdf", "png")
    )
    assert all(path.stat().st_size > 3000 for path in paths)


@pytest.fixture(scope="module")
def stopped_search() -> Sensitivity:
    return analyse_observations([searched("steady", 60, 0)])


def test_a_stopped_search_opens_with_what_its_rungs_say(stopped_search: Sensitivity) -> None:
    page = page_of(stopped_search)
    opened = page[page.index("In short") : page.index("<h2", page.index("section-2-title"))]
    assert "At epoch 1, which all 60 trials reached, val.ridge_accuracy depends on a (" in opened
    assert "Epoch 1 predicts" in opened
    # One line in one section for each analysis that lacks trials.
    assert page.count("Too few to tell</h2>") == 1
    assert "Seed noise</h2>" not in page


def test_each_rung_of_a_stopped_search_has_its_button_and_its_rows(stopped_search: Sensitivity) -> None:
    (one,) = stopped_search.studies
    told = [stage for stage in one.stages if stage.forest.marginals]
    assert [stage.stage.epoch for stage in told][:2] == [1, 3]
    sections = {section.title: section for section in sensitivity_sections(one)}
    for title in ("Importance", "One parameter at a time", "Two parameters together"):
        for figure in sections[title].figures:
            (menu,) = figure.layout.updatemenus
            assert [button.label for button in menu.buttons] == [stage.stage.name for stage in told]
            for place, button in enumerate(menu.buttons):
                # Each trace belongs to one stage, and the first stage's are shown.
                shown, layout = button.args
                assert len(shown["visible"]) == len(figure.data)
                assert any(shown["visible"])
                if place == 0:
                    assert shown["visible"] == [trace.visible for trace in figure.data]
                    assert layout["title.text"] == figure.layout.title.text
    tables = sensitivity_tables(stopped_search)
    for name in ("effects", "importance", "variance", "marginals", "surrogate"):
        at = tables[name].columns.index("epoch")
        assert {row[at] for row in tables[name].rows} == {stage.stage.epoch for stage in told}
    json_text(as_records(tables))


def test_a_stopped_search_is_drawn_for_papers(stopped_search: Sensitivity, tmp_path: Path) -> None:
    names = {path.stem for path in draw_paper_figures(stopped_search.studies[0], tmp_path)}
    assert names >= {"study-importance", "study-marginals", "study-rungs"}


def test_several_studies_are_compared_with_equal_budgets_stated() -> None:
    studies = [study(40, "one"), study(45, "two", 1, "other")]
    found = analyse_observations(studies)
    page = page_of(found)
    assert "Every study is allowed 10 trials" in page
    assert "Best default over the datasets" in page
    assert "0 datasets, 6 needed" in page
    (default,) = found.defaults
    assert default.values["kernel"] == "cosine"
    assert all(gain.unseen > 0.2 for gain in default.gains)


def test_a_comparison_that_lacks_trials_is_told_beside_the_analyses_that_do() -> None:
    tables = sensitivity_tables(analyse_observations([study(8, "one"), study(4, "two")]))
    assert "equal_budget" not in tables
    assert tables["too_few"].rows[-1] == ("2 studies", "equal budgets", 4, 5, "completed trials in study two")
    tables = sensitivity_tables(analyse_observations([study(8, "one"), study(5, "two")]))
    assert tables["equal_budget"].title == "Best score to expect of 1 trial"


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


def test_a_configuration_that_ran_again_counts_once() -> None:
    """Eight configurations, 24 trials: the copies of a score are no evidence."""
    choices = {name: {"choice": [0, 1], "default": 0} for name in ("a", "b", "c")}
    one = observed(space_of(**choices), lambda x: 0 * x["a"], 24)
    codes = np.array([[row >> bit & 1 for bit in range(3)] for row in range(8)] * 3, dtype=float)
    noise = np.tile(np.random.default_rng(0).normal(size=8), 3)
    again = replace(one, codes=codes, score=noise, curve=np.full_like(one.curve, np.nan))
    assert (again.repeats, len(again.distinct().trial)) == (16, 8)
    assert len(stages(again)[-1].trials) == 8  # type: ignore[arg-type]
    assert "16 trials ran a configuration again" in page_of(analyse_observations([again]))
    other = replace(again, score=noise + np.arange(24))
    assert other.repeats == 0, "scores that differ are those of other runs"


def test_of_copies_the_one_that_came_furthest_is_kept() -> None:
    one = observed(space_of(a="unit"), lambda x: x["a"], 4)
    curve, score, ending = one.curve.copy(), one.score.copy(), one.ending.copy()
    codes = one.codes.copy()
    codes[1], curve[1], score[1] = codes[0], curve[0], score[0]
    curve[0, 2:], score[0], ending[0] = np.nan, np.nan, "stopped"
    stopped_first = replace(one, codes=codes, curve=curve, score=score, ending=ending)
    assert stopped_first.distinct().trial.tolist() == [1, 2, 3]


def test_a_configuration_that_differs_in_late_digits_counts_once() -> None:
    """Values that passed through a file may differ by their last digits, as for second seeds."""
    one = observed(space_of(a={"uniform": [0.0, 1.0], "default": 0.5}), lambda x: x["a"], 8)
    codes = np.repeat([[0.1], [0.2], [0.3], [0.4]], 2, axis=0) * np.tile([[1.0], [1 + 1e-13]], (4, 1))
    score = np.repeat(np.arange(4.0), 2)
    assert replace(one, codes=codes, score=score, curve=np.full_like(one.curve, np.nan)).repeats == 4


def test_a_study_without_searched_parameters_makes_a_page() -> None:
    one = observed(space_of(), lambda x: np.zeros(1), 30, noise=0.1, seeds=3)
    assert "Seed noise" in page_of(analyse_observations([one]))
