"""The pages of the papers' tables are up to date with their stored scores and notes."""

import re
import shutil
from pathlib import Path

import pytest

import contrasweep.tuning.tables.document as document
import contrasweep.tuning.tables.paper_page as paper_page
from contrasweep.search_spaces.papers import PAPERS
from contrasweep.search_spaces.tables import load_table
from contrasweep.tuning.tables.plan import what_it_takes
from contrasweep.tuning.tables.results import read_results

DOCS = Path(__file__).parents[2] / "docs"
FOLDER = DOCS / "reproduction"
PAGE = DOCS / "reproduction.html"


def test_the_pages_are_rendered_from_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Path] = []
    for module, name in (
        (paper_page, "draw_table"),
        (paper_page, "draw_forest"),
        (document, "draw_heatmap"),
    ):
        monkeypatch.setattr(module, name, lambda results, path: drawn.append(path))
    for folder in ("results", "notes"):
        shutil.copytree(FOLDER / folder, tmp_path / "reproduction" / folder)
    document.write_document(tmp_path)
    written = {p.relative_to(tmp_path) for p in tmp_path.rglob("*") if p.suffix in (".md", ".json", ".html")}
    stored = {p.relative_to(DOCS) for p in FOLDER.rglob("*") if p.suffix in (".md", ".json")}
    assert written == {*stored, Path("reproduction.md"), Path("reproduction.html")}
    for path in written:
        same = (tmp_path / path).read_text(encoding="utf-8") == (DOCS / path).read_text(encoding="utf-8")
        assert same, f"{path} is old: run `make reproduction`"
    assert {path.name for path in drawn} == {path.name for path in (FOLDER / "figures").iterdir()}


def test_every_note_belongs_to_stored_scores_or_to_a_paper() -> None:
    notes, results = ({path.stem for path in (FOLDER / folder).iterdir()} for folder in ("notes", "results"))
    assert notes <= results | PAPERS.keys()


def test_every_link_of_a_page_leads_somewhere() -> None:
    for page in (DOCS / "reproduction.md", *FOLDER.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        headings = {
            paper_page.anchor(line.lstrip("# ")) for line in text.splitlines() if line.startswith("#")
        }
        for link in re.findall(r"\]\(([^)]+)\)", text):
            if link.startswith("#"):
                assert link[1:] in headings, f"{page.name}: {link}"
            elif "://" not in link:
                assert (page.parent / link).is_file(), f"{page.name}: {link}"


def test_the_offline_page_loads_nothing() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=(?![\"']?#)", text)
    assert "http://" not in text
    assert "https://" not in text
    assert PAGE.stat().st_size < 1_000_000


def test_what_a_table_takes_is_told_with_all_data_that_it_accepts() -> None:
    told = what_it_takes(load_table("cacr-t2"))
    assert told.startswith(
        "90 runs of 200 epochs on cifar10 or hub-parquet:path=cifar10-jpeg, cifar100, stl10"
    )
    assert what_it_takes(load_table("cclk-t3")) == "30 runs of 5 epochs on colormnist"
    assert " of 400 to 1,000 epochs " in what_it_takes(load_table("cclk-t6"))


@pytest.mark.parametrize("name", [path.stem for path in (DOCS / "reproduction" / "results").iterdir()])
def test_the_stated_cost_of_an_epoch_is_like_that_of_the_stored_runs(name: str) -> None:
    results = read_results(DOCS / "reproduction" / "results" / f"{name}.parquet")
    costs = results.table.run.seconds_per_epoch
    of_runs = {(v.study, v.trial, v.seed): results.cells.get((v.row, v.column)) for v in results.values}
    spent: dict[str, list[float]] = {}
    for run, cell in of_runs.items():
        if cell is not None and cell.dataset in costs and not results.tuned:
            spent.setdefault(cell.dataset, []).append(results.runs[run] / cell.settings["epochs"])
    for dataset, seconds in spent.items():
        measured = sum(seconds) / len(seconds)
        # Some runs were made beside others, on a busy machine: a stated cost is right to a factor of three.
        assert measured / 3 < costs[dataset] < measured * 3, dataset
