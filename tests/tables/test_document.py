"""`docs/reproduction.md` is up to date with its stored scores and notes."""

import shutil
from pathlib import Path

import pytest

import contrasweep.tuning.tables.document as document

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_rendered_from_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Path] = []
    monkeypatch.setattr(document, "draw_table", lambda results, path: drawn.append(path))
    for folder in ("results", "notes"):
        shutil.copytree(DOCS / "reproduction" / folder, tmp_path / "reproduction" / folder)
    page = document.write_document(tmp_path).read_text(encoding="utf-8")
    assert page == (DOCS / "reproduction.md").read_text(encoding="utf-8"), "run `make reproduction`"
    figures = {path.name for path in (DOCS / "reproduction" / "figures").iterdir()}
    assert {path.name for path in drawn} == figures


def test_every_note_belongs_to_stored_scores() -> None:
    notes, results = (
        {path.stem for path in (DOCS / "reproduction" / folder).iterdir()} for folder in ("notes", "results")
    )
    assert notes <= results
