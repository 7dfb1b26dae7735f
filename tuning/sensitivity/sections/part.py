"""A part of the page: how the result of one analysis appears in words, as figures and as tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import plotly.graph_objects as go

from contrasweep.tuning.reports.page import Section, Table
from contrasweep.tuning.reports.style import GREY, log_ticks, plain
from contrasweep.tuning.results.numbers import number_text
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.statistics import Floats

R = TypeVar("R")
Record = Mapping[str, object]
"""A row of a table, by column."""


@dataclass(frozen=True)
class TidyTable(Generic[R]):
    """A table of one analysis.

    Attributes:
        name: of its CSV file and its key in the JSON output.
        title: on the page.
        records: returns the rows of a study, each by column; all have the same columns.
        on_page: whether the page shows it; a table that a figure shows better is left out.
    """

    name: str
    title: str
    records: Callable[[R, StudySensitivity], Iterable[Record]]
    on_page: bool = True


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
        missing: names what a result lacks in part: entries or stages that are TooFew.
    """

    title: str
    result: Callable[[StudySensitivity], R | TooFew]
    tell: Callable[[R, StudySensitivity], tuple[str, Sequence[go.Figure]]]
    tables: Sequence[TidyTable[R]] = field(default=())
    name: str = ""
    hint: str = ""
    missing: Callable[[R, StudySensitivity], Iterable[tuple[str, TooFew]]] = lambda found, one: ()

    def section(self, one: StudySensitivity) -> Section | None:
        """Return the section about a study; None where trials are too few."""
        found = self.result(one)
        if isinstance(found, TooFew):
            return None
        text, figures = self.tell(found, one)
        shown = [
            Table.of(table.title, records)
            for table in self.tables
            if table.on_page and (records := list(table.records(found, one)))
        ]
        return Section(self.title, text, figures, shown)

    def line(self, one: StudySensitivity) -> str | None:
        """Return a line about what this analysis lacks; None where it has a section."""
        found = self.result(one)
        if not isinstance(found, TooFew):
            return None
        return f"{self.title}: {found}." + (f" {self.hint}" if self.hint else "")

    def records(self, table: TidyTable[R], one: StudySensitivity) -> Iterable[Record]:
        """Return the rows of one of the tables; none where trials are too few."""
        found = self.result(one)
        return () if isinstance(found, TooFew) else table.records(found, one)

    def lacking(self, one: StudySensitivity) -> Iterable[tuple[str, TooFew]]:
        """Return what this analysis cannot say about a study, by name."""
        found = self.result(one)
        return [(self.name or self.title, found)] if isinstance(found, TooFew) else self.missing(found, one)


def add_band(figure: go.Figure, x: Any, low: Any, high: Any, colour: str) -> None:
    """Fill the area between two curves."""
    shape = {"mode": "lines", "line": {"width": 0, "color": colour}, "hoverinfo": "skip", "showlegend": False}
    figure.add_scatter(x=x, y=low, **shape)
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    figure.add_scatter(x=x, y=high, fill="tonexty", fillcolor=f"rgba({red},{green},{blue},0.18)", **shape)


def error_bars(up: Floats, down: Floats) -> dict[str, Any]:
    """Return the error bars of a trace from their lengths."""
    return {"type": "data", "array": up, "arrayminus": down, "color": GREY, "thickness": 1.5, "width": 4}


def interval_bars(values: Sequence[float], intervals: Sequence[Any]) -> dict[str, Any]:
    """Return error bars from values to the `low` and `high` of each.

    An estimate can lie outside its bootstrap interval; then one arm has no length.
    """
    up = np.array([one.high for one in intervals]) - values
    down = values - np.array([one.low for one in intervals])
    return error_bars(np.maximum(up, 0), np.maximum(down, 0))


def interval_figure(
    title: str, rows: Sequence[Any], values: Sequence[float], arms: dict[str, Any], height: int, **trace: Any
) -> go.Figure:
    """Draw a value with its error bars in each row, `height` pixels apart."""
    marks = go.Scatter(x=np.array(values), y=rows, mode="markers", error_x=arms, marker_size=9, **trace)
    return go.Figure(marks).update_layout(title=title, height=150 + height * len(rows), showlegend=False)


def label_log_axis(figure: go.Figure, low: float, high: float) -> None:
    """Make the x axis logarithmic, with plain numbers: plotly's own ticks leave a short axis without any."""
    ticks = log_ticks(low, high)
    figure.update_xaxes(type="log", tickvals=ticks, ticktext=[plain(t) for t in ticks], tickangle=0)


def short(value: object) -> str:
    """Return a value as text: a number with four significant digits."""
    return number_text(value) if isinstance(value, float) else str(value)
