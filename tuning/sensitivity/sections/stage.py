"""What the sections on parameters share: a figure with a choice of the stage, and a stage in words."""

from collections.abc import Iterator, Sequence
from typing import Any

import plotly.graph_objects as go

from contrasweep.tuning.sensitivity.analyse import StageSensitivity, StudySensitivity
from contrasweep.tuning.sensitivity.enough import TooFew
from contrasweep.tuning.sensitivity.marginals import Share, condition_text
from contrasweep.tuning.sensitivity.scores import Stage
from contrasweep.tuning.sensitivity.sections.part import Record

USUAL_HEIGHT = 420
"""Pixels of a figure that states none."""

LEAST_R2 = 0.1
"""A surrogate with a smaller r2 predicts too little for its curves to mean much; the page says so."""


def stage_selector(drawn: Sequence[tuple[Stage, go.Figure]], above: int = 0) -> go.Figure:
    """Return one figure with a button for each stage, opened at the first; a single stage has no buttons.

    Args:
        drawn: the figure of each stage.
        above: the pixels that something above the plot takes.
    """
    if len(drawn) < 2:
        return drawn[0][1] if drawn else go.Figure()
    owners = [place for place, (_, figure) in enumerate(drawn) for _ in figure.data]
    buttons = []
    for place, (stage, figure) in enumerate(drawn):
        shown = {"visible": [owner == place for owner in owners]}
        buttons.append({"label": stage.name, "method": "update", "args": [shown, _changing(figure)]})
    merged = go.Figure(drawn[0][1])
    for _, figure in drawn[1:]:
        merged.add_traces(figure.data)
    for owner, trace in zip(owners, merged.data, strict=True):
        trace.visible = owner == 0
    corner = {"x": 1, "xanchor": "right", "y": 1, "yanchor": "bottom", "pad": {"b": 4 + above, "r": 0}}
    menu: dict[str, Any] = {"type": "buttons", "direction": "right", "showactive": True, "buttons": buttons}
    height = max(figure.layout.height or USUAL_HEIGHT for _, figure in drawn) + 40 + above
    merged.update_layout(
        updatemenus=[{**menu, **corner, "font": {"size": 11}, "bgcolor": "rgba(140,140,140,0.25)"}],
        margin={"t": 84 + above},
        # Plotly lifts the title by the height of a colour scale's own title.
        title={"yref": "container", "y": 1 - (50 if above else 16) / height, "yanchor": "middle"},
        height=height,
    )
    return merged


def _changing(figure: go.Figure) -> dict[str, Any]:
    """Return what a button sets besides the traces: the title, the axes, and lines in the plot."""
    layout = figure.layout.to_plotly_json()
    title = (layout.get("title") or {}).get("text", "")
    axes = {name: layout[name] for name in ("xaxis", "yaxis") if name in layout}
    return {"title.text": title, **axes, "shapes": list(layout.get("shapes", ()))}


def surrogate_line(one: StageSensitivity) -> str:
    """Say how good the surrogate of a stage is."""
    if isinstance(one.forest.surrogate, TooFew):
        return f"The forest at {one.stage.name}: {one.forest.surrogate}."
    found = one.forest.surrogate
    estimated = (
        f", {found.estimated} of them stopped before, with estimated scores" if found.estimated else ""
    )
    line = (
        f"The forest at {one.stage.name} is fitted on {found.trials} trials{estimated}. It predicts "
        f"{100 * max(0.0, found.r2):.0f} % of the variance of unseen trials."
    )
    if found.r2 < LEAST_R2:
        line += " That is next to nothing: do not rely on what follows from it."
    if found.left_out:
        line += f" {found.left_out} ended trials without a score are left out of it."
    return line


def surrogate_rows(found: Sequence[StageSensitivity], one: StudySensitivity) -> Iterator[Record]:
    """Yield what the surrogate of each stage rests on, and how well it predicts unseen trials."""
    for stage in found:
        if not isinstance(stage.forest.surrogate, TooFew):
            s = stage.forest.surrogate
            counts = {"trials": s.trials, "measured": s.trials - s.estimated, "estimated": s.estimated}
            errors = {"predicted variance (R2)": s.r2, "error on measured scores": s.error}
            yield {"epoch": stage.stage.epoch, **counts, "known variance": s.known, **errors}


def share_row(share: Share) -> Record:
    """Return a share's row in the tables of shares of the variance."""
    found = {"share": share.share, "by chance": share.by_chance, "above chance": share.above_chance}
    return {"parameter": " x ".join(share.parameters), "condition": condition_text(share.condition), **found}
