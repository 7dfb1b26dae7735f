"""One self-contained HTML page of sections, figures and tables: opens offline, on a phone, on paper."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup
from plotly.offline import get_plotlyjs

from contrasweep.notebook_tables import with_code
from contrasweep.tuning.limits import check_watch
from contrasweep.tuning.reports.maps import FeatureMap, map_view
from contrasweep.tuning.reports.style import template
from contrasweep.tuning.results.numbers import cell_text
from contrasweep.tuning.store import ResultsStore

OPEN_ROWS = 12
"""A longer table is folded on the screen; on paper it is whole."""
OPEN_SECTIONS = 24
"""A longer list of sections is folded: on a phone, it would be screens long."""
DENSE_COLUMNS = 10
"""With more columns than this, they stand closer together."""
LONG_TEXT = 40
"""A cell with a longer text is broken into lines; a shorter one stays in one, and the table scrolls."""
Tone = Literal["blue", "orange", "yellow", "grey", "plain"]


@dataclass(frozen=True)
class Toned:
    """A cell on a coloured ground.

    Attributes:
        text: what the cell says.
        tone: the ground: `blue`, `orange`, `yellow`, `grey` or `plain`.
        hatched: whether the ground is hatched.
        tip: what a pointer over the cell shows.
    """

    text: str
    tone: Tone
    hatched: bool = False
    tip: str = ""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Table:
    """Rows under column names; a float is shown with four significant digits, None as a dash.

    Above the table stands a choice for each column in `filters`: only rows with the chosen value are shown.
    Such a table is never folded.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[object]]
    note: str = ""
    filters: Sequence[str] = ()

    @classmethod
    def of(cls, title: str, records: Sequence[Mapping[str, object]], note: str = "") -> "Table":
        """Return a table with a row for each record; the first one names the columns."""
        columns = tuple(records[0]) if records else ()
        return cls(title, columns, [tuple(record.values()) for record in records], note)


@dataclass(frozen=True)
class Section:
    """A heading with its text, maps of images, figures and tables.

    `text` is plain: a blank line begins a paragraph, and backticks stand around a command. A paragraph that
    is indented by four spaces is shown as it is, for commands; one whose lines all begin with `- ` is a list.
    Figures use the traces that plotly draws as SVG (`scatter`, `bar`, `heatmap`, `contour`, `box`): they
    print sharply, work without WebGL, and the page's security policy admits no other. The text for readers
    who cannot see a figure is `layout.meta["alt"]`, or else its title.
    """

    title: str
    text: str
    figures: Sequence[go.Figure] = ()
    tables: Sequence[Table] = ()
    maps: Sequence[FeatureMap] = ()

    def named(self, study: str) -> "Section":
        """Return the section with the study in its title, for a page about several."""
        return replace(self, title=f"{study}: {self.title.lower()}")


def render_page(
    title: str,
    subtitle: str,
    sections: Sequence[Section],
    footer: Sequence[str],
    *,
    refresh: float | None = None,
) -> str:
    """Return one self-contained HTML page; if it has figures, it includes plotly.js (about 5 MB).

    Args:
        title: the heading.
        subtitle: a line below it.
        sections: the sections, in the order of the page.
        footer: lines about where the numbers come from.
        refresh: the seconds after which a browser reloads the page; None for a page that does not change.
    """
    drawn = any(section.figures for section in sections)
    looks = {"light": template(dark=False), "dark": template(dark=True)}
    return _template().render(
        title=title,
        subtitle=subtitle,
        sections=[_section_view(i, section) for i, section in enumerate(sections, 1)],
        open_sections=OPEN_SECTIONS,
        footer=footer,
        filtered=any(table.filters for section in sections for table in section.tables),
        mapped=any(section.maps for section in sections),
        refresh=None if refresh is None else math.ceil(refresh),
        plotly=Markup(get_plotlyjs()) if drawn else None,
        templates={name: _script_safe(look.to_plotly_json()) for name, look in looks.items()},
    )


def while_running(
    store: ResultsStore, studies: Sequence[str], seconds: float, wait: Callable[[float], object]
) -> Iterator[float | None]:
    """Yield each time the page should be written: while one of the studies runs, and once afterwards.

    The value is the time after which a browser should reload the page: `seconds`, or None for the last page.
    Between two writings, `wait` is called with `seconds`. An interruption of it (Ctrl-C) yields None, for a
    last page, before it goes on.

    Raises:
        InputError: `seconds` is below 1, or above a day.
    """
    check_watch(seconds)
    # The state first: what ends after it was read is on the next page.
    while any(store.state(study) == "running" for study in studies):
        yield seconds
        try:
            wait(seconds)
        except KeyboardInterrupt:
            yield None
            raise
    yield None


@cache
def _template() -> Template:
    loader = PackageLoader("contrasweep.tuning.reports")
    whitespace: Any = {"trim_blocks": True, "lstrip_blocks": True}
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, **whitespace)
    environment.filters["with_code"] = lambda text: Markup(with_code(text))
    return environment.get_template("page.html.j2")


def _section_view(number: int, section: Section) -> dict[str, object]:
    return {
        "id": f"section-{number}",
        "title": section.title,
        "paragraphs": _paragraphs(section.text),
        "maps": [_map_view(f"map-{number}-{i}", m) for i, m in enumerate(section.maps, 1)],
        "figures": [_figure_view(f"figure-{number}-{i}", f) for i, f in enumerate(section.figures, 1)],
        "tables": [_table_view(table, section.title) for table in section.tables],
    }


def _paragraphs(text: str) -> list[dict[str, object]]:
    """Split a text into paragraphs; each says whether it is a command, and has points if it is a list."""
    found: list[dict[str, object]] = []
    for block in text.split("\n\n"):
        lines = [line for line in block.split("\n") if line.strip()]
        if not lines:
            continue
        command = all(line.startswith("    ") for line in lines)
        listed = all(line.startswith("- ") for line in lines)
        shown = "\n".join(line[4:] for line in lines) if command else "\n".join(lines)
        points = [line[2:] for line in lines] if listed else []
        found.append({"text": shown, "command": command, "points": points})
    return found


def _map_view(name: str, drawn: FeatureMap) -> dict[str, object]:
    view = map_view(name, drawn)
    return {**view, "content": _script_safe(view["content"])}


def _figure_view(name: str, figure: go.Figure) -> dict[str, object]:
    # The page holds the light and the dark template once; a figure would carry its own copy of the light one.
    spec = json.loads(figure.to_json())
    layout = spec.get("layout", {})
    layout.pop("template", None)
    alt = (layout.get("meta") or {}).get("alt") or layout.get("title", {}).get("text") or "figure"
    return {"id": name, "alt": alt, "height": layout.get("height", 420), "spec": _script_safe(spec)}


def _table_view(table: Table, section: str) -> dict[str, object]:
    """Return what the template shows of a table; one without a title is called by its section."""
    columns = list(zip(*table.rows, strict=True)) if table.rows else [() for _ in table.columns]
    numeric = [_is_numeric(values) for values in columns]
    return {
        "title": table.title,
        "name": table.title or section,
        "columns": [{"name": n, "numeric": k} for n, k in zip(table.columns, numeric, strict=True)],
        "rows": [[_cell_view(value, k) for value, k in zip(row, numeric, strict=True)] for row in table.rows],
        "note": table.note,
        "dense": len(columns) > DENSE_COLUMNS,
        "folded": len(table.rows) > OPEN_ROWS and not table.filters,
        "filters": [_filter_view(table, name) for name in table.filters],
    }


def _filter_view(table: Table, name: str) -> dict[str, object]:
    """Return the choice of a column's values: its place, and the values in the order of the rows."""
    place = list(table.columns).index(name)
    return {
        "name": name,
        "place": place,
        "values": list(dict.fromkeys(cell_text(r[place]) for r in table.rows)),
    }


def _cell_view(value: object, numeric: bool) -> dict[str, str]:
    text = cell_text(value)
    if isinstance(value, Toned):
        kind = f"toned {value.tone}{' hatched' if value.hatched else ''}"
        return {"text": text, "kind": kind, "tip": value.tip}
    return {"text": text, "kind": "number" if numeric else "long" if len(text) > LONG_TEXT else "", "tip": ""}


def _is_numeric(values: Sequence[object]) -> bool:
    given = [value for value in values if value is not None]
    return bool(given) and all(isinstance(v, int | float) and not isinstance(v, bool) for v in given)


def _script_safe(content: object) -> Markup:
    """Return JSON for a script element: nothing in it can close the element."""
    return Markup(json.dumps(content, separators=(",", ":")).replace("<", "\\u003c"))
