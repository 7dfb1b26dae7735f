"""The code blocks of the documents, and what the documents say about running them.

An indented block is what one types into a shell; every other block names its language. A comment in front of
a block says what a reader need not see:

    <!-- not run: WHY -->           nothing runs it
    <!-- run by FILE::TEST -->      a test of its own runs it, or holds it equal to a file that is run
    <!-- file: NAME -->             later blocks find it in this file (a first line `# NAME` says so too)
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
_TOP = (ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "SECURITY"))
DOCUMENTS = [*_TOP, *sorted((ROOT / "docs").glob("*.md"))]
_MARK = re.compile(r"<!-- (not run|run by|file)(?:: | )(.+?) -->")
_NAMED = re.compile(r"# ([\w-]+\.(?:yaml|py))\b")


@dataclass(frozen=True)
class Block:
    """A code block.

    Attributes:
        document: where it stands.
        line: the line before its first, from 1.
        language: as the document names it; empty for an indented block.
        text: its content.
        marks: what the comment before it says, by the word that it begins with.
    """

    document: Path
    line: int
    language: str
    text: str
    marks: dict[str, str]

    @property
    def place(self) -> str:
        """Return where it stands, for the message of a failing test."""
        return f"{self.document.name}:{self.line}"

    @property
    def file(self) -> str | None:
        """Return the name of the file that it shows; None if it shows none."""
        named = _NAMED.match(self.text)
        return self.marks.get("file") or (named[1] if named else None)

    @property
    def unmarked(self) -> bool:
        """Return whether the tests of this folder run it."""
        return not {"not run", "run by"} & self.marks.keys()


@cache
def blocks_of(document: Path) -> tuple[Block, ...]:
    """Return the code blocks of a document, in their order."""
    found, marks = [], {}
    for token in MarkdownIt().parse(document.read_text(encoding="utf-8")):
        if token.type == "html_block":
            marks = dict(_MARK.findall(token.content))
        elif token.type in ("code_block", "fence"):
            line = (token.map or [0])[0] + (token.type == "fence")
            found.append(Block(document, line, token.info.strip(), token.content, marks))
            marks = {}
        elif token.type in ("paragraph_open", "heading_open"):
            marks = {}
    return tuple(found)


def all_blocks(*languages: str) -> list[Block]:
    """Return the blocks of all documents in these languages."""
    return [one for document in DOCUMENTS for one in blocks_of(document) if one.language in languages]
