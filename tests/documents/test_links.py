"""The documents' links lead somewhere, and the site has a page for every guide, command and module."""

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from docs.api_pages import api_pages, public_modules
from docs.command_pages import command_pages
from docs.which_method_page import which_method_page
from tests.documents.blocks import DOCUMENTS, ROOT, all_blocks
from tests.documents.test_documents import names_taken

PAGES = [
    *DOCUMENTS,
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "benchmarks/README.md",
    *sorted((ROOT / "docs/reproduction").glob("*.md")),
]
WRITTEN = {"docs/commands": command_pages, "docs/api": api_pages}
"""Folders whose pages are written when the site is built."""


@cache
def parts(document: Path) -> list[Token]:
    return MarkdownIt().enable("table").parse(document.read_text(encoding="utf-8"))


def links(document: Path) -> list[str]:
    inner = [child for token in parts(document) for child in token.children or ()]
    found = [child.attrs.get("href") or child.attrs.get("src") for child in inner]
    return [str(one) for one in found if one and not re.match(r"https?:|mailto:", str(one))]


@cache
def anchors(document: Path) -> set[str]:
    """Return what GitHub, and the site, call the headings of a document."""
    tokens = parts(document)
    texts = ["".join(child.content for child in after.children or ()) for after in _after_headings(tokens)]
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in texts}


def _after_headings(tokens: list[Token]) -> list[Token]:
    return [after for one, after in pairwise(tokens) if one.type == "heading_open"]


@pytest.mark.parametrize("document", PAGES, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for link in links(document):
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        folder = target.parent.relative_to(ROOT).as_posix()
        if folder in WRITTEN:
            assert target.name in WRITTEN[folder](), link
            continue
        assert target.exists(), f"{document.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{document.name} links to {link}"


def test_pages_that_code_names_exist() -> None:
    folders = ("data", "losses", "models", "tuning", "search_spaces", "benchmarks", "docs", "tests")
    files = [
        file for folder in folders for end in ("py", "yaml") for file in (ROOT / folder).rglob(f"*.{end}")
    ]
    named = {
        (file, page)
        for file in files
        for page in re.findall(r"\bdocs/[a-z/-]+\.md\b", file.read_text("utf-8"))
    }
    assert len(named) > 50
    for file, page in named:
        assert (ROOT / page).exists(), f"{file.relative_to(ROOT)} names {page}"


def test_the_site_has_every_guide() -> None:
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    shown = {
        line for block in re.findall(r"```{toctree}\n(.*?)```", index, re.DOTALL) for line in block.split()
    }
    guides = {path.stem for path in DOCUMENTS if path.parent == ROOT / "docs"} - {"index"}
    assert guides <= shown
    # Sphinx writes pages of these names itself.
    assert not guides & {"search", "genindex", "py-modindex"}


def test_a_command_has_a_page_with_its_options_and_an_example() -> None:
    pages = command_pages()
    assert {"index.md", "sweep.md", "run.md", "datasets.md", "datasets-check.md"} <= pages.keys()
    assert "`--trials <int>`" in pages["sweep.md"]
    assert "$ contrasweep datasets check cifar10" in pages["datasets-check.md"]


def test_the_page_of_methods_and_data_is_rendered_from_what_they_declare() -> None:
    assert which_method_page() == (ROOT / "docs/which-method.md").read_text(encoding="utf-8"), (
        "python -m docs.which_method_page renders it again"
    )


def test_what_the_guides_import_is_in_the_reference() -> None:
    public = set(public_modules())
    for block in all_blocks("python"):
        for module, _ in names_taken(block.text):
            assert module in public, f"{block.place} imports from {module}"
