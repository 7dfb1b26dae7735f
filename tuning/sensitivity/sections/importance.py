"""The section on importance: PED-ANOVA's shares, and the shares of the surrogate's variance (fANOVA)."""

from collections.abc import Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from contrasweep.tuning.reports.style import COLOURS, GREY
from contrasweep.tuning.sensitivity.analyse import StudySensitivity
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.importance import Importance
from contrasweep.tuning.sensitivity.marginals import Share, condition_text
from contrasweep.tuning.sensitivity.sections.part import Part, Row, TidyTable, interval_bars

SHARE_COLUMNS = ("parameter", "condition", "share", "by chance", "above chance")

Importances = Sequence[Importance | TooFew]


def share_row(share: Share) -> Row:
    """Return a share's row under `SHARE_COLUMNS`."""
    condition = condition_text(share.condition)
    return [" x ".join(share.parameters), condition, share.share, share.by_chance, share.above_chance]


def _tell(found: Importances, one: StudySensitivity) -> tuple[str, list[go.Figure]]:
    text = (
        "Blue and green bars lie above what chance gives (the red mark); grey bars do not. "
        "PED-ANOVA asks what sets the best trials apart; fANOVA asks what moves the score over the whole "
        "space, bad regions included, so the two need not agree. A parameter that depends on another is "
        "judged within each value of that other."
    )
    for name, lack in _missing(found):
        text += f"\n\nPED-ANOVA{name.removeprefix('importance')}: {lack}."
    known = [entry for entry in found if isinstance(entry, Importance)]
    figures = [_importance_figure(known)] if known else []
    return text, figures + ([_variance_figure(one.shares)] if one.shares else [])


def _missing(found: Importances) -> Iterator[tuple[str, TooFew]]:
    """Yield the number of entries that need more trials, and the one that has the fewest."""
    missing = [entry for entry in found if isinstance(entry, TooFew)]
    if missing:
        yield f"importance of {len(missing)} entries", min(missing, key=lambda entry: entry.found)


def _importance_rows(found: Importances, one: StudySensitivity) -> Iterator[Row]:
    for i in found:
        if not isinstance(i, TooFew):
            numbers: Row = [i.share, i.low, i.high, i.by_chance, i.first, i.trials, i.best]
            yield [i.parameter, condition_text(i.condition), *numbers]


def _importance_figure(importances: Sequence[Importance]) -> go.Figure:
    """Draw PED-ANOVA's shares with bootstrap intervals, and the shares by chance."""
    ordered = sorted(importances, key=lambda i: i.share)
    arms = interval_bars([i.share for i in ordered], ordered)
    figure = _share_bars(ordered, COLOURS[0], error_x=arms)
    return figure.update_layout(title="Importance (PED-ANOVA)", xaxis_title="share explained")


def _variance_figure(shares: Sequence[Share]) -> go.Figure:
    """Draw the shares of the surrogate's variance, and the shares by chance."""
    figure = _share_bars(sorted(shares, key=lambda s: s.share), COLOURS[2])
    return figure.update_layout(title="Variance explained (fANOVA)", xaxis_title="share explained")


def _share_bars(shares: Sequence[Importance] | Sequence[Share], colour: str, **bar: Any) -> go.Figure:
    """Draw a bar for each share, grey where chance could explain it, and a mark for the share by chance."""
    # On two lines: a long label leaves a phone no room for the bars.
    names = [one.name.replace(" (", "<br>(") for one in shares]
    colours = [colour if one.above_chance else GREY for one in shares]
    figure = go.Figure()
    values, look = [one.share for one in shares], {"marker_color": colours, "showlegend": False, **bar}
    figure.add_bar(x=values, y=names, orientation="h", name="share", **look)
    marker: dict[str, Any] = {"symbol": "line-ns", "size": 16, "line": {"width": 2, "color": COLOURS[5]}}
    chance = [one.by_chance for one in shares]
    figure.add_scatter(x=chance, y=names, mode="markers", marker=marker, name="by chance (95 %)")
    return figure.update_layout(height=150 + 34 * len(names))


PARTS: tuple[Part[Any], ...] = (
    Part[Importances](
        title="Importance",
        result=lambda one: one.importances,
        tell=_tell,
        missing=_missing,
        tables=(
            TidyTable(
                "importance",
                "Importance (PED-ANOVA)",
                ("parameter", "condition", "share", "low", "high", "by chance", "first", "trials", "best"),
                _importance_rows,
            ),
            TidyTable(
                "variance",
                "Variance explained by one parameter (fANOVA)",
                SHARE_COLUMNS,
                lambda found, one: map(share_row, one.shares),
            ),
        ),
    ),
)
