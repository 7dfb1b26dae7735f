"""A part of the page: how the result of one analysis appears in words, as figures and as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import plotly.graph_objects as go

from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.enough import TooFew

R = TypeVar("R")
Row = list[object]


@dataclass(frozen=True)
class TidyTable(Generic[R]):
    """A table of one analysis.

    Attributes:
        name: of its CSV file and its key in the JSON output.
        title: on the page.
        columns: their names.
        rows: returns the rows of a study.
        on_page: whether the page shows it; a table that a figure shows better is left out.
    """

    name: str
    title: str
    columns: Sequence[str]
    rows: Callable[[R, StudySensitivity], Iterable[Row]]
    on_page: bool = True


def _nothing_missing(found: object) -> Iterable[tuple[str, TooFew]]:
    return ()


@dataclass(frozen=True)
class Part(Generic[R]):
    """One analysis of a study, as the page and the tables show it.

    Attributes:
        title: of its section.
        result: returns the result for a study, or TooFew.
        tell: returns the section's text and figures.
        tables: what the section shows below its figures, and what is written as CSV and JSON.
        name: what the table of too few calls this analysis.
        hint: a sentence that the page adds where the result is TooFew.
        missing: names the entries of a result that are TooFew, where an analysis has several.
    """

    title: str
    result: Callable[[StudySensitivity], R | TooFew]
    tell: Callable[[R, StudySensitivity], tuple[str, Sequence[go.Figure]]]
    tables: Sequence[TidyTable[R]] = field(default=())
    name: str = ""
    hint: str = ""
    missing: Callable[[R], Iterable[tuple[str, TooFew]]] = _nothing_missing

    def section(self, one: StudySensitivity) -> Section:
        """Return the section about a study; where trials are too few, it says so."""
        found = self.result(one)
        if isinstance(found, TooFew):
            return Section(self.title, " ".join(filter(None, [f"{sentence(found)}.", self.hint])))
        text, figures = self.tell(found, one)
        shown = [
            Table(table.title, table.columns, rows)
            for table in self.tables
            if table.on_page and (rows := list(table.rows(found, one)))
        ]
        return Section(self.title, text, figures, shown)

    def rows(self, table: TidyTable[R], one: StudySensitivity) -> list[Row]:
        """Return the rows of one of the tables; none where trials are too few."""
        found = self.result(one)
        return [] if isinstance(found, TooFew) else list(table.rows(found, one))

    def lacking(self, one: StudySensitivity) -> Iterable[tuple[str, TooFew]]:
        """Return what this analysis cannot say about a study, by name."""
        found = self.result(one)
        return [(self.name or self.title, found)] if isinstance(found, TooFew) else self.missing(found)


def sentence(text: object) -> str:
    """Return a text with a capital letter at its start."""
    words = str(text)
    return words[:1].upper() + words[1:]
