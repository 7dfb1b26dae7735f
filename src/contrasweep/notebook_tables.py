"""Tables that notebooks show: HTML without colours of its own, so that light and dark themes both suit it."""

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

MOST_ROWS: Final = 10
"""Of a longer table, the first so many rows are shown, and how many more there are."""

_NUMBER = r"[-+]?([\d.,]+(e[-+]?\d+)?|∞)"
_NUMBERS: Final = re.compile(rf"{_NUMBER}(( ±| to) {_NUMBER})?|NaN|-|")
_CODE: Final = re.compile("`([^`]+)`")
_MISSING: Final = "-"


def html_table(
    title: str, records: Sequence[Mapping[str, str]], *notes: str, rest: int = 0, most: int = MOST_ROWS
) -> str:
    """Return a table with a row for each record, its title above it and notes below it; all is escaped.

    Columns stand in the order in which records name them. Those of numbers are aligned on the right. What
    stands in backticks in a note is shown as code; an empty note is left out.

    Args:
        title: what the table shows.
        records: the cells of each row, by column.
        notes: sentences, each a paragraph.
        rest: how many rows there are besides the records.
        most: how many rows are shown.
    """
    shown = records[:most]
    more = len(records) - len(shown) + rest
    body = "".join(_body(shown, list(dict.fromkeys(name for one in shown for name in one))))
    below = [f"... and {more:,} more." if more else "", *notes]
    paragraphs = "".join(f'<p style="margin:0.3em 0">{with_code(note)}</p>' for note in below if note)
    # A wide table scrolls by itself: the notebook keeps its width.
    return (
        f'<div style="overflow-x:auto"><p style="margin:0.3em 0"><strong>{escape(title)}</strong></p>'
        f"{body}{paragraphs}</div>"
    )


def with_code(text: str) -> str:
    """Return a text as escaped HTML, with what stands in backticks, such as a command, as code."""
    return _CODE.sub(r"<code>\1</code>", escape(text))


def _body(records: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[str]:
    """Return the table itself, in parts; nothing where there is no record."""
    if not records:
        return []
    numeric = {name: all(_NUMBERS.fullmatch(one.get(name, "")) for one in records) for name in names}

    def row(cells: Mapping[str, str], kind: str) -> str:
        inner = (
            f'<{kind} style="text-align:{"right" if numeric[name] else "left"}">'
            f"{escape(cells.get(name, _MISSING))}</{kind}>"
            for name in names
        )
        return f"<tr>{''.join(inner)}</tr>"

    head = row({name: name for name in names}, "th")
    lines = "".join(row(one, "td") for one in records)
    return [f"<table><thead>{head}</thead><tbody>{lines}</tbody></table>"]
